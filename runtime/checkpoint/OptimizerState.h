//===- OptimizerState.h - names of what optimizers keep ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H
#define WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H

#include <string_view>

namespace weft::rt {

/// Whether an optimizer's state is not that of one parameter, as "adam_m/<parameter>" is: the loss
/// scale, and what FP8 scales follow.
constexpr bool isOfNoParameter(std::string_view state) {
  return state == "loss_scale" || state == "loss_scale_steps" || state.starts_with("amax/");
}

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_OPTIMIZERSTATE_H
