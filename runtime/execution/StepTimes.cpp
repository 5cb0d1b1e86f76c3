//===- StepTimes.cpp - times of a rank's instructions ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/StepTimes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace weft::rt;

StepTimes::StepTimes(size_t instructions, bool keepsSamples)
    : entries(instructions), samples(keepsSamples ? instructions * kSamples : 0) {}

static int64_t toNanoseconds(double seconds) { return std::llround(seconds * 1e9); }

void StepTimes::beginStep(double waited) {
  waitedBefore = waited;
  last = std::chrono::steady_clock::now();
  recordedUntil = nanosecondsOf(last);
  if (!isWarm && stepCount == 1) {
    isWarm = true;
    stepCount = 0;
    std::fill(entries.begin(), entries.end(), Entry());
  }
}

void StepTimes::beginBefore(double seconds) {
  recordedUntil = nanosecondsOf(std::chrono::steady_clock::now()) - toNanoseconds(seconds);
}

void StepTimes::lap(size_t index, double waited) {
  auto now = std::chrono::steady_clock::now();
  record(index, std::chrono::duration<double>(now - last).count(), waited - waitedBefore);
  last = now;
  waitedBefore = waited;
}

void StepTimes::record(size_t index, double seconds, double waited) {
  Entry &entry = entries[index];
  double busy = seconds - waited;
  entry.least = stepCount == 0 ? busy : std::min(entry.least, busy);
  entry.sum += seconds;
  entry.waited += waited;
  if (!samples.empty()) {
    samples[index * kSamples + size_t(stepCount) % kSamples] = float(busy);
  }
  if (!course.empty()) {
    const int64_t end = recordedUntil + toNanoseconds(seconds);
    course[index] = {recordedUntil, end, toNanoseconds(waited)};
    recordedUntil = end;
  }
}

void StepTimes::appendSamples(size_t index, std::vector<float> &times) const {
  if (!samples.empty()) {
    auto begin = samples.begin() + std::ptrdiff_t(index * kSamples);
    times.insert(times.end(), begin, begin + std::ptrdiff_t(std::min(size_t(stepCount), kSamples)));
  }
}

std::vector<char> StepTimes::bytes() const {
  size_t head = entries.size() * sizeof(Entry), tail = samples.size() * sizeof(float);
  std::vector<char> bytes(sizeof stepCount + head + tail);
  std::memcpy(bytes.data(), &stepCount, sizeof stepCount);
  std::copy_n(reinterpret_cast<const char *>(entries.data()), head,
              bytes.data() + sizeof stepCount);
  std::copy_n(reinterpret_cast<const char *>(samples.data()), tail,
              bytes.data() + sizeof stepCount + head);
  return bytes;
}

void StepTimes::assign(std::span<const char> bytes) {
  size_t head = entries.size() * sizeof(Entry), tail = samples.size() * sizeof(float);
  std::memcpy(&stepCount, bytes.data(), sizeof stepCount);
  std::copy_n(bytes.data() + sizeof stepCount, head, reinterpret_cast<char *>(entries.data()));
  std::copy_n(bytes.data() + sizeof stepCount + head, tail,
              reinterpret_cast<char *>(samples.data()));
}
