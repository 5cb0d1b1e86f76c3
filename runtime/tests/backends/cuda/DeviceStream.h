//===- DeviceStream.h - copies values to a device and back ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_DEVICESTREAM_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_DEVICESTREAM_H

#include "backends/cuda/DriverTable.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::rt::cuda {

/// A stream of an open device, and copies of values on it. All functions wait for the stream's
/// work. Any error fails the test. Only one thread may use it.
class DeviceStream {
public:
  explicit DeviceStream(const DriverTable &cuda) : cuda(cuda) {}

  void begin(DriverTable::Handle of) {
    device = of;
    ok(cuda.makeStream(device, &stream));
    ok(cuda.makeEvent(device, &event));
  }
  /// The device stays open.
  void end() {
    ok(cuda.freeEvent(device, event));
    ok(cuda.freeStream(device, stream));
  }

  static void ok(DriverTable::Result result) {
    EXPECT_EQ(result, nullptr) << (result ? result : "");
  }

  DriverTable::Address allocate(uint64_t bytes) {
    DriverTable::Address made = 0;
    ok(cuda.allocate(device, bytes, &made));
    return made;
  }

  /// Waits for all enqueued work.
  void finish() {
    ok(cuda.record(device, event, stream));
    ok(cuda.await(device, event));
  }

  /// Copies values to new device memory, which the caller frees.
  template <typename T> DriverTable::Address send(const std::vector<T> &values) {
    uint64_t bytes = values.size() * sizeof(T);
    DriverTable::Address made = allocate(bytes);
    void *place = pin(bytes);
    std::memcpy(place, values.data(), bytes);
    ok(cuda.copyToDevice(device, stream, made, place, bytes));
    finish();
    ok(cuda.freePinned(device, place));
    return made;
  }

  template <typename T> std::vector<T> fetch(DriverTable::Address from, size_t count) {
    std::vector<T> values(count);
    void *place = pin(count * sizeof(T));
    ok(cuda.copyToHost(device, stream, place, from, count * sizeof(T)));
    finish();
    std::memcpy(values.data(), place, count * sizeof(T));
    ok(cuda.freePinned(device, place));
    return values;
  }

  const DriverTable &cuda;
  DriverTable::Handle device = 0, stream = 0, event = 0;

private:
  void *pin(uint64_t bytes) {
    void *place = nullptr;
    ok(cuda.allocatePinned(device, bytes, &place));
    return place;
  }
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_DEVICESTREAM_H
