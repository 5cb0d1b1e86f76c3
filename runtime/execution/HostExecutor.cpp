//===- HostExecutor.cpp - runs one rank's program on processors -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/HostExecutor.h"

#include <algorithm>
#include <cstring>
#include <mutex>

using namespace weft::rt;

HostExecutor::HostExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
                           int64_t threads)
    : Executor(program, kernels, rank), threads(threads) {}

const char *HostExecutor::noteOfTimes() const {
  return overlaps() ? ", of collectives beside computation until they were issued: --profile runs "
                      "them in line"
                    : "";
}

bool HostExecutor::allocateArena() {
  // aligned_alloc wants a multiple of the alignment; an empty arena still gets an address.
  uint64_t bytes = (program.arenaBytes / kAlignment + 1) * kAlignment;
  arena.reset(static_cast<char *>(std::aligned_alloc(kAlignment, bytes)));
  if (!arena) {
    return false;
  }
  std::memset(arena.get(), 0, bytes);
  return true;
}

bool HostExecutor::prepareDevice() {
  size_t scratch = 0;
  for (const Matmul &matmul : program.matmuls) {
    auto &prepared = matmuls.emplace_back();
    for (const MatmulPart &part : cutMatmul(matmul, program.threadsPerRank)) {
      Result<std::unique_ptr<PreparedMatmul>> made = PreparedMatmul::make(part);
      if (!made) {
        return communicator().fail(made.error().message);
      }
      prepared.push_back(std::move(*made));
      scratch = std::max(scratch, prepared.back()->scratchBytes());
    }
  }
  for (const Body &body : program.bodies) {
    auto isRecorded = [](uint32_t event) { return event != kNoEvent; };
    auto count = std::ranges::count_if(numberEvents(body.instructions), isRecorded);
    events.resize(std::max(events.size(), size_t(count)));
  }
  team.emplace(threads, [scratch] { PreparedMatmul::prepareThread(scratch); });
  return true;
}

Communicator::Handle HostExecutor::prepareCollective(const Collective &collective,
                                                     const CallSite &site) {
  return communicator().prepare(collective, program.groupOf(rank(), collective), site);
}

void *HostExecutor::address(uint32_t buffer, uint32_t frame) const {
  return arena.get() + program.offsetOf(buffer, frame);
}

BufferView HostExecutor::view(uint32_t buffer, uint32_t frame, uint64_t begin,
                              uint64_t count) const {
  return BufferView({static_cast<const char *>(address(buffer, frame)) + begin, count});
}

BufferDraft HostExecutor::draft(uint32_t buffer, uint64_t begin, uint64_t count) {
  return BufferDraft({static_cast<char *>(address(buffer, 0)) + begin, count});
}

void HostExecutor::zero(uint32_t buffer) {
  std::memset(address(buffer, 0), 0, program.buffers[buffer].bytes);
}

Outcome HostExecutor::runKernel(const Prepared &instruction) {
  const KernelCode &kernel = *instruction.kernel;
  for (int64_t phase = 0; phase < kernel.phaseCount; ++phase) {
    Cut cut = instruction.cuts[phase];
    int64_t iterations = kernel.iterations[phase];
    team->run(
        cut.parts,
        [&](int64_t part) {
          int64_t begin = part * cut.length;
          kernel.function(instruction.operands, instruction.immediates, coordinates().data(), phase,
                          begin, std::min(begin + cut.length, iterations));
        },
        communicator().busyThreads());
  }
  return Outcome::Done;
}

Outcome HostExecutor::runMatmul(const Prepared &instruction) {
  void *const *operands = instruction.operands;
  const auto &parts = matmuls[instruction.target];
  std::mutex mutex;
  Status all; // Or of the part that failed last.
  team->run(
      int64_t(parts.size()),
      [&](int64_t i) {
        if (Status one = parts[size_t(i)]->run(operands[0], operands[1], operands[2]); !one) {
          std::lock_guard lock(mutex);
          all = one;
        }
      },
      communicator().busyThreads());
  return communicator().check(all) ? Outcome::Done : Outcome::Stopped;
}

Outcome HostExecutor::runCollective(const Prepared &instruction) {
  auto [operand, result] = endsOf(instruction);
  const bool isBeside = instruction.stream == Stream::Communication;
  if (isBeside) {
    lastIssued = instruction.handle;
  }
  bool isGood = isBeside ? communicator().issue(instruction.handle, operand, result)
                         : communicator().run(instruction.handle, operand, result);
  return isGood ? Outcome::Done : Outcome::Stopped;
}

bool HostExecutor::joinStreams() {
  if (!lastIssued) {
    return true;
  }
  const Communicator::Handle last = *lastIssued;
  lastIssued.reset();
  return communicator().wait(last);
}

bool HostExecutor::waitForEvents(const Prepared &instruction) {
  // All computation before a collective has ended.
  return instruction.stream == Stream::Communication ||
         std::ranges::all_of(instruction.waits,
                             [&](uint32_t event) { return communicator().wait(events[event]); });
}

bool HostExecutor::recordEvent(const Prepared &instruction) {
  if (instruction.stream == Stream::Communication) {
    events[instruction.event] = instruction.handle;
  }
  return true;
}

std::unique_ptr<Executor> weft::rt::makeHostExecutor(const Program &program,
                                                     const KernelCode *kernels, int64_t rank,
                                                     int64_t threads) {
  return std::make_unique<HostExecutor>(program, kernels, rank, threads);
}
