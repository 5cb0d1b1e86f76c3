//===- Rivals.h - prices of known strategies --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_RIVALS_H
#define WEFT_DRIVER_RIVALS_H

#include "weft/Driver/Compilation.h"

#include <cstdint>
#include <string>

namespace weft {

/// A known strategy that is compared with the plan.
struct Rival {
  std::string name;
  /// Why the strategy is impossible; empty if it is possible.
  std::string illegal;
  /// The predicted time of a step and the memory of a rank, as `weft plan` reports them of the
  /// strategy alone; of its smallest plan if none fits.
  double seconds = 0;
  uint64_t bytes = 0;
};

/// Plans and schedules the model of `descriptions` by `strategy`, in its number of micro-batches;
/// the search chooses the rest.
Rival priceRival(const CompileOptions &options, Descriptions descriptions,
                 const desc::Strategy &strategy);

} // namespace weft

#endif // WEFT_DRIVER_RIVALS_H
