//===- DeviceClock.h - takes the times of instructions on a device ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's clock shows when an instruction was issued, not when it was done. So the device
// records a timer between any two instructions of a step, and all instructions run one after
// another on one stream: instructions that usually overlap get the times that they take alone.
// Time in which the device is idle, or waits for other ranks, counts as the next instruction's.
//
// Only its rank's thread may use it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DEVICECLOCK_H
#define WEFT_RT_BACKENDS_CUDA_DEVICECLOCK_H

#include "backends/cuda/DriverTable.h"
#include "execution/StepTimes.h"

#include <vector>

namespace weft::rt::cuda {

class DeviceClock {
public:
  using Handle = DriverTable::Handle;
  using Result = DriverTable::Result;

  explicit DeviceClock(const DriverTable &library) : library(library) {}

  /// Makes timers for a step of `instructions`; `device` must stay open until they are freed.
  Result prepare(Handle device, size_t instructions);
  void free();

  Result begin(Handle stream) { return library.record(device, timers.front(), stream); }
  /// Enqueues a timer behind instruction `index`.
  Result lap(size_t index, Handle stream) {
    return library.record(device, timers[index + 1], stream);
  }
  /// Records the times of the last step's instructions. REQUIRES: all of them have just been done,
  /// since the host's clock now is taken for the end of the last.
  Result read(StepTimes &times) const;

private:
  const DriverTable &library;
  Handle device = 0;
  std::vector<Handle> timers;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DEVICECLOCK_H
