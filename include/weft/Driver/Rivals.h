//===- Rivals.h - prices of known strategies --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_RIVALS_H
#define WEFT_DRIVER_RIVALS_H

#include "weft/Driver/Compilation.h"

#include <string>

namespace weft {

/// A known strategy that is compared with the plan.
struct Rival {
  std::string name;
  /// Why the strategy is impossible; empty if it is possible.
  std::string illegal;
  /// The fastest plan of the strategy, even if it needs more memory than a device has.
  SearchReport search;
};

/// Plans the model of `descriptions` by `strategy`; the search chooses the rest. If the strategy
/// does not fit into memory, the rival still has its time and memory.
Rival priceRival(const CompileOptions &options, Descriptions descriptions,
                 const desc::Strategy &strategy);

/// Tries two, four, ... times as many micro-batches until a program fits, and returns the advice:
/// "; with --pin accumulation=4 it takes 60 GiB and 1.200 s a step". Empty if none fits.
std::string adviseAccumulation(const CompileOptions &options, Descriptions descriptions);

} // namespace weft

#endif // WEFT_DRIVER_RIVALS_H
