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

/// Explains the sharding of a value in the plan that `weft compile` ends with.
struct ValueExplanation {
  ValueAnswer answer;
  /// Bytes of a device's memory that the search left unused, for buffers that it does not count.
  int64_t reserve = 0;
};

/// Plans the model of `descriptions` and answers `question`. Fails if the question's name fits no
/// value or several (the error lists names), or if no plan can be made (the reason is printed).
llvm::Expected<ValueExplanation> explainValue(const ValueQuestion &question,
                                              const CompileOptions &options,
                                              const Descriptions &descriptions);

/// Prints the value's sharding, the reason for it, and the prices of other shardings.
void printValueReport(llvm::raw_ostream &os, const ValueExplanation &explanation,
                      const desc::MachineSpec &machine);

} // namespace weft

#endif // WEFT_DRIVER_VALUEREPORT_H
