//===- Simulator.h - simulates CUDA devices for tests --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that issues work to a device has errors that a device may not show for years: a missing
// event, memory that is freed a moment too early. A Simulator implements the table of DriverTable.h
// on the host. It does work in the order, among those allowed, that most likely shows such errors,
// and refuses every call that the real libraries need not support, with an error that says what was
// expected:
//
//   Simulator simulator({.seed = 7}, Counterparts(program, kernels));
//   simulator.library().open(0, &device, &facts);
//
// It runs the host's code of kernels, found by the names of their entries, so modules may hold any
// bytes. With every seed, correct use gives the same results and incorrect use fails; errors within
// kernels and in the host's accesses to pinned memory are found with some seeds only.
//
// Only one Simulator may exist at a time. Only one thread may call its own functions, while no
// other thread calls the table.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATOR_H
#define WEFT_RT_TESTING_SIMULATOR_H

#include "backends/cuda/DriverTable.h"
#include "testing/SimulatorCounterparts.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace weft::rt::cuda {

/// A condition that begins on `device` (-1 for none) after `after` units of work.
struct SimulatorDrill {
  int64_t device = -1;
  int64_t after = 0;
};

/// The bytes of local memory that entries whose names contain `name` use for each thread.
struct SimulatorLocal {
  std::string name;
  uint64_t bytes = 0;
};

/// The bytes of device memory that each call of `function` takes, beside those that it allocates.
struct SimulatorTaking {
  std::string function;
  uint64_t bytes = 0;
};

struct SimulatorSettings {
  /// Decides the order of work.
  uint64_t seed = 0;
  int64_t devices = 1;
  /// The memory of each device, and the pinned host memory for each device.
  uint64_t memoryBytes = 1 << 20, pinnedBytes = 1 << 20;
  /// Runs iterations of kernels in parts that the seed draws. The parts decide the last bits of
  /// some kernels.
  bool cutsKernels = true;
  /// Compute capability times ten.
  uint32_t architecture = 90;
  /// The next unit of work hangs until `giveUp`.
  SimulatorDrill stuck = {};
  /// From there on each unit of work takes `slowness` longer.
  SimulatorDrill slow = {};
  std::chrono::microseconds slowness{0};
  /// The longest time for which `await` waits for other devices, unless one is slow.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
  /// Allows memory to be registered as a window.
  bool hasWindows = true;
  /// The reason for which it refuses all attention; empty to run attention.
  std::string refusesAttention = {};
  /// The device memory of each loaded module, and the local memory of entries.
  uint64_t moduleBytes = 0;
  SimulatorLocal local = {};
  SimulatorTaking taking = {};
  /// The value of DeviceFacts::communicationBytes; the simulator does not take this memory.
  uint64_t communicationBytes = 0;
  /// Simulates one rank of a world whose other ranks are unreachable, as in other processes. Each
  /// collective then gets the rank's own data in place of theirs, so results are meaningless.
  bool isAlone = false;
  /// Computes and copies nothing, and allocates memory only when it is touched: for counting the
  /// calls of programs that this machine could not run. All observed values are then 0.
  bool isIdle = false;
};

class Simulator {
public:
  /// The number of threads of a device that may run at a time.
  static constexpr uint64_t kThreads = 64;

  Simulator(SimulatorSettings settings, Counterparts counterparts);
  ~Simulator();

  const DriverTable &library() const;

  /// Makes call `n` of a function of the table, counted from 1 over all devices, fail with `text`.
  void failAt(const std::string &function, int64_t n, const std::string &text);
  /// Makes the n-th enqueued work fail; copies, zeros, launches and matmuls count.
  void failWorkAt(int64_t n, const std::string &text);
  /// Returns the number of calls of a function.
  int64_t calls(const std::string &function) const;
  /// Returns the number of calls of each function that was called.
  std::map<std::string, int64_t> allCalls() const;

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATOR_H
