//===- Simulator.h - the table for tests, without a device ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that issues work to a device is wrong in ways that a device may not show for years: an event
// that is missing, memory that is freed a moment too early. A Simulator gives the table of
// DriverTable.h, does all work on the host, in the order that suits least, and refuses every call
// that the real libraries need not support, with a text that says what was expected:
//
//   Simulator simulator({.seed = 7}, Counterparts(program, kernels));
//   simulator.library().open(0, &device, &facts);
//
// Kernels are the host's, found by the names of their entries, so modules may be of any bytes.
// Whatever the seed, a use that is right has the same results, and one that is wrong fails, but for
// faults in kernels and in what the host does with pinned memory, which need luck.
//
// One Simulator at a time. Its own functions are for one thread, while no other calls the table.
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

/// Something that begins on a device behind so many units of work.
struct SimulatorDrill {
  int64_t device = -1;
  int64_t after = 0;
};

/// Bytes that entries whose names have `name` in them keep for each thread.
struct SimulatorLocal {
  std::string name;
  uint64_t bytes = 0;
};

/// Bytes that each call of a function takes of the device's memory, beside what it is for.
struct SimulatorTaking {
  std::string function;
  uint64_t bytes = 0;
};

struct SimulatorSettings {
  /// Decides the order of work.
  uint64_t seed = 0;
  int64_t devices = 1;
  /// Of each device, and of the host for each device.
  uint64_t memoryBytes = 1 << 20, pinnedBytes = 1 << 20;
  /// Whether iterations of kernels are run in parts that the seed draws. Where parts begin
  /// decides last bits of some kernels.
  bool cutsKernels = true;
  /// Compute capability times ten.
  uint32_t architecture = 90;
  /// The next unit of work does not end until the device is given up.
  SimulatorDrill stuck = {};
  /// Each unit of work takes so much longer.
  SimulatorDrill slow = {};
  std::chrono::microseconds slowness{0};
  /// Whether memory can be registered as a window.
  bool hasWindows = true;
  /// Why it does no attention; does it where this is empty.
  std::string refusesAttention = {};
  /// What code takes of a device's memory: a module that is loaded, and threads of entries.
  uint64_t moduleBytes = 0;
  SimulatorLocal local = {};
  SimulatorTaking taking = {};
  /// What it says of DeviceFacts::communicationBytes, and does not take.
  uint64_t communicationBytes = 0;
  /// Whether all other ranks of a world are out of reach, as in other processes. What they would
  /// bring is then what a rank brings itself, so numbers mean nothing.
  bool isAlone = false;
  /// Whether nothing is computed or copied, so that memory is not there before somebody touches it:
  /// for counting calls, of programs that this machine could not run. What is observed is then 0.
  bool isIdle = false;
};

class Simulator {
public:
  /// How many threads of a device may run at a time.
  static constexpr uint64_t kThreads = 64;

  Simulator(SimulatorSettings settings, Counterparts counterparts);
  ~Simulator();

  const DriverTable &library() const;

  /// Lets call `n` of a function of the table, counted from 1 over all devices, fail with `text`.
  void failAt(const std::string &function, int64_t n, const std::string &text);
  /// Lets work fail: the n-th that is enqueued, which are copies, zeros, launches and matmuls.
  void failWorkAt(int64_t n, const std::string &text);
  /// How often a function was called.
  int64_t calls(const std::string &function) const;
  /// Of all that were called.
  std::map<std::string, int64_t> allCalls() const;

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATOR_H
