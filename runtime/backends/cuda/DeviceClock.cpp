//===- DeviceClock.cpp - takes the times of instructions on a device -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/DeviceClock.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

DriverTable::Result DeviceClock::prepare(Handle device, size_t instructions) {
  this->device = device;
  for (size_t i = 0; i <= instructions; ++i) {
    Handle timer = 0;
    if (Result failed = library.makeTimer(device, &timer)) {
      return failed;
    }
    timers.push_back(timer);
  }
  return nullptr;
}

void DeviceClock::free() {
  for (Handle timer : timers) {
    library.freeEvent(device, timer);
  }
  timers.clear();
}

DriverTable::Result DeviceClock::read(StepTimes &times) const {
  double whole = 0;
  if (Result failed = library.elapsed(device, timers.front(), timers.back(), &whole)) {
    return failed;
  }
  times.beginBefore(whole);
  for (size_t index = 0; index + 1 < timers.size(); ++index) {
    double seconds = 0;
    if (Result failed = library.elapsed(device, timers[index], timers[index + 1], &seconds)) {
      return failed;
    }
    times.record(index, seconds, 0);
  }
  return nullptr;
}
