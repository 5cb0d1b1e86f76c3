//===- OptimizerState.h - names of optimizers' states ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H
#define WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H

#include <string_view>

namespace weft::rt {

/// Returns true if an optimizer state belongs to no parameter, unlike "adam_m/<parameter>": the
/// loss scale, and the maxima from which FP8 scales follow.
constexpr bool isOfNoParameter(std::string_view state) {
  return state == "loss_scale" || state == "loss_scale_steps" || state.starts_with("amax/");
}

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H
