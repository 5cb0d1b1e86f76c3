//===- PredictProgram.cpp - predicted times of a program ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/PredictProgram.h"

#include "weft/Cost/Predictor.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::cost {

namespace {

desc::Precision precisionOf(rt::ElementType type) {
  return type == rt::ElementType::F64 ? desc::Precision::F64 : desc::Precision::F32;
}

class ProgramPredictor {
public:
  ProgramPredictor(const rt::Program &program, const desc::MachineSpec &machine)
      : program(program), predictor(machine), devicesPerNode(machine.devicesPerNode) {}

  double predict(const rt::Instruction &instruction) {
    switch (instruction.opcode) {
    case rt::Opcode::Kernel:
      return predictor.kernel(program.kernels[instruction.target].kind,
                              kernelPrecision(instruction), instruction.cost.flops,
                              instruction.cost.bytes);
    case rt::Opcode::Product: {
      const rt::Product &product = program.products[instruction.target];
      return predictor.product(precisionOf(product.type), product.m, product.n, product.k,
                               product.batch, instruction.cost.bytes);
    }
    case rt::Opcode::Collective:
      return predictCollective(program.collectives[instruction.target]);
    case rt::Opcode::Observe:
      return predictObserve(program.observations[instruction.target]);
    }
    return 0;
  }

private:
  /// What a kernel computes in: the type of the largest buffer that it writes.
  desc::Precision kernelPrecision(const rt::Instruction &instruction) const {
    const rt::Buffer *largest = nullptr;
    for (const rt::Operand &operand : instruction.operands) {
      const rt::Buffer &buffer = program.buffers[operand.buffer];
      if (operand.access != rt::Access::Read && (!largest || buffer.bytes > largest->bytes)) {
        largest = &buffer;
      }
    }
    return largest ? precisionOf(largest->type) : desc::Precision::F32;
  }

  /// A group over `axes`. All are alike, but for where a node's last device lies; the slowest
  /// counts.
  Group groupOver(const std::vector<uint32_t> &axes) {
    auto [known, isNew] = groups.try_emplace(axes);
    Group &group = known->second;
    if (!isNew) {
      return group;
    }
    std::vector<int64_t> ranks = program.groupOf(0, axes);
    group.ranks = int64_t(ranks.size());
    int64_t tried = program.rankCount() > devicesPerNode ? program.rankCount() : 0;
    for (int64_t first = 0; first < tried && !group.crossesNodes; ++first) {
      ranks = program.groupOf(first, axes);
      auto [low, high] = std::minmax_element(ranks.begin(), ranks.end());
      group.crossesNodes = *low / devicesPerNode != *high / devicesPerNode;
    }
    return group;
  }

  double predictCollective(const rt::Collective &collective) {
    static constexpr desc::CollectiveKind kinds[] = {
        desc::CollectiveKind::AllReduce, desc::CollectiveKind::AllGather,
        desc::CollectiveKind::ReduceScatter, desc::CollectiveKind::AllToAll};
    double bytes = std::accumulate(collective.shape.begin(), collective.shape.end(),
                                   double(rt::sizeOf(collective.type)),
                                   [](double product, int64_t size) { return product * size; });
    return predictor.collective(kinds[size_t(collective.kind)], groupOver(collective.axes), bytes);
  }

  /// All ranks agree whether a loss or norm is finite; see `Observation`.
  double predictObserve(const rt::Observation &observation) {
    if (!observation.layout.globalShape.empty()) {
      return 0;
    }
    std::vector<uint32_t> all(program.mesh.size());
    std::iota(all.begin(), all.end(), 0);
    return predictor.rendezvous(groupOver(all));
  }

  const rt::Program &program;
  const Predictor predictor;
  const int64_t devicesPerNode;
  std::map<std::vector<uint32_t>, Group> groups;
};

} // namespace

void predictProgram(rt::Program &program, const desc::MachineSpec &machine) {
  ProgramPredictor predictor(program, machine);
  for (auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (rt::Instruction &instruction : *section) {
      instruction.cost.seconds = predictor.predict(instruction);
    }
  }
}

double stepSeconds(const rt::Program &program) {
  double seconds = 0;
  for (const rt::Instruction &instruction : program.step) {
    seconds += instruction.cost.seconds;
  }
  return seconds;
}

} // namespace weft::cost
