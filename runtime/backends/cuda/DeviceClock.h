//===- DeviceClock.h - takes the times of instructions on a device ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's clock tells when an instruction was issued, not when it was done. So a timer is
// recorded between any two instructions of a step, all of which are then on one stream, one after
// another; what the times say of instructions that run beside each other otherwise is what each
// takes alone. The time in which the host has given the device nothing to do is the next
// instruction's, as is that in which other ranks are waited for.
//
// Belongs to its rank's thread.
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
  /// Records the times of the last step's instructions. REQUIRES: all of them are done.
  Result read(StepTimes &times) const;

private:
  const DriverTable &library;
  Handle device = 0;
  std::vector<Handle> timers;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DEVICECLOCK_H
