//===- CudaBench.h - a simulator with streams, memory and kernels -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_TESTING_CUDABENCH_H
#define WEFT_RT_TESTS_TESTING_CUDABENCH_H

#include "testing/Simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace weft::rt::cuda {

using Handle = DriverTable::Handle;
using Address = DriverTable::Address;
using CallResult = DriverTable::Result;

inline constexpr int64_t kBenchCount = 64;
inline constexpr uint64_t kBenchBytes = kBenchCount * sizeof(double);

/// out[i] = in[i] * immediate + coordinate.
inline void benchScale(void *const *buffers, const int64_t *immediates, const int64_t *coordinates,
                       int64_t, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    static_cast<double *>(buffers[1])[i] =
        static_cast<const double *>(buffers[0])[i] * double(immediates[0]) + double(coordinates[0]);
  }
}

/// Writes one byte past the end of its operand.
inline void benchOverrun(void *const *buffers, const int64_t *, const int64_t *, int64_t, int64_t,
                         int64_t) {
  std::memset(buffers[0], 0, kBenchBytes + 1);
}

/// The ranges of iterations that "trace" ran.
inline std::vector<std::pair<int64_t, int64_t>> benchParts;

inline void benchTrace(void *const *, const int64_t *, const int64_t *, int64_t, int64_t begin,
                       int64_t end) {
  benchParts.emplace_back(begin, end);
}

inline Counterparts benchCounterparts() {
  Counterparts counterparts;
  counterparts.entries["scale_phase_0"] = {
      benchScale,
      0,
      {kBenchCount},
      sizeof(int64_t),
      {{kBenchBytes, Access::Read}, {kBenchBytes, Access::Write}},
      1};
  counterparts.entries["overrun_phase_0"] = {
      benchOverrun, 0, {1}, sizeof(int64_t), {{kBenchBytes, Access::Write}}, 0};
  counterparts.entries["trace_phase_0"] = {benchTrace, 0, {kBenchCount}, sizeof(int64_t), {}, 0};
  counterparts.entries["late_phase_1"] = {
      benchTrace, 1, {kBenchCount}, sizeof(int64_t), {{kBenchBytes, Access::Write}}, 0};
  // A phase that a device has beyond the host's, for blocks of 64 threads.
  counterparts.entries["block_phase_0"] = {benchTrace, 0, {}, sizeof(int64_t), {}, 0, 64};
  return counterparts;
}

/// 4 x 4 of f32, 64 bytes an operand.
inline constexpr Matmul kBenchMatmul = {
    .type = ElementType::F32, .m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldc = 4};

/// A device with two streams, an event, memory that is all zero but for `blank`, and a module.
struct Bench {
  explicit Bench(uint64_t seed, bool cutsKernels = true)
      : Bench({.seed = seed, .devices = 2, .cutsKernels = cutsKernels}) {}
  Bench(uint64_t seed, SimulatorDrill stuck)
      : Bench({.seed = seed, .devices = 2, .stuck = stuck}) {}
  explicit Bench(const SimulatorSettings &settings) : simulator(settings, benchCounterparts()) {
    ok(cuda.open(0, &device, &facts));
    stream = makeStream();
    other = makeStream();
    event = makeEvent();
    for (Address *address : {&a, &b, &c, &blank}) {
      *address = allocate();
    }
    pinned = allocatePinned();
    std::memset(pinned, 0, kBenchBytes);
    ok(cuda.load(device, "an image", &module));
    scale = entry("scale_phase_0");
    for (Address address : {a, b, c}) {
      ok(cuda.zero(device, stream, address, kBenchBytes));
    }
    drain(stream);
  }

  static void ok(CallResult result) { EXPECT_EQ(result, nullptr) << result; }

  /// Waits on the host for all work of a stream.
  CallResult finish(Handle awaited) {
    Handle last = makeEvent();
    ok(cuda.record(device, last, awaited));
    return cuda.await(device, last);
  }
  void drain(Handle awaited) { ok(finish(awaited)); }

  /// Makes stream `behind` wait for all work enqueued on `before`.
  void order(Handle before, Handle behind) {
    ok(cuda.record(device, event, before));
    ok(cuda.wait(device, behind, event));
  }

  Handle makeStream() {
    Handle made = 0;
    ok(cuda.makeStream(device, &made));
    return made;
  }
  Handle makeEvent() {
    Handle made = 0;
    ok(cuda.makeEvent(device, &made));
    return made;
  }
  Address allocate(uint64_t bytes = kBenchBytes) {
    Address made = 0;
    ok(cuda.allocate(device, bytes, &made));
    return made;
  }
  char *allocatePinned() {
    void *made = nullptr;
    ok(cuda.allocatePinned(device, kBenchBytes, &made));
    return static_cast<char *>(made);
  }
  Handle entry(const char *name) {
    Handle found = 0;
    ok(cuda.entry(device, module, name, &found));
    return found;
  }
  CallResult prepare(Matmul matmul, uint64_t workspaceBytes, Handle *made) {
    MatmulAlgorithm way = {};
    matmul.workspaceBytes = workspaceBytes;
    return cuda.prepareMatmul(device, &matmul, &way, made);
  }
  Handle prepareMatmul(uint64_t workspaceBytes = 0) {
    Handle made = 0;
    ok(prepare(kBenchMatmul, workspaceBytes, &made));
    return made;
  }
  CallResult runMatmul(Handle on, Handle matmul, Address first, Address second, Address result,
                       Address workspace = 0) {
    MatmulPlaces places = {first, second, result, 0, 0, 0, 0, workspace};
    return cuda.runMatmul(device, on, matmul, &places);
  }
  Handle openSecond() {
    Handle opened = 0;
    ok(cuda.open(1, &opened, &facts));
    return opened;
  }

  /// Launches "scale", whose coordinates are at `c`.
  CallResult launch(Handle on, Address from, Address to, uint64_t factor = 1) {
    const uint64_t arguments[] = {c, from, to, factor};
    return cuda.launch(device, on, scale, 2, 64, arguments, 4);
  }
  CallResult copy(Handle on, Address to, Address from) {
    return cuda.copy(device, on, to, from, kBenchBytes);
  }
  CallResult zero(Handle on, Address at) { return cuda.zero(device, on, at, kBenchBytes); }
  CallResult send(Handle on, Address to) {
    return cuda.copyToDevice(device, on, to, pinned, kBenchBytes);
  }
  CallResult fetch(Handle on, Address from) {
    return cuda.copyToHost(device, on, pinned, from, kBenchBytes);
  }

  Simulator simulator;
  const DriverTable &cuda = simulator.library();
  DeviceFacts facts = {};
  Handle device = 0, stream = 0, other = 0, event = 0, module = 0, scale = 0;
  Address a = 0, b = 0, c = 0, blank = 0;
  char *pinned = nullptr;
};

/// A wrong use that the simulator must refuse.
struct Misused {
  const char *name;
  /// A part of the expected error.
  const char *text;
  /// Makes the wrong use, and returns the result of its last call.
  CallResult (*run)(Bench &bench);
};

inline std::string nameOfMisused(const testing::TestParamInfo<Misused> &info) {
  return info.param.name;
}

inline void expectRefused(const Misused &misused) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Bench bench(seed);
    CallResult result = misused.run(bench);
    ASSERT_NE(result, nullptr) << "seed " << seed;
    EXPECT_THAT(result, testing::HasSubstr(misused.text));
  }
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTS_TESTING_CUDABENCH_H
