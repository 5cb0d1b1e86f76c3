//===- PredictProgram.cpp - predicted times of a program ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/PredictProgram.h"

#include "program/ProgramCheck.h"
#include "weft-rt/Expansion.h"
#include "weft/Cost/Predictor.h"
#include "weft/Schedule/Timeline.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::cost {

namespace {

desc::Precision precisionOf(rt::ElementType type) {
  return type == rt::ElementType::F64    ? desc::Precision::F64
         : type == rt::ElementType::BF16 ? desc::Precision::BF16
         : type == rt::ElementType::F16  ? desc::Precision::F16
         : rt::isFloat8(type)            ? desc::Precision::F8
                                         : desc::Precision::F32;
}

class ProgramPredictor {
public:
  ProgramPredictor(const rt::Program &program, const desc::MachineSpec &machine)
      : program(program), device(machine.device), predictor(machine) {
    for (const rt::Axis &axis : program.mesh) {
      mesh.push_back(axis.size);
    }
  }

  double predict(const rt::Instruction &instruction) {
    switch (instruction.opcode) {
    case rt::Opcode::Kernel: {
      const rt::Kernel &kernel = program.kernels[instruction.target];
      std::optional<AttentionShape> shape;
      if (kernel.attention) {
        shape = {kernel.attention->keys, kernel.attention->features};
      }
      return predictor.kernel(kernel.kind, kernelPrecision(instruction), instruction.cost.flops,
                              instruction.cost.bytes, shape);
    }
    case rt::Opcode::Matmul: {
      const rt::Matmul &matmul = program.matmuls[instruction.target];
      desc::Precision precision = matmul.isTF32 ? desc::Precision::TF32 : precisionOf(matmul.type);
      return predictor.matmul(precision, matmul.m, matmul.n, matmul.k, matmul.batch,
                              instruction.cost.bytes, rowsOf(matmul));
    }
    case rt::Opcode::Collective:
      return predictCollective(program.collectives[instruction.target]);
    case rt::Opcode::Observe:
      return 0;
    case rt::Opcode::Agree:
      return predictAgreement();
    }
    return 0;
  }

  /// Returns the share of the device's rate that the instruction takes from computation beside it.
  double shareOf(const rt::Instruction &instruction) const {
    const rt::Cost &cost = instruction.cost;
    if (instruction.opcode != rt::Opcode::Collective || cost.seconds <= 0) {
      return 0;
    }
    if (device.cuda.isGiven()) {
      return device.cuda.collectiveShare();
    }
    // On a host, the processors that compute also read and write each byte that moves.
    return std::min(2 * cost.bytes / device.memoryBandwidth / cost.seconds, 1.0);
  }

private:
  /// Returns the format of the largest buffer of floats that a kernel reads, or writes if it reads
  /// none: the format of its multiplications, even if its sums are wider.
  desc::Precision kernelPrecision(const rt::Instruction &instruction) const {
    const rt::Buffer *read = nullptr, *written = nullptr;
    for (const rt::Operand &operand : instruction.operands) {
      const rt::Buffer &buffer = program.buffers[operand.buffer];
      const rt::Buffer *&largest = operand.access == rt::Access::Write ? written : read;
      if (rt::isFloat(buffer.type) && (!largest || buffer.bytes > largest->bytes)) {
        largest = &buffer;
      }
    }
    const rt::Buffer *decisive = read ? read : written;
    return decisive ? precisionOf(decisive->type) : desc::Precision::F32;
  }

  Group groupOf(const rt::Collective &collective) {
    auto [known, isNew] = groups.try_emplace({collective.axes, collective.classes});
    if (isNew) {
      rt::RankRange ranks = program.ranks();
      known->second =
          collective.isAcrossClasses()
              ? placeAcross(collective.classes, ranks.count, predictor.devicesPerNode())
              : placeGroup(mesh, collective.axes, predictor.devicesPerNode(), ranks.first);
    }
    return known->second;
  }

  double predictCollective(const rt::Collective &collective) {
    double bytes = std::accumulate(collective.shape.begin(), collective.shape.end(),
                                   double(rt::sizeOf(collective.type)),
                                   [](double product, int64_t size) { return product * size; });
    return predictor.collective(collective.kind, groupOf(collective), bytes);
  }

  /// Of the ranks of all classes.
  double predictAgreement() const {
    const int64_t ranks = program.rankCount(), perNode = predictor.devicesPerNode();
    return predictor.rendezvous({ranks, (ranks + perNode - 1) / perNode});
  }

  const rt::Program &program;
  const desc::DeviceSpec &device;
  const Predictor predictor;
  std::vector<int64_t> mesh;
  /// Of axes or classes.
  std::map<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>, Group> groups;
};

} // namespace

void predictProgram(rt::Program &program, const desc::MachineSpec &machine) {
  ProgramPredictor predictor(program, machine);
  for (rt::Body &body : program.bodies) {
    for (rt::Instruction &instruction : body.instructions) {
      instruction.cost.seconds = predictor.predict(instruction);
      instruction.cost.share = predictor.shareOf(instruction);
    }
  }
}

void predictDevice(rt::Program &program, const desc::CudaSpec &cuda) {
  std::optional<uint64_t> communicators = cuda.communicatorBytes;
  program.deviceUses = {
      {rt::DevicePart::Context, cuda.contextBytes},
      {rt::DevicePart::Libraries, cuda.libraryBytes},
      // Communicators of some ranks share the memory of the communicator of all, which is always
      // made with them.
      {rt::DevicePart::Communicators, program.communicates() ? communicators : uint64_t(0)},
      {rt::DevicePart::Inputs, program.stagedBytes()},
      {rt::DevicePart::Code, {}},
      {rt::DevicePart::Stacks, {}}};
}

double stepSeconds(std::span<const rt::Program> programs) {
  return schedule::predictSeconds(programs, &rt::Program::step);
}

double stepSeconds(const rt::Program &program) { return stepSeconds(std::span(&program, 1)); }

double PipelineTimes::bubble() const {
  double whole = seconds * double(busy.size());
  return whole > 0 ? 1 - std::accumulate(busy.begin(), busy.end(), 0.0) / whole : 0;
}

PipelineTimes pipelineTimes(std::span<const rt::Program> programs) {
  return pipelineTimes(programs, stepSeconds(programs));
}

PipelineTimes pipelineTimes(std::span<const rt::Program> programs, double seconds) {
  PipelineTimes times = {seconds, {}};
  for (const rt::Program &program : programs) {
    times.busy.push_back(stepSeconds(program));
  }
  return times;
}

double serialSeconds(const rt::Program &program) {
  rt::Expansion step(program, program.step);
  return std::accumulate(step.begin(), step.end(), 0.0,
                         [](double sum, const rt::Instruction &instruction) {
                           return sum + instruction.cost.seconds;
                         });
}

const rt::Program &largestOf(std::span<const rt::Program> programs) {
  return *std::ranges::max_element(programs, {}, &rt::Program::deviceBytes);
}

} // namespace weft::cost
