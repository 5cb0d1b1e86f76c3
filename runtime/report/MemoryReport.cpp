//===- MemoryReport.cpp - the use of a rank's memory ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryReport.h"

#include "support/Text.h"
#include "weft-rt/BufferLives.h"
#include "weft-rt/Expansion.h"

#include <numeric>

using namespace weft::rt;

MemoryPeak weft::rt::memoryPeak(const Program &program) {
  auto [lives, begins] = findBufferLives(program);
  // The bytes of each class that begin and end at an instant.
  using Bytes = std::array<uint64_t, kBufferClasses>;
  std::vector<Bytes> begin(size_t(begins.back()) + 1), end(size_t(begins.back()) + 1);
  BufferPlaces places(program);
  for (size_t i = 0; i < places.size(); ++i) {
    const Buffer &buffer = program.buffers[places[i].buffer];
    if (buffer.persistent || lives[i].first <= lives[i].last) {
      begin[size_t(lives[i].first)][size_t(buffer.kind)] += buffer.bytes;
      end[size_t(lives[i].last)][size_t(buffer.kind)] += buffer.bytes;
    }
  }
  std::vector<Bytes> during(begin.size());
  Bytes now = {};
  for (size_t time = 0; time < during.size(); ++time) {
    for (size_t kind = 0; kind < kBufferClasses; ++kind) {
      now[kind] += begin[time][kind];
      during[time][kind] = now[kind];
      now[kind] -= end[time][kind];
    }
  }
  MemoryPeak peak;
  Expansion step(program, program.step);
  std::vector<bool> isSeen(program.bodies.size(), false);
  for (size_t action = 0; action < program.step.size(); ++action) {
    uint32_t body = program.step[action].body;
    for (int64_t time = begins[body]; !isSeen[body] && time < begins[body + 1]; ++time) {
      const Bytes &bytes = during[size_t(time)];
      uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
      if (total > peak.total) {
        peak = {bytes, total, step.beginOf(action) + size_t(time - begins[body])};
      }
    }
    isSeen[body] = true;
  }
  if (step.empty()) { // Persistent buffers alone.
    peak = {during[0], std::accumulate(during[0].begin(), during[0].end(), uint64_t(0)), 0};
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
  std::string text = concat(
      "memory of each rank", program.rankClasses > 1 ? concat(" of class ", program.rankClass) : "",
      ": ", bytesText(program.arenaBytes), ", in use ", bytesText(peak.total));
  Expansion step(program, program.step);
  if (!step.empty()) {
    text += concat(" at the peak (step instruction ", peak.instruction, ", ",
                   step.label(peak.instruction), ")");
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
