//===- Rivals.h - what other plans would take -------------------------------===//
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

/// A strategy that was priced beside the plan.
struct Rival {
  std::string name;
  /// Why it cannot be had; empty if it can.
  std::string illegal;
  /// As it is fastest, with as much memory as it takes.
  SearchReport search;
};

/// Plans the model of `descriptions` by `strategy`, the rest as the search finds it fastest. Where
/// the strategy does not fit, the rival still says what it would take.
Rival priceRival(const CompileOptions &options, Descriptions descriptions,
                 const desc::Strategy &strategy);

/// Tries two, four, ... times as many micro-batches until a program fits, and returns advice to
/// take so many: "; with --pin accumulation=4 it takes 60 GiB and 1.200 s a step". Empty where none
/// fits.
std::string adviseAccumulation(const CompileOptions &options, Descriptions descriptions);

} // namespace weft

#endif // WEFT_DRIVER_RIVALS_H
