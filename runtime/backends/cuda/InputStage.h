//===- InputStage.h - copies inputs to a device during the step before -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host sets a step's inputs while the device may still run the step before, which reads the
// input buffers until its end. So a large input is first copied to staging memory beside the arena,
// on a stream of its own, during the step before, and then, fast, from there to the arena:
//
//   two slots of host memory  --copy stream-->  staging memory  --compute stream-->  arena
//
// A small input is copied directly to the arena, behind the step before. The host never waits: it
// reuses a slot once it has seen the compute stream pass a point behind the slot's copy, as it does
// in each step.
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

  /// Returns the bytes of host memory that `prepare` allocates. It also allocates
  /// `Program::stagedBytes` of device memory.
  uint64_t hostBytes() const;

  /// Allocates all memory. If memory is missing, returns no error but `isReady()` stays false.
  DriverTable::Result prepare(Handle device);
  bool isReady() const { return isPrepared; }

  bool has(uint32_t buffer) const { return numberOf(buffer) < program.inputs.size(); }
  /// Returns a free slot of host memory for an input's bytes; empty if the host must first wait for
  /// the compute stream.
  std::span<char> take(uint32_t buffer);
  /// Enqueues a copy of bytes [begin, begin + count) of the taken slot to the input's buffer, which
  /// begins at `to` in the arena.
  DriverTable::Result send(Handle device, Handle compute, uint32_t buffer, uint64_t begin,
                           uint64_t count, Address to);
  /// Records that the compute stream has done all work enqueued so far.
  void notePassed() { ++passed; }

  /// Waits for all copies, and frees the memory of `prepare`.
  void free(Handle device);

private:
  struct Slot {
    uint64_t offset = 0;
    /// The value of `passed` when the slot was last sent.
    uint64_t sent = 0;
    bool isUsed = false;
  };
  struct Input {
    std::array<Slot, 2> slots;
    size_t turn = 0;
    /// The input's offset in the staging memory; only for large inputs.
    uint64_t staged = 0;
    /// Events behind the copies to and from the staging memory.
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
