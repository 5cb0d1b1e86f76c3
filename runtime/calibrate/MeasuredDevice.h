//===- MeasuredDevice.h - measures work with a device's own clock -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_MEASUREDDEVICE_H
#define WEFT_RT_CALIBRATE_MEASUREDDEVICE_H

#include "backends/cuda/DeviceCollectives.h"
#include "calibrate/Sampler.h"

namespace weft::rt::calibrate {

/// A rank's device. Only the rank's thread may use it. An error fails the communicator; from then
/// on no function does anything, and nothing is freed before the process ends.
class MeasuredDevice {
public:
  using Handle = cuda::DriverTable::Handle;
  using Address = cuda::DriverTable::Address;

  MeasuredDevice(const cuda::DriverTable &library, Communicator &link)
      : library(library), link(link) {}

  bool open();
  /// Frees all memory of `allocate` and closes the device.
  bool close();

  /// Returns true if `result` is a success; else fails the communicator.
  bool check(cuda::DriverTable::Result result);
  /// Allocates memory by the table's `allocate` or `allocateShared`, and fills it with numbers that
  /// are neither 0 nor large in most element types: matmuls of zeros take less power, and less
  /// time, than training. Returns 0 if memory is missing.
  Address allocate(uint64_t bytes, bool isShared = false);
  bool free(Address address);
  /// Fills memory with numbers of E4M3 that are neither 0 nor large.
  bool fillWithBytes(Address at, uint64_t bytes) { return fill(at, bytes, bytePattern); }
  /// Returns the free bytes of the device's memory.
  uint64_t countFree();

  /// Takes the times of `work`, which enqueues on `stream` and returns false on an error. See
  /// Sampler.
  template <typename Work> Timing measure(Sampler &sampler, Work &&work) {
    return sampler.measureBy([&](int64_t repetitions) { return timed(repetitions, work); });
  }
  /// From here on waits by `collectives`, which notice when another rank has failed.
  void communicateBy(const cuda::DeviceCollectives *collectives) {
    this->collectives = collectives;
  }
  /// Waits until all work enqueued on `stream` is done.
  bool finish();

  Handle device = 0, stream = 0;
  cuda::DeviceFacts facts = {};

private:
  template <typename Work> double timed(int64_t repetitions, Work &work) {
    bool isGood = !link.stopped() && check(library.record(device, begin, stream));
    for (int64_t i = 0; isGood && i < repetitions; ++i) {
      isGood = work();
    }
    double seconds = 0;
    isGood = isGood && check(library.record(device, end, stream)) && await(end) &&
             check(library.elapsed(device, begin, end, &seconds));
    return std::max(seconds, 1e-9);
  }
  bool await(Handle event);
  bool fill(Address at, uint64_t bytes, const void *with);

  struct Allocation {
    Address at = 0;
    bool isShared = false;
  };

  const cuda::DriverTable &library;
  Communicator &link;
  const cuda::DeviceCollectives *collectives = nullptr;
  /// Timers around a sample.
  Handle begin = 0, end = 0;
  /// Pinned memory with the numbers to fill with: for most types, and for FP8.
  void *pattern = nullptr, *bytePattern = nullptr;
  std::vector<Allocation> allocations;
};

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEASUREDDEVICE_H
