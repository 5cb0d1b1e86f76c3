//===- BufferLives.h - when buffers are needed ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One timeline stands for a whole run: the instructions of all bodies, each body
// once, in the order of their numbers, one instant each. Whatever the actions, a
// buffer's life covers every instant at which some action's run of that instruction
// needs the buffer. So buffers whose lives do not meet may share memory.
//
// A buffer is needed from an instruction that writes it to the last that reads this
// value, maybe in a later action, whose section it does not outlive; a persistent
// one always. A framed buffer has a life in each frame.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BUFFERLIVES_H
#define WEFT_RT_BUFFERLIVES_H

#include "weft-rt/BufferPlaces.h"

#include <cstdint>
#include <vector>

namespace weft::rt {

/// The first and last instant, both inclusive; none if `first > last`.
struct BufferLife {
  int64_t first = 0, last = -1;
};

struct BufferLives {
  /// One for each of the program's BufferPlaces.
  std::vector<BufferLife> lives;
  /// The instant of the first instruction of each body, and the number of instants.
  std::vector<int64_t> begins;
};

/// REQUIRES: actions name bodies and frames of the program. Skips operands that name no buffer.
BufferLives findBufferLives(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_BUFFERLIVES_H
