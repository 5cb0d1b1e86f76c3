//===- ValueReport.h - why a value is sharded as it is, for people --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_VALUEREPORT_H
#define WEFT_DRIVER_VALUEREPORT_H

#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/Descriptions.h"
#include "weft/Pipeline/Plan/ValueQuestion.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace weft {

/// Why a value of the plan that `weft compile` ends with is sharded as it is.
struct ValueExplanation {
  ValueAnswer answer;
  /// Bytes of a device's memory that the search has left for what it does not count.
  int64_t reserve = 0;
};

/// Plans the model of `descriptions` and answers `question`. Fails where the question's name fits
/// no value, or several, with names that there are, and where nothing can be planned; that is
/// printed.
llvm::Expected<ValueExplanation> explainValue(const ValueQuestion &question,
                                              const CompileOptions &options,
                                              const Descriptions &descriptions);

/// Prints how the value is sharded, why, and what other shardings would take.
void printValueReport(llvm::raw_ostream &os, const ValueExplanation &explanation,
                      const desc::MachineSpec &machine);

} // namespace weft

#endif // WEFT_DRIVER_VALUEREPORT_H
