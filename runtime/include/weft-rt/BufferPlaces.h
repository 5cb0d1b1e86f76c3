//===- BufferPlaces.h - the places of buffers in the arena ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer has one place in the arena, or one in each frame of its set. Each place holds
// a value of its own, so checks number places and follow what each of them holds. Places
// are numbered by buffer and then by frame: without frames, a place has its buffer's
// number.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BUFFERPLACES_H
#define WEFT_RT_BUFFERPLACES_H

#include "weft-rt/Program.h"

#include <string>
#include <vector>

namespace weft::rt {

/// Returns the alignment of all that lies in the arena, in frames too: the largest of any buffer.
uint64_t alignmentOf(const Program &program);

/// Bytes `begin` to `end - 1` of the arena.
struct BufferPlace {
  uint32_t buffer = 0;
  /// 0 if the buffer is not framed.
  uint32_t frame = 0;
  uint64_t begin = 0, end = 0;
};

class BufferPlaces {
public:
  /// The program must outlive this object, and keep its buffers and frames. REQUIRES: buffers name
  /// frame sets of the program.
  explicit BufferPlaces(const Program &program);

  size_t size() const { return places.size(); }
  const BufferPlace &operator[](size_t number) const { return places[number]; }

  /// Returns the number of the place to which operands of `buffer` refer in an action of these
  /// frames. REQUIRES: the buffer's is one of them, if it is framed.
  uint32_t find(uint32_t buffer, std::span<const FrameUse> frames = {}) const {
    return firsts[buffer] + program.frameOf(buffer, frames);
  }
  /// Returns all places of a buffer.
  std::span<const BufferPlace> of(uint32_t buffer) const {
    return std::span(places).subspan(firsts[buffer], firsts[buffer + 1] - firsts[buffer]);
  }
  /// Returns "buffer 5" or "buffer 5 of frame 1".
  std::string name(size_t number) const {
    return nameOf(program, places[number].buffer, places[number].frame);
  }

private:
  const Program &program;
  std::vector<BufferPlace> places;
  /// The number of each buffer's first place, and of all places.
  std::vector<uint32_t> firsts;
};

} // namespace weft::rt

#endif // WEFT_RT_BUFFERPLACES_H
