//===- MutantTest.cpp - no mutant of a correct program is proven ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each mutation breaks a program in a way that would hang, crash or silently spoil a
// run. What only changes the mathematics (another kernel, a transposed matmul of a
// square matrix) is not the proof's to find.
//
//===----------------------------------------------------------------------===//

#include "SyntheticProgram.h"
#include "weft/Schedule/Lifetimes.h"
#include "weft/Schedule/Proof.h"

#include <gtest/gtest.h>

#include <random>

using namespace weft;
using namespace weft::schedule;

namespace {

using Random = std::mt19937_64;

/// Numbers of the step's instructions of one opcode.
std::vector<size_t> findAll(const rt::Program &program, rt::Opcode opcode) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < program.stepBody().size(); ++i) {
    if (program.stepBody()[i].opcode == opcode) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

template <typename T> const T &pick(const std::vector<T> &values, Random &random) {
  return values[random() % values.size()];
}

/// A matmul whose result another instruction reads.
size_t pickUsedMatmul(const rt::Program &program, Random &random) {
  while (true) {
    size_t number = pick(findAll(program, rt::Opcode::Matmul), random);
    uint32_t result = program.stepBody()[number].operands[2].buffer;
    for (size_t i = number + 1; i < program.stepBody().size(); ++i) {
      for (const rt::Operand &operand : program.stepBody()[i].operands) {
        if (operand.buffer == result) {
          return number;
        }
      }
    }
  }
}

/// The collectives across both classes.
std::vector<size_t> findShared(const rt::Program &program) {
  std::vector<size_t> shared;
  for (size_t i : findAll(program, rt::Opcode::Collective)) {
    if (program.collectives[program.stepBody()[i].target].isAcrossClasses()) {
      shared.push_back(i);
    }
  }
  return shared;
}

/// Gives instruction `number` a collective of its own to be changed.
rt::Collective &ownCollective(rt::Program &program, size_t number) {
  rt::Instruction &instruction = program.stepBody()[number];
  program.collectives.push_back(program.collectives[instruction.target]);
  instruction.target = program.collectives.size() - 1;
  return program.collectives.back();
}

// Mutations of one class's list; the other class keeps the correct one.

void dropCollective(rt::Program &program, Random &random) {
  program.stepBody().erase(program.stepBody().begin() + pick(findShared(program), random));
}

void doubleCollective(rt::Program &program, Random &random) {
  size_t number = pick(findShared(program), random);
  program.stepBody().insert(program.stepBody().begin() + number,
                            rt::Instruction(program.stepBody()[number]));
}

void reorderCollectives(rt::Program &program, Random &random) {
  // Two that differ in what is moved or in their group.
  std::vector<size_t> shared = findShared(program);
  size_t a, b;
  do {
    a = pick(shared, random), b = pick(shared, random);
  } while (program.collectives[program.stepBody()[a].target].shape ==
           program.collectives[program.stepBody()[b].target].shape);
  std::swap(program.stepBody()[a], program.stepBody()[b]);
}

void changeCount(rt::Program &program, Random &random) {
  rt::Collective &collective = ownCollective(program, pick(findShared(program), random));
  collective.shape.push_back(2);
}

void changeType(rt::Program &program, Random &random) {
  ownCollective(program, pick(findShared(program), random)).type = rt::ElementType::I32;
}

void changeAxes(rt::Program &program, Random &random) {
  rt::Collective &collective = ownCollective(program, pick(findShared(program), random));
  collective.axes = {1};
}

void changeReduction(rt::Program &program, Random &random) {
  std::vector<size_t> shared = findShared(program);
  std::erase_if(shared, [&](size_t i) {
    return program.collectives[program.stepBody()[i].target].kind != rt::CollectiveKind::AllReduce;
  });
  rt::Collective &collective = ownCollective(program, pick(shared, random));
  collective.reduction = collective.reduction == rt::ReductionKind::Sum ? rt::ReductionKind::Max
                                                                        : rt::ReductionKind::Sum;
}

void changeKind(rt::Program &program, Random &random) {
  rt::Collective &collective = ownCollective(program, pick(findShared(program), random));
  collective.kind = collective.kind == rt::CollectiveKind::AllReduce
                        ? rt::CollectiveKind::AllGather
                        : rt::CollectiveKind::AllReduce;
}

// Mutations of the only table.

/// Moves a buffer onto another that is needed at the same time.
void moveBuffer(rt::Program &program, Random &random) {
  ArenaProblem problem = makeArenaProblem(program);
  while (true) {
    size_t a = random() % program.buffers.size(), b = random() % program.buffers.size();
    const ArenaBuffer &x = problem.buffers[a], &y = problem.buffers[b];
    if (a != b && x.first <= y.last && y.first <= x.last) {
      program.buffers[a].offset = program.buffers[b].offset;
      program.arenaBytes += program.buffers[a].bytes; // The sweep, not the size, must find it.
      return;
    }
  }
}

void misalignBuffer(rt::Program &program, Random &random) {
  program.buffers[random() % program.buffers.size()].offset += 4 * (1 + random() % 15);
  program.arenaBytes += 64;
}

void shrinkArena(rt::Program &program, Random &random) {
  uint64_t end = 0;
  for (const rt::Buffer &buffer : program.buffers) {
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  program.arenaBytes = end - 1 - random() % 64;
}

/// Packs as if a buffer were not needed any more before its last use, while another that begins
/// later takes its place.
void shortenLifetime(rt::Program &program, Random &random) {
  while (true) {
    ArenaProblem problem = makeArenaProblem(program);
    size_t number = random() % program.buffers.size();
    ArenaBuffer &buffer = problem.buffers[number];
    if (program.buffers[number].persistent || buffer.first == buffer.last) {
      continue;
    }
    ArenaProblem right = problem;
    buffer.last = buffer.first + int64_t(random() % uint64_t(buffer.last - buffer.first));
    ArenaPlan plan = packFirstFit(problem);
    if (checkArena(right, plan).empty()) {
      continue; // Nothing was put there.
    }
    placeBuffers(program, plan);
    return;
  }
}

void changeBufferSize(rt::Program &program, Random &random) {
  std::vector<size_t> numbers = findAll(program, rt::Opcode::Matmul);
  const rt::Instruction &instruction = program.stepBody()[pick(numbers, random)];
  rt::Buffer &buffer = program.buffers[pick(instruction.operands, random).buffer];
  buffer.bytes = random() % 2 ? buffer.bytes + 4 : buffer.bytes - 4;
  packArena(program);
}

/// The read and the written buffer change places.
void swapOperands(rt::Program &program, Random &random) {
  std::vector<size_t> numbers = findAll(program, rt::Opcode::Matmul);
  std::vector<rt::Operand> &operands = program.stepBody()[pick(numbers, random)].operands;
  std::swap(operands[random() % 2].buffer, operands[2].buffer);
  packArena(program);
}

void wrongOperand(rt::Program &program, Random &random) {
  rt::Instruction &instruction = program.stepBody()[random() % program.stepBody().size()];
  std::vector<rt::Operand> &operands = instruction.operands;
  if (operands.empty()) {
    operands.emplace_back();
  }
  operands[random() % operands.size()].buffer = program.buffers.size() + random() % 3;
}

/// Ranks agree nowhere, before the loss is observed, or when weights have changed.
void misplaceAgreement(rt::Program &program, Random &random) {
  std::vector<rt::Instruction> &step = program.stepBody();
  size_t at = findAll(program, rt::Opcode::Agree).front();
  rt::Instruction agreement = step[at];
  step.erase(step.begin() + at);
  if (random() % 3 > 0) {
    step.insert(random() % 2 ? step.begin() + random() % at : step.end(), agreement);
  }
}

void dropWrite(rt::Program &program, Random &random) {
  program.stepBody().erase(program.stepBody().begin() + pickUsedMatmul(program, random));
  packArena(program);
}

/// A matmul's result comes after what reads it.
void delayMatmul(rt::Program &program, Random &random) {
  size_t number = pickUsedMatmul(program, random);
  rt::Instruction instruction = program.stepBody()[number];
  program.stepBody().erase(program.stepBody().begin() + number);
  program.stepBody().push_back(instruction);
  packArena(program);
}

void changeMatmul(rt::Program &program, Random &random) {
  rt::Matmul &matmul = program.matmuls[random() % program.matmuls.size()];
  int64_t *fields[] = {&matmul.m,   &matmul.n,   &matmul.k,    &matmul.lda,
                       &matmul.ldb, &matmul.ldc, &matmul.batch};
  *fields[random() % 7] += random() % 2 ? 1 : -1;
}

void growCollective(rt::Program &program, Random &random) {
  rt::Collective &collective =
      ownCollective(program, pick(findAll(program, rt::Opcode::Collective), random));
  collective.shape.push_back(2);
}

void forgetPersistence(rt::Program &program, Random &random) {
  program.buffers[pick(program.parameters, random).buffer].persistent = false;
  packArena(program);
}

struct Mutation {
  const char *name;
  void (*apply)(rt::Program &, Random &);
  /// Applied to one of two classes.
  bool isOfClass;
};

const Mutation kMutations[] = {
    {"DropCollective", dropCollective, true},
    {"DoubleCollective", doubleCollective, true},
    {"ReorderCollectives", reorderCollectives, true},
    {"ChangeCount", changeCount, true},
    {"ChangeType", changeType, true},
    {"ChangeAxes", changeAxes, true},
    {"ChangeReduction", changeReduction, true},
    {"ChangeKind", changeKind, true},
    {"MoveBuffer", moveBuffer, false},
    {"MisalignBuffer", misalignBuffer, false},
    {"ShrinkArena", shrinkArena, false},
    {"ShortenLifetime", shortenLifetime, false},
    {"ChangeBufferSize", changeBufferSize, false},
    {"SwapOperands", swapOperands, false},
    {"WrongOperand", wrongOperand, false},
    {"MisplaceAgreement", misplaceAgreement, false},
    {"DropWrite", dropWrite, false},
    {"DelayMatmul", delayMatmul, false},
    {"ChangeMatmul", changeMatmul, false},
    {"GrowCollective", growCollective, false},
    {"ForgetPersistence", forgetPersistence, false},
};

class MutantTest : public testing::TestWithParam<Mutation> {};

TEST_P(MutantTest, IsRefused) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    Random random(seed);
    test::SyntheticShape shape{2 + int64_t(seed % 5), 2, 2};
    rt::Programs programs =
        GetParam().isOfClass ? test::makeClasses(shape) : rt::Programs{test::makeProgram(shape)};
    ASSERT_TRUE(prove(programs).holds());
    GetParam().apply(programs.back(), random);
    EXPECT_FALSE(prove(programs).holds()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest, testing::ValuesIn(kMutations),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
