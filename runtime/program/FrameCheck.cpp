//===- FrameCheck.cpp - checks of frames ------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>
#include <optional>
#include <string>

using namespace weft::rt;

static Status checkSet(const Program &program, size_t number) {
  const FrameSet &set = program.frameSets[number];
  std::string name = concat("frame set ", number);
  const size_t most = std::max({program.init.size(), program.step.size(), program.evaluate.size()});
  if (set.offsets.empty() || set.offsets.size() > most) {
    return makeError(name, " has ", set.offsets.size(), " frames, expected at least 1 and at most ",
                     most, ", the most actions of a section");
  }
  for (size_t frame = 0; frame < set.offsets.size(); ++frame) {
    const uint64_t offset = set.offsets[frame];
    if (offset % kAlignment != 0 || set.bytes % kAlignment != 0) {
      return makeError("frame ", frame, " of set ", number, " lies at offset ", offset, " and has ",
                       set.bytes, " bytes, expected multiples of ", kAlignment);
    }
    if (uint64_t end = saturatingAdd(offset, set.bytes); end > program.arenaBytes) {
      return makeError("frame ", frame, " of set ", number, " ends at byte ", end,
                       ", the arena has ", program.arenaBytes, " bytes");
    }
  }
  return {};
}

Status weft::rt::checkFrames(const Program &program) {
  for (size_t i = 0; i < program.frameSets.size(); ++i) {
    if (Status status = checkSet(program, i); !status) {
      return status;
    }
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (!buffer.frameSet) {
      continue;
    }
    if (*buffer.frameSet >= program.frameSets.size()) {
      return makeError("buffer ", i, " lies in frame set ", *buffer.frameSet, ", the program has ",
                       program.frameSets.size());
    }
    if (buffer.persistent) {
      return makeError("buffer ", i, " lies in frame set ", *buffer.frameSet, " and is persistent");
    }
    for (uint64_t offset : program.frameSets[*buffer.frameSet].offsets) {
      if (offset % buffer.alignment() != 0) {
        return makeError("buffer ", i, " lies in frame set ", *buffer.frameSet,
                         ", which has a frame at offset ", offset, ", expected multiples of ",
                         buffer.alignment());
      }
    }
  }
  return {};
}

std::vector<FrameSetUse> weft::rt::findFrameSetUses(const Program &program, const Body &body) {
  std::vector<FrameSetUse> uses;
  for (size_t i = 0; i < body.instructions.size(); ++i) {
    for (const Operand &operand : body.instructions[i].operands) {
      const std::optional<uint32_t> set = program.buffers[operand.buffer].frameSet;
      if (set && std::ranges::find(uses, *set, &FrameSetUse::set) == uses.end()) {
        uses.push_back({*set, operand.buffer, i});
      }
    }
  }
  return uses;
}

Status weft::rt::checkFrames(const Program &program, const char *section, size_t number,
                             const Action &action, std::span<const FrameSetUse> uses) {
  auto where = [&] { return concat(section, " action ", number); };
  const std::string &body = program.bodies[action.body].name;
  for (const FrameSetUse &use : uses) {
    const bool hasFrame =
        std::ranges::find(action.frames, use.set, &FrameUse::set) != action.frames.end();
    if (!hasFrame) {
      return makeError(where(), " is for no frame of set ", use.set, ", but ", body,
                       " instruction ", use.instruction, " uses buffer ", use.buffer,
                       ", which lies in its frames");
    }
  }
  for (size_t i = 0; i < action.frames.size(); ++i) {
    auto [set, frame] = action.frames[i];
    if (std::ranges::find(uses, set, &FrameSetUse::set) == uses.end()) {
      return makeError(where(), " is for a frame of set ", set, ", but ", body,
                       " uses no buffer that lies in them");
    }
    if (frame >= program.frameSets[set].offsets.size()) {
      return makeError(where(), " is for frame ", frame, " of set ", set, ", which has ",
                       program.frameSets[set].offsets.size());
    }
    if (i > 0 && action.frames[i - 1].set >= set) {
      return makeError(where(), " names set ", set, " after set ", action.frames[i - 1].set,
                       ", expected sets in ascending order");
    }
  }
  return {};
}
