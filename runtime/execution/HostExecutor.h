//===- HostExecutor.h - runs one rank's program on processors ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arena is host memory, so views and drafts are the buffers themselves. Kernels
// and matmuls run on the threads of a team, synchronously; collectives by the rank's
// communicator. Those on the communication stream are only issued: the communicator
// goes on with them while the rank computes. An instruction that waits for one of
// them, or the end of the action, waits for the communicator. No collective waits for
// computation, which was done before its issue.
//
// A kernel or matmul leaves one thread of the team to a communicator that works when
// it begins.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_HOSTEXECUTOR_H
#define WEFT_RT_EXECUTION_HOSTEXECUTOR_H

#include "execution/Executor.h"
#include "execution/PreparedMatmul.h"

#include <cstdlib>
#include <memory>

namespace weft::rt {

class HostExecutor : public Executor {
public:
  /// See Executor. `threads` threads share kernels and matmuls. The work is divided for
  /// `program.threadsPerRank` regardless of `threads`, so bits do not depend on `threads`.
  HostExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
               int64_t threads = 1);

  uint64_t hostBytes() const override { return program.arenaBytes; }
  const char *noteOfTimes() const override;

  using Executor::draft;
  using Executor::view;
  BufferView view(uint32_t buffer, uint32_t frame, uint64_t begin, uint64_t count) const override;
  BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) override;
  void zero(uint32_t buffer) override;

private:
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };

  bool allocateArena() override;
  bool prepareDevice() override;
  bool joinStreams() override;
  bool waitForEvents(const Prepared &instruction) override;
  bool recordEvent(const Prepared &instruction) override;
  Communicator::Handle prepareCollective(const Collective &collective,
                                         const CallSite &site) override;
  void *address(uint32_t buffer, uint32_t frame) const override;
  Outcome runKernel(const Prepared &instruction) override;
  Outcome runMatmul(const Prepared &instruction) override;
  Outcome runCollective(const Prepared &instruction) override;

  const int64_t threads;
  std::optional<Team> team;
  /// The parts of each matmul of the program, which the threads share.
  std::vector<std::vector<std::unique_ptr<PreparedMatmul>>> matmuls;
  std::unique_ptr<char[], Free> arena;
  /// By event: the collective that records it.
  std::vector<Communicator::Handle> events;
  /// The last collective that was issued and not waited for.
  std::optional<Communicator::Handle> lastIssued;
};

/// Makes a HostExecutor; a MakeExecutor.
std::unique_ptr<Executor> makeHostExecutor(const Program &program, const KernelCode *kernels,
                                           int64_t rank, int64_t threads);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_HOSTEXECUTOR_H
