//===- LossCurve.h - the loss over a run, drawn in characters ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_LOSSCURVE_H
#define WEFT_RT_REPORT_LOSSCURVE_H

#include <cstdint>
#include <span>
#include <string>

namespace weft::rt {

/// Returns a drawing of `losses`, all finite; the first is the loss of `firstStep`. Each column
/// shows the mean of its steps. Empty for fewer than two losses.
std::string drawLossCurve(std::span<const double> losses, int64_t firstStep);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_LOSSCURVE_H
