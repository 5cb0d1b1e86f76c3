//===- Executor.h - runs one rank's program ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owns a rank's arena and walks the program's instruction lists over it. All that
// an instruction needs (addresses, arguments, prepared collectives) is put in
// place by `prepare`; running a section then allocates nothing.
//
// An Executor belongs to its rank's thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_EXECUTOR_H
#define WEFT_RT_CORE_EXECUTOR_H

#include "core/BufferView.h"
#include "core/Overflow.h"
#include "core/PreparedProduct.h"
#include "core/StepTimes.h"
#include "core/Team.h"
#include "weft-rt/Backend.h"
#include "weft-rt/Program.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace weft::rt {

/// Gets what the program observes, on every rank, in the rank's thread.
class Observer {
public:
  virtual ~Observer() = default;

  /// Whether this step's value is to be brought: where buffers are not in host memory that is a
  /// copy, for which the device has to come to an end of its work. Scalars that decide if the run
  /// goes on, and what has a limit, are brought in any case.
  virtual bool wants(int64_t /*rank*/, uint32_t /*observation*/) { return true; }

  /// `data` is the rank's piece of `program.observations[observation]`, until this returns.
  virtual void observe(int64_t rank, uint32_t observation, const void *data) = 0;
};

/// How a section ended.
enum class Outcome : uint8_t {
  Done,
  /// This rank or another has failed; the communicator knows why.
  Stopped,
  /// On some rank the loss, the gradient norm or the validation loss is not finite. All ranks stand
  /// behind the same Observe instruction, `stoppedAt`.
  NotFinite,
  /// On some rank an observation was above its limit. All ranks stand behind the same Observe
  /// instruction of a scalar that must be finite, which comes after.
  Overflow,
};

class Executor {
public:
  /// `program` and `kernels` must outlive this object; `kernels[i]` is the code of
  /// `program.kernels[i]`. The program must be well-formed. `threads` share the work of
  /// kernels and products, which is cut for `program.threadsPerRank` however many they are: bits
  /// do not depend on them.
  Executor(const Program &program, const KernelCode *kernels, int64_t rank, int64_t threads = 1);

  /// Allocates the arena, all zero, and prepares every instruction. To be called once,
  /// by the rank's own thread, so that memory comes from near its core. On failure
  /// tells the communicator and returns false.
  bool prepare(Communicator &communicator, Observer &observer);

  Outcome runInit() { return runSection(initCode); }
  Outcome runStep() { return runSection(stepCode, times); }
  Outcome runEvaluate() { return runSection(evaluateCode); }

  /// From now on keeps the times of steps in `times`, which must outlive this object; null for
  /// not.
  void measure(StepTimes *times) { this->times = times; }

  /// Runs one instruction of the step.
  Outcome runStepInstruction(size_t index) { return execute(stepCode[index]); }

  /// The Observe instruction at which a step ended with NotFinite.
  size_t stoppedAt() const { return notFiniteAt; }

  /// What this rank has to tell of limits in the section that ran last.
  const std::optional<Overflow> &overflow() const { return beyond; }

  /// Bytes `begin` to before `begin + count` of a buffer as they are now. If a device fails to copy
  /// them, it has told the communicator, and what a view shows, or a draft changes, is unspecified:
  /// the rank's next collective returns false.
  BufferView view(uint32_t buffer, uint64_t begin, uint64_t count) const;
  BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count);
  void zero(uint32_t buffer);

  /// The whole buffer.
  BufferView view(uint32_t buffer) const { return view(buffer, 0, program.buffers[buffer].bytes); }
  BufferDraft draft(uint32_t buffer) { return draft(buffer, 0, program.buffers[buffer].bytes); }

  /// Copies `bytes` into a buffer, from its byte `begin` on.
  void write(uint32_t buffer, uint64_t begin, std::span<const char> bytes);

  int64_t rank() const { return self; }
  std::span<const int64_t> coordinates() const { return place; }
  Communicator &communicator() const { return *link; }

private:
  /// An instruction with everything looked up.
  struct Prepared {
    Opcode opcode = Opcode::Kernel;
    /// Product or observation number.
    uint32_t target = 0;
    Communicator::Handle handle = 0;
    const KernelCode *kernel = nullptr;
    /// For Kernel: how the iterations of each phase are cut for threads, in `cuts`.
    const Cut *cuts = nullptr;
    /// Addresses of the operands, in `addresses`.
    void *const *operands = nullptr;
    const int64_t *immediates = nullptr;
    /// For Observe: where the value is, and whether it decides if the run goes on.
    uint32_t buffer = 0;
    bool mustBeFinite = false;
    /// Likewise: whether it has a limit.
    bool hasLimit = false;
  };

  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };

  char *address(uint32_t buffer) const { return arena.get() + program.buffers[buffer].offset; }
  bool allocateArena();
  bool prepareProducts();
  uint64_t operandBytes(const Instruction &instruction) const;
  void appendCuts(const KernelCode &kernel, bool isSmall);
  std::vector<Prepared> prepareSection(const char *section,
                                       const std::vector<Instruction> &instructions);
  /// Keeps the times of a step in `times`, unless that is null.
  Outcome runSection(const std::vector<Prepared> &code, StepTimes *times = nullptr);
  Outcome execute(const Prepared &instruction);
  Outcome runProduct(const Prepared &instruction);
  void runKernel(const Prepared &instruction);
  Outcome observe(const Prepared &instruction);

  const Program &program;
  const KernelCode *const kernels;
  const int64_t self, threads;
  const std::vector<int64_t> place;
  Communicator *link = nullptr;
  Observer *observer = nullptr;
  StepTimes *times = nullptr;

  std::optional<Team> team;
  /// The pieces of each product of the program, which threads take.
  std::vector<std::vector<std::unique_ptr<PreparedProduct>>> products;
  std::unique_ptr<char[], Free> arena;
  /// Operand addresses of all instructions, one after another. Never grows after `prepare`
  /// has reserved it, since instructions point into it.
  std::vector<void *> addresses;
  /// The cuts of all kernels' phases, likewise.
  std::vector<Cut> cuts;
  std::vector<Prepared> initCode, stepCode, evaluateCode;
  /// A maximum over all ranks of how their sections end.
  Communicator::Handle agree = 0;
  std::optional<Overflow> beyond;
  size_t notFiniteAt = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_CORE_EXECUTOR_H
