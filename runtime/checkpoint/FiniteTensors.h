//===- FiniteTensors.h - no file keeps numbers that are not finite --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step checks its loss and its gradient norm before the update, so an update that
// overflows shows only in the next step. After the last step before a checkpoint
// there is none: whoever writes parameters and optimizer states checks them.
//
// The function keeps no state; any thread may call it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_FINITETENSORS_H
#define WEFT_RT_CHECKPOINT_FINITETENSORS_H

#include "program/Shards.h"

#include <optional>
#include <span>
#include <string>

namespace weft::rt {

/// Returns why the tensor `name` after `step` steps is no good one to save or to go on from: the
/// first number in `bytes` that is not finite, and its index in the tensor. `bytes` are whole
/// elements of the region, without padding, from number `first` on. Returns nothing if all are
/// finite.
std::optional<std::string> notFiniteText(const std::string &name, ElementType type,
                                         const Region &region, std::span<const char> bytes,
                                         uint64_t first, int64_t step);

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_FINITETENSORS_H
