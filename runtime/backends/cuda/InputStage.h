//===- InputStage.h - inputs on their way to a device ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs of a step are given while the device may still be at work on the step before, which
// reads the inputs' buffers to its end. So a large input goes to memory beside the arena first,
// on a stream of its own while the step before goes on, and is copied from there, fast, when its
// turn has come:
//
//   host memory, two in turn  --copy stream-->  staging memory  --compute stream-->  arena
//
// A small one goes to the arena right away, behind the step before. The host waits for nothing:
// memory that it gave two inputs ago has been copied when it has seen a later place of the
// compute stream since, as it does in each step.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_INPUTSTAGE_H
#define WEFT_RT_BACKENDS_CUDA_INPUTSTAGE_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Program.h"

#include <array>
#include <span>
#include <vector>

namespace weft::rt::cuda {

class InputStage {
public:
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  InputStage(const Program &program, const DriverTable &library)
      : program(program), library(library) {}

  /// What `prepare` allocates of the host's memory; of the device's it is `Program::stagedBytes`.
  uint64_t hostBytes() const;

  /// Fails without an error where memory is missing, which `isReady` tells.
  DriverTable::Result prepare(Handle device);
  bool isReady() const { return isPrepared; }

  bool has(uint32_t buffer) const { return numberOf(buffer) < program.inputs.size(); }
  /// Memory for all of an input's bytes, which nothing reads; empty where the host first has to
  /// wait for the compute stream.
  std::span<char> take(uint32_t buffer);
  /// Enqueues that `count` bytes of it from `begin` on go to the input at `to` of the arena.
  DriverTable::Result send(Handle device, Handle compute, uint32_t buffer, uint64_t begin,
                           uint64_t count, Address to);
  /// The host has seen all that was enqueued on the compute stream so far.
  void notePassed() { ++passed; }

  /// Waits until nothing is under way, and frees what `prepare` has allocated.
  void free(Handle device);

private:
  struct Slot {
    uint64_t offset = 0;
    /// What `passed` was when it was sent last.
    uint64_t sent = 0;
    bool isUsed = false;
  };
  struct Input {
    std::array<Slot, 2> slots;
    size_t turn = 0;
    /// In the staging memory; only of large ones.
    uint64_t staged = 0;
    /// That it has come there, and that it has gone on.
    Handle came = 0, gone = 0;
    bool hasGone = false;
  };

  size_t numberOf(uint32_t buffer) const;
  uint64_t bytesOf(size_t number) const {
    return program.buffers[program.inputs[number].buffer].bytes;
  }
  uint64_t stagedOf(size_t number) const {
    return stagedBytes(program.buffers[program.inputs[number].buffer]);
  }

  const Program &program;
  const DriverTable &library;
  Handle stream = 0, last = 0;
  char *pinned = nullptr;
  Address staging = 0;
  std::vector<Input> inputs;
  uint64_t passed = 0;
  bool isPrepared = false;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_INPUTSTAGE_H
