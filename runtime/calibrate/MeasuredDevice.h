//===- MeasuredDevice.h - a device that takes its own times -----------------===//
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

/// A rank's device, open until it is closed. Belongs to the rank's thread, which the communicator
/// tells of what goes wrong; from then on nothing is done, and all is left to the end of the
/// process.
class MeasuredDevice {
public:
  using Handle = cuda::DriverTable::Handle;
  using Address = cuda::DriverTable::Address;

  MeasuredDevice(const cuda::DriverTable &library, Communicator &link)
      : library(library), link(link) {}

  bool open();
  /// Frees what `allocate` gave, and the rest.
  bool close();

  /// Tells of what went wrong, if anything. Returns whether nothing did.
  bool check(cuda::DriverTable::Result result);
  /// Memory that is filled with numbers of any type that are neither 0 nor large: what multiplies
  /// zeros takes less power, and less time, than training does. As `allocateShared` gives it, or
  /// `allocate`. 0 where there is none.
  Address allocate(uint64_t bytes, bool isShared = false);
  bool free(Address address);
  /// Lets there be numbers of E4M3 that are neither 0 nor large.
  bool fillWithBytes(Address at, uint64_t bytes) { return fill(at, bytes, bytePattern); }
  /// Bytes that nobody has.
  uint64_t countFree();

  /// Takes the times of `work`, which enqueues on `stream` and returns whether it could; see
  /// Sampler.
  template <typename Work> Timing measure(Sampler &sampler, Work &&work) {
    return sampler.measureBy([&](int64_t repetitions) { return timed(repetitions, work); });
  }
  /// From here on waits by these, which see when another rank has failed.
  void communicateBy(const cuda::DeviceCollectives *collectives) {
    this->collectives = collectives;
  }
  /// Waits until all that was enqueued on `stream` is done.
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
  /// What memory is filled with, beside each other: numbers of most types, and in FP8.
  void *pattern = nullptr, *bytePattern = nullptr;
  std::vector<Allocation> allocations;
};

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEASUREDDEVICE_H
