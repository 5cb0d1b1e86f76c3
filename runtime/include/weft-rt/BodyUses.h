//===- BodyUses.h - how a body uses buffers ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an action does to a buffer depends only on its body, so lives of buffers follow
// from the uses of each body, found once, and from the order of actions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BODYUSES_H
#define WEFT_RT_BODYUSES_H

#include "weft-rt/Program.h"

#include <cstdint>
#include <vector>

namespace weft::rt {

/// The numbers of the first and the last instruction of a body that use a buffer.
struct BufferUse {
  uint32_t buffer = 0;
  int64_t first = 0, last = 0;
  /// The body needs the value from before.
  bool readsBefore = false;
};

/// Returns the uses of all buffers but persistent ones, in the order of buffers. Skips operands
/// that name no buffer.
std::vector<BufferUse> findUses(const Program &program, const Body &body);
/// Returns the uses of each body.
std::vector<std::vector<BufferUse>> findUses(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_BODYUSES_H
