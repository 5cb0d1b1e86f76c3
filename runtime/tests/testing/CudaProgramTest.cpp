//===- CudaProgramTest.cpp - a program on the simulator for CUDA ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/Simulator.h"
#include "tests/Toy.h"
#include "weft-rt/Expansion.h"

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

using Bytes = std::vector<char>;

/// Fills the inputs of a step.
void fillInputs(const Program &program, char *arena) {
  for (const NamedTensor &input : program.inputs) {
    const Buffer &buffer = program.buffers[input.buffer];
    for (uint64_t i = 0; i < buffer.bytes; i += 4) {
      int32_t value = int32_t(i * 7 % 250) * (input.name == "seed" ? 0 : 1);
      std::memcpy(arena + buffer.offset + i, &value, 4);
    }
  }
}

Bytes runOnHost(const Program &program, int steps) {
  std::vector<std::max_align_t> memory(program.arenaBytes / sizeof(std::max_align_t) + 1);
  char *arena = reinterpret_cast<char *>(memory.data());
  fillInputs(program, arena);
  const int64_t coordinates[] = {0, 0};
  auto run = [&](const std::vector<Action> &section) {
    for (const Instruction &instruction : Expansion(program, section)) {
      if (instruction.opcode == Opcode::Kernel) {
        std::vector<void *> operands;
        for (const Operand &operand : instruction.operands) {
          operands.push_back(arena + program.buffers[operand.buffer].offset);
        }
        kToyKernels[instruction.target].function(
            operands.data(), immediatesOf(instruction, {}).data(), coordinates, 0, 0, 1);
      }
    }
  };
  run(program.init);
  for (int step = 0; step < steps; ++step) {
    run(program.step);
  }
  return {arena, arena + program.arenaBytes};
}

/// A rank's program, issued as the backend does, on two streams in turn.
class Issuer {
public:
  Issuer(const Program &program, uint64_t seed)
      : program(program), simulator({.seed = seed}, Counterparts({&program, 1}, kToyKernels)) {
    DeviceFacts facts;
    ok(cuda.open(0, &device, &facts));
    for (DriverTable::Handle &stream : streams) {
      ok(cuda.makeStream(device, &stream));
    }
    ok(cuda.makeEvent(device, &event));
    ok(cuda.allocate(device, program.arenaBytes, &arena));
    ok(cuda.allocate(device, 16, &coordinates));
    void *place = nullptr;
    ok(cuda.allocatePinned(device, program.arenaBytes, &place));
    pinned = static_cast<char *>(place);
    ok(cuda.load(device, "an image", &module));
    for (const Kernel &kernel : program.kernels) {
      entries.emplace_back();
      ok(cuda.entry(device, module, (kernel.name + "_phase_0").c_str(), &entries.back()));
    }
    ok(cuda.seal(device));
  }

  Bytes run(int steps) {
    std::memset(pinned, 0, program.arenaBytes);
    fillInputs(program, pinned);
    ok(cuda.copyToDevice(device, streams[0], arena, pinned, program.arenaBytes));
    ok(cuda.zero(device, streams[0], coordinates, 16));
    issue(program.init);
    for (int step = 0; step < steps; ++step) {
      issue(program.step);
    }
    ok(cuda.copyToHost(device, next(), pinned, arena, program.arenaBytes));
    ok(cuda.record(device, event, streams[turn]));
    ok(cuda.await(device, event));
    return {pinned, pinned + program.arenaBytes};
  }

  void close() {
    ok(cuda.unseal(device));
    ok(cuda.unload(device, module));
    ok(cuda.freePinned(device, pinned));
    ok(cuda.free(device, coordinates));
    ok(cuda.free(device, arena));
    ok(cuda.freeEvent(device, event));
    for (DriverTable::Handle stream : streams) {
      ok(cuda.freeStream(device, stream));
    }
    ok(cuda.close(device));
  }

private:
  static void ok(DriverTable::Result result) { EXPECT_EQ(result, nullptr) << result; }

  /// Returns the other stream, which then waits for all work of this one.
  DriverTable::Handle next() {
    ok(cuda.record(device, event, streams[turn]));
    turn = 1 - turn;
    ok(cuda.wait(device, streams[turn], event));
    return streams[turn];
  }

  void issue(const std::vector<Action> &section) {
    for (const Instruction &instruction : Expansion(program, section)) {
      if (instruction.opcode != Opcode::Kernel) {
        continue;
      }
      std::vector<uint64_t> arguments = {coordinates};
      for (const Operand &operand : instruction.operands) {
        arguments.push_back(arena + program.buffers[operand.buffer].offset);
      }
      std::vector<int64_t> immediates = immediatesOf(instruction, {});
      arguments.insert(arguments.end(), immediates.begin(), immediates.end());
      ok(cuda.launch(device, next(), entries[instruction.target], 1, 256, arguments.data(),
                     arguments.size()));
    }
  }

  const Program &program;
  Simulator simulator;
  const DriverTable &cuda = simulator.library();
  DriverTable::Handle device = 0, streams[2] = {}, event = 0, module = 0;
  std::vector<DriverTable::Handle> entries;
  DriverTable::Address arena = 0, coordinates = 0;
  char *pinned = nullptr;
  size_t turn = 0;
};

TEST(CudaProgramTest, HasTheHostsBits) {
  // One rank, whose collectives do nothing.
  Program program = makeToy(1, 1);
  Bytes expected = runOnHost(program, 5);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Issuer issuer(program, seed);
    Bytes result = issuer.run(5);
    for (const NamedTensor &parameter : program.parameters) {
      const Buffer &buffer = program.buffers[parameter.buffer];
      ASSERT_EQ(
          std::memcmp(result.data() + buffer.offset, expected.data() + buffer.offset, buffer.bytes),
          0)
          << "seed " << seed;
    }
    issuer.close();
  }
}

} // namespace
