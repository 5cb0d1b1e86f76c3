//===- Program.cpp - names, ranks and layouts of a program ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/Expansion.h"

#include <algorithm>
#include <numeric>

using namespace weft::rt;

const char *weft::rt::nameOf(BufferClass kind) {
  static constexpr const char *names[] = {"parameter",  "parameter copy", "optimizer", "input",
                                          "activation", "gradient",       "workspace"};
  return names[size_t(kind)];
}

bool weft::rt::fitsFp8(const Matmul &p) {
  constexpr int64_t kMultiple = 16;
  bool areWhole = true;
  for (int64_t size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) {
    areWhole &= size % kMultiple == 0;
  }
  return areWhole && !p.transposeA && p.transposeB && p.batch == 1;
}

const char *weft::rt::nameOf(Stream stream) {
  return stream == Stream::Compute ? "compute" : "communication";
}

std::string weft::rt::classOf(const Program &program, const Instruction &instruction) {
  switch (instruction.opcode) {
  case Opcode::Matmul:
    return "matmul";
  case Opcode::Collective:
    return nameOf(program.collectives[instruction.target].kind);
  case Opcode::Observe:
    return "observe";
  case Opcode::Agree:
    return "agree";
  case Opcode::Kernel:
    break;
  }
  for (const Operand &operand : instruction.operands) {
    const Buffer &buffer = program.buffers[operand.buffer];
    bool lasts = buffer.kind == BufferClass::Parameter || buffer.kind == BufferClass::Optimizer;
    if (operand.access != Access::Read && buffer.persistent && lasts) {
      return "optimizer";
    }
  }
  return program.kernels[instruction.target].kind;
}

size_t Kernel::operandCount(const Instruction &instruction) const {
  return instruction.operands.size() - size_t(attention && attention->workspaceBytes > 0);
}

std::vector<Instruction> &Program::onlyBody(std::vector<Action> &section, const char *name) {
  if (section.empty()) {
    section.push_back({uint32_t(bodies.size())});
    bodies.push_back({name, {}});
  }
  return bodies[section.front().body].instructions;
}

int64_t Program::rankCount() const { return ranks().count * rankClasses; }

RankRange Program::ranks() const {
  int64_t count = 1;
  for (const Axis &axis : mesh) {
    count *= axis.size;
  }
  return {rankClass * count, count};
}

bool Program::communicates() const {
  return std::any_of(collectives.begin(), collectives.end(), [&](const Collective &collective) {
    return collective.isAcrossClasses() ||
           std::any_of(collective.axes.begin(), collective.axes.end(),
                       [&](uint32_t axis) { return mesh[axis].size > 1; });
  });
}

double Program::peakFlopsOf(const Instruction &instruction) const {
  bool isOfBytes = instruction.opcode == Opcode::Matmul && matmuls[instruction.target].isFp8();
  return isOfBytes ? peakByteFlopsPerRank : peakFlopsPerRank;
}

double Program::stepPeakFlopsPerRank() const {
  if (peakFlopsPerRank == 0 || peakByteFlopsPerRank == 0) {
    return peakFlopsPerRank;
  }
  double flops = 0, seconds = 0;
  for (const Instruction &instruction : Expansion(*this, step)) {
    flops += instruction.cost.flops;
    seconds += instruction.cost.flops / peakFlopsOf(instruction);
  }
  return seconds > 0 ? flops / seconds : peakFlopsPerRank;
}

uint64_t weft::rt::stagedBytes(const Buffer &input) {
  // Copying so few bytes takes less time than synchronizing streams.
  static constexpr uint64_t kSmallBytes = 1 << 16;
  return input.bytes > kSmallBytes ? (input.bytes + kAlignment - 1) / kAlignment * kAlignment : 0;
}

uint64_t Program::stagedBytes() const {
  return std::accumulate(inputs.begin(), inputs.end(), uint64_t(0),
                         [&](uint64_t sum, const NamedTensor &input) {
                           return sum + rt::stagedBytes(buffers[input.buffer]);
                         });
}

std::vector<int64_t> Program::coordinatesOf(int64_t rank) const {
  std::vector<int64_t> coordinates(mesh.size());
  rank -= ranks().first;
  for (size_t axis = mesh.size(); axis-- > 0;) {
    coordinates[axis] = rank % mesh[axis].size;
    rank /= mesh[axis].size;
  }
  return coordinates;
}

uint64_t Program::groupSize(std::span<const uint32_t> axes) const {
  uint64_t size = 1;
  for (uint32_t axis : axes) {
    size *= uint64_t(mesh[axis].size);
  }
  return size;
}

uint64_t Program::groupSize(const Collective &collective) const {
  return collective.isAcrossClasses() ? collective.classes.size() : groupSize(collective.axes);
}

static RankGroup shiftedBy(int64_t first, RankGroup group) {
  for (int64_t &rank : group.ranks) {
    rank += first;
  }
  return group;
}

RankGroup Program::classGroup() const {
  std::vector<uint32_t> all(mesh.size());
  std::iota(all.begin(), all.end(), 0);
  return shiftedBy(ranks().first, groupOver(all, 0, mesh));
}

RankGroup Program::groupOf(int64_t rank, const Collective &collective) const {
  auto [first, count] = ranks();
  if (!collective.isAcrossClasses()) {
    return shiftedBy(first, groupOver(collective.axes, rank - first, mesh));
  }
  RankGroup group = {{}, collective.classes.size() == 2 ? kPairs : kAllClasses};
  for (uint32_t other : collective.classes) {
    group.ranks.push_back(other * count + rank - first);
  }
  return group;
}

const Program &weft::rt::programOf(std::span<const Program> programs, int64_t rank) {
  return programs[size_t(rank / programs.front().ranks().count)];
}

std::vector<int64_t> weft::rt::localShape(const TensorLayout &layout, std::span<const Axis> mesh) {
  std::vector<int64_t> shape = layout.cutShape();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    for (uint32_t axis : layout.dimAxes[dim]) {
      shape[dim] /= mesh[axis].size;
    }
  }
  return shape;
}

std::vector<int64_t> weft::rt::localOffset(const TensorLayout &layout, std::span<const Axis> mesh,
                                           std::span<const int64_t> coordinates) {
  std::vector<int64_t> offset = localShape(layout, mesh);
  for (size_t dim = 0; dim < offset.size(); ++dim) {
    int64_t shard = 0;
    for (uint32_t axis : layout.dimAxes[dim]) {
      shard = shard * mesh[axis].size + coordinates[axis];
    }
    offset[dim] *= shard;
  }
  return offset;
}
