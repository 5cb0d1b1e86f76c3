//===- FrameCheck.cpp - checks of frames ------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

using namespace weft::rt;

static Status checkSet(const Program &program, size_t number) {
  const FrameSet &set = program.frameSets[number];
  std::string name = concat("frame set ", number);
  if (set.count == 0 || set.count > uint64_t(program.microBatches)) {
    return makeError(name, " has ", set.count, " frames, expected at least 1 and at most ",
                     program.microBatches, ", the number of micro-batches");
  }
  if (set.offset % kAlignment != 0 || set.bytes % kAlignment != 0) {
    return makeError(name, " lies at offset ", set.offset, " in frames of ", set.bytes,
                     " bytes, expected multiples of ", kAlignment);
  }
  uint64_t end = saturatingAdd(set.offset, saturatingMul(set.count, set.bytes));
  if (end > program.arenaBytes) {
    return makeError(name, " ends at byte ", end, ", the arena has ", program.arenaBytes, " bytes");
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
    if (buffer.persistent || buffer.kind == BufferClass::Workspace) {
      return makeError("buffer ", i, " lies in frame set ", *buffer.frameSet, " and is ",
                       buffer.persistent ? "persistent" : "a workspace");
    }
  }
  return {};
}

Status weft::rt::checkFrame(const Program &program, const std::string &where,
                            const Action &action) {
  const Body &body = program.bodies[action.body];
  bool isNeeded = false;
  for (size_t i = 0; i < body.instructions.size(); ++i) {
    for (const Operand &operand : body.instructions[i].operands) {
      const Buffer &buffer = program.buffers[operand.buffer];
      if (!buffer.frameSet) {
        continue;
      }
      isNeeded = true;
      std::string user = concat(body.name, " instruction ", i, " uses buffer ", operand.buffer);
      uint32_t count = program.frameSets[*buffer.frameSet].count;
      if (!action.microBatch || !action.frame) {
        return makeError(where, " is for no ", action.microBatch ? "frame" : "micro-batch",
                         ", but ", user, ", which lies in frames");
      }
      if (*action.frame >= count) {
        return makeError(where, " is for frame ", *action.frame, ", but ", user, ", which lies in ",
                         count);
      }
    }
  }
  if (action.frame && !isNeeded) {
    return makeError(where, " is for frame ", *action.frame, ", but ", body.name,
                     " uses no buffer that lies in frames");
  }
  return {};
}
