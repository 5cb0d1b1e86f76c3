//===- MemoryReport.cpp - the use of a rank's memory ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryReport.h"

#include "support/Text.h"

#include <optional>

using namespace weft::rt;

namespace {

struct Lifetime {
  size_t first = 0, last = 0;
};

std::vector<std::optional<Lifetime>> lifetimes(const Program &program) {
  std::vector<std::optional<Lifetime>> result(program.buffers.size());
  for (size_t index = 0; index < program.step.size(); ++index) {
    for (const Operand &operand : program.step[index].operands) {
      std::optional<Lifetime> &lifetime = result[operand.buffer];
      lifetime = Lifetime{lifetime ? lifetime->first : index, index};
    }
  }
  return result;
}

} // namespace

MemoryPeak weft::rt::memoryPeak(const Program &program) {
  std::vector<std::optional<Lifetime>> lives = lifetimes(program);
  std::vector<std::vector<uint32_t>> begin(program.step.size() + 1), end(program.step.size() + 1);
  MemoryPeak now;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (buffer.persistent) {
      now.bytes[size_t(buffer.kind)] += buffer.bytes;
      now.total += buffer.bytes;
    } else if (lives[i]) {
      begin[lives[i]->first].push_back(i);
      end[lives[i]->last + 1].push_back(i);
    }
  }
  MemoryPeak peak = now;
  for (size_t index = 0; index < program.step.size(); ++index) {
    for (uint32_t i : end[index]) {
      now.bytes[size_t(program.buffers[i].kind)] -= program.buffers[i].bytes;
      now.total -= program.buffers[i].bytes;
    }
    for (uint32_t i : begin[index]) {
      now.bytes[size_t(program.buffers[i].kind)] += program.buffers[i].bytes;
      now.total += program.buffers[i].bytes;
    }
    now.instruction = index;
    peak = now.total > peak.total ? now : peak;
  }
  return peak;
}

const char *weft::rt::nameOf(DevicePart part) {
  static constexpr const char *names[] = {"context", "libraries", "communicators",
                                          "inputs",  "code",      "stacks"};
  return names[size_t(part)];
}

uint64_t Program::deviceBytes() const {
  uint64_t bytes = arenaBytes;
  for (const DeviceUse &use : deviceUses) {
    bytes += use.bytes.value_or(0);
  }
  return bytes;
}

/// Returns "memory of each device: 45.10 GiB, beside the arena context 500.00 MiB, ...; not known:
/// libraries".
static std::string deviceReport(const Program &program) {
  std::string known, unknown;
  for (const DeviceUse &use : program.deviceUses) {
    std::string &text = use.bytes ? known : unknown;
    text += concat(text.empty() ? " " : ", ", nameOf(use.part));
    text += use.bytes ? " " + bytesText(*use.bytes) : "";
  }
  std::string text = concat("memory of each device: ", bytesText(program.deviceBytes()));
  text += known.empty() ? "" : ", beside the arena" + known;
  text += unknown.empty() ? "" : "; not known:" + unknown;
  return text + "\n";
}

std::string weft::rt::memoryReport(const Program &program) {
  MemoryPeak peak = memoryPeak(program);
  std::string text = concat("memory of each rank: ", bytesText(program.arenaBytes), ", in use ",
                            bytesText(peak.total));
  if (!program.step.empty()) {
    text += concat(" at the peak (step instruction ", peak.instruction, ", ",
                   program.labels[program.step[peak.instruction].label], ")");
  }
  text += ":\n ";
  for (size_t kind = 0; kind < kBufferClasses; ++kind) {
    bool isCommon = BufferClass(kind) != BufferClass::Workspace &&
                    BufferClass(kind) != BufferClass::ParameterCopy;
    if (!isCommon && peak.bytes[kind] == 0) {
      continue;
    }
    text += concat(kind ? ", " : " ", nameOf(BufferClass(kind)), " ", bytesText(peak.bytes[kind]));
  }
  text += "\n";
  return program.deviceUses.empty() ? text : text + deviceReport(program);
}
