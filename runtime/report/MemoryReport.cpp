//===- MemoryReport.cpp - the use of a rank's memory ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryReport.h"

#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <utility>

using namespace weft::rt;

MemoryPeak weft::rt::memoryPeak(const Program &program) {
  const std::pair<const char *, std::vector<Action> Program::*> sections[] = {
      {"step", &Program::step}, {"evaluate", &Program::evaluate}, {"init", &Program::init}};
  MemoryPeak peak;
  for (const auto &[name, actions] : sections) {
    MemoryCourse course = findMemoryCourse(program, program.*actions);
    std::optional<Instant> own = course.peak();
    if (own && (peak.section.empty() || course.at(*own).aligned > peak.use.aligned)) {
      peak = {name, actions, *own, course.at(*own)};
    }
  }
  if (peak.section.empty()) {
    peak.use = persistentUse(program);
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
  return memoryReport(program, memoryPeak(program));
}

std::string weft::rt::memoryReport(const Program &program, const MemoryPeak &peak) {
  std::string text = concat(
      "memory of each rank", program.rankClasses > 1 ? concat(" of class ", program.rankClass) : "",
      ": ", bytesText(program.arenaBytes), ", in use ", bytesText(peak.use.total()));
  if (!peak.section.empty()) {
    Expansion section(program, program.*peak.actions);
    size_t number = section.beginOf(peak.instant.action) + peak.instant.instruction;
    text += concat(" at the peak (", peak.section, " instruction ", number, ", ",
                   section.label(number), ")");
  }
  text += ":\n ";
  for (size_t kind = 0; kind < kBufferClasses; ++kind) {
    bool isCommon = BufferClass(kind) != BufferClass::Workspace &&
                    BufferClass(kind) != BufferClass::ParameterCopy;
    uint64_t bytes = peak.use.bytes[kind];
    if (isCommon || bytes > 0) {
      text += concat(kind ? ", " : " ", nameOf(BufferClass(kind)), " ", bytesText(bytes));
    }
  }
  text += "\n";
  return program.deviceUses.empty() ? text : text + deviceReport(program);
}
