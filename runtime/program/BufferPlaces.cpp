//===- BufferPlaces.cpp - the places of buffers in the arena ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/BufferPlaces.h"

#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;

uint64_t Program::offsetOf(uint32_t buffer, uint32_t frame) const {
  const Buffer &one = buffers[buffer];
  if (!one.frameSet) {
    return one.offset;
  }
  const FrameSet &set = frameSets[*one.frameSet];
  return set.offsets[frame] + one.offset;
}

uint32_t Program::frameOf(uint32_t buffer, std::span<const FrameUse> frames) const {
  if (std::optional<uint32_t> set = buffers[buffer].frameSet) {
    auto found = std::ranges::find(frames, *set, &FrameUse::set);
    return found == frames.end() ? 0 : found->frame;
  }
  return 0;
}

std::string weft::rt::nameOf(const Program &program, uint32_t buffer, uint32_t frame) {
  std::string name = concat("buffer ", buffer);
  return program.buffers[buffer].frameSet ? concat(name, " of frame ", frame) : name;
}

uint64_t weft::rt::alignmentOf(const Program &program) {
  uint64_t alignment = kAlignment;
  for (const Buffer &buffer : program.buffers) {
    alignment = std::max(alignment, buffer.alignment());
  }
  return alignment;
}

BufferPlaces::BufferPlaces(const Program &program) : program(program) {
  firsts.reserve(program.buffers.size() + 1);
  for (uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer) {
    firsts.push_back(uint32_t(places.size()));
    const Buffer &one = program.buffers[buffer];
    const size_t frames = one.frameSet ? program.frameSets[*one.frameSet].offsets.size() : 1;
    for (uint32_t frame = 0; frame < frames; ++frame) {
      uint64_t begin = program.offsetOf(buffer, frame);
      places.push_back({buffer, frame, begin, begin + one.bytes});
    }
  }
  firsts.push_back(uint32_t(places.size()));
}
