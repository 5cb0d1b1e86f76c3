//===- ExpansionTest.cpp - actions, and when buffers are needed -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/Expansion.h"
#include "tests/ErrorOf.h"
#include "weft-rt/BufferLives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Instruction kernel(std::vector<Operand> operands, uint32_t label = 0) {
  Instruction instruction;
  instruction.operands = std::move(operands);
  instruction.label = label;
  return instruction;
}

constexpr Operand read(uint32_t buffer) { return {buffer, Access::Read}; }
constexpr Operand write(uint32_t buffer) { return {buffer, Access::Write}; }
constexpr Operand update(uint32_t buffer) { return {buffer, Access::ReadWrite}; }

/// A step that sums over three micro-batches. Buffer 0 is a parameter, 1 the sum, 2 to 4 belong to
/// a micro-batch: 2 to its beginning, 3 to its end, 4 holds what the last one computed.
Program makeSum() {
  Program program;
  program.mesh = {{"dp", 1}};
  program.microBatches = 3;
  program.kernels = {{"kernel"}};
  program.labels = {"(fill)", "head", ""};
  program.buffers.assign(5, {64, 0, BufferClass::Activation, false, ElementType::F32});
  program.arenaBytes = 64;
  program.buffers[0] = {64, 0, BufferClass::Parameter, true, ElementType::F32};
  Body begin = {"step_begin", {kernel({write(1)})}};
  Body part = {"part",
               {kernel({read(0), write(2)}, 1), kernel({read(2), write(3)}, 2),
                kernel({read(3), write(4)}), kernel({read(4), update(1)})}};
  part.instructions[0].immediates = {7, {2, true}};
  Body end = {"step_end", {kernel({read(1), read(4), update(0)})}};
  program.bodies = {begin, part, end};
  program.step = {{0}, {1, 0}, {1, 1}, {1, 2}, {2}};
  return program;
}

TEST(Expansion, ListsWhatActionsRun) {
  Program program = makeSum();
  Expansion step(program, program.step);
  ASSERT_EQ(step.size(), 14);
  EXPECT_EQ(&step[0], program.bodies[0].instructions.data());
  EXPECT_EQ(&step[9], program.bodies[1].instructions.data());
  EXPECT_EQ(&step[13], program.bodies[2].instructions.data());
  EXPECT_EQ(step.actionOf(8), 2);
  EXPECT_EQ(step.actionOf(9), 3);
  EXPECT_EQ(step.beginOf(3), 9);
  size_t number = 0;
  for (auto it = step.begin(); it != step.end(); ++it) {
    EXPECT_EQ(&*it, &step[number]);
    EXPECT_EQ(&it.by(), &program.step[step.actionOf(number)]);
    ++number;
  }
  EXPECT_EQ(number, 14);
  EXPECT_TRUE(Expansion(program, program.init).empty());
  EXPECT_TRUE(Expansion().empty());
}

TEST(Expansion, SkipsActionsWithoutInstructions) {
  Program program = makeSum();
  program.bodies.push_back({"nothing", {}});
  program.step = {{3}, {0}, {3}, {3}, {2}, {3}};
  Expansion step(program, program.step);
  ASSERT_EQ(step.size(), 2);
  EXPECT_EQ(step.actionOf(0), 1);
  EXPECT_EQ(step.actionOf(1), 4);
  std::vector<const Instruction *> listed;
  for (const Instruction &instruction : step) {
    listed.push_back(&instruction);
  }
  EXPECT_THAT(listed, ElementsAre(&step[0], &step[1]));
}

TEST(Expansion, NamesMicroBatches) {
  Program program = makeSum();
  Expansion step(program, program.step);
  EXPECT_EQ(step.label(0), "(fill)");
  EXPECT_EQ(step.label(1), "micro-batch 0/head");
  EXPECT_EQ(step.label(10), "micro-batch 2");
  EXPECT_EQ(step.label(11), "micro-batch 2 (fill)");
  EXPECT_THAT(immediatesOf(step[5], program.step[2]), ElementsAre(7, 3));
}

TEST(Expansion, TheTextHasBodiesAndActions) {
  std::string text = toText(makeSum());
  EXPECT_THAT(text,
              HasSubstr("part:\n  0: kernel @kernel %0 -> %2 [7, micro-batch + 2]  \"head\"\n"));
  EXPECT_THAT(text, HasSubstr("actions of step:\n  0: step_begin, from instruction 0\n"
                              "  1: part for micro-batch 0, from instruction 1\n"));
  EXPECT_THAT(text, HasSubstr("  4: step_end, from instruction 13\n"));
}

TEST(Expansion, BytesKeepActions) {
  Program program = makeSum();
  Result<Programs> again = deserialize(serialize(program));
  ASSERT_EQ(errorOf(again), "");
  EXPECT_EQ(toText(again->front()), toText(program));
  EXPECT_EQ(again->front().step, program.step);
}

TEST(Expansion, ActionsAreChecked) {
  struct Case {
    void (*damage)(Program &);
    const char *fault;
  };
  const Case cases[] = {
      {[](Program &p) { p.step[1].body = 3; }, "step action 1 runs body 3, the program has 3"},
      {[](Program &p) { p.step[3].microBatch = 3; },
       "step action 3 is for micro-batch 3, the program has 3"},
      {[](Program &p) { p.step[3].microBatch = -1; },
       "step action 3 is for micro-batch -1, the program has 3"},
      {[](Program &p) { p.step[2].microBatch.reset(); },
       "step action 2 is for no micro-batch, but part instruction 0 needs the number of one"},
      {[](Program &p) {
         p.bodies[1].instructions.resize(1 << 12);
         p.step.resize(1 << 17, {1, 0});
       },
       "step runs 536862722 instructions, expected at most 268435456"},
  };
  for (const Case &one : cases) {
    Program program = makeSum();
    one.damage(program);
    EXPECT_EQ(errorOf(checkWellFormed(program)), one.fault);
  }
}

void expectLife(const BufferLives &found, uint32_t buffer, int64_t first, int64_t last) {
  EXPECT_EQ(found.lives[buffer].first, first) << "buffer " << buffer;
  EXPECT_EQ(found.lives[buffer].last, last) << "buffer " << buffer;
}

// Instants: 0 is the beginning, 1 to 4 a micro-batch, 5 the end.
TEST(BufferLives, CoverWhatEachActionNeeds) {
  BufferLives found = findBufferLives(makeSum());
  EXPECT_THAT(found.begins, ElementsAre(0, 1, 5, 6));
  expectLife(found, 0, 0, 5);
  expectLife(found, 1, 0, 5);
  expectLife(found, 2, 1, 2);
  expectLife(found, 3, 2, 3);
  expectLife(found, 4, 3, 5); // Until the end; each micro-batch writes it anew.
}

TEST(BufferLives, AValueForTheNextActionLastsFromItsWriteToItsRead) {
  Program program = makeSum();
  // What one micro-batch computes last, the next reads first.
  program.bodies[1].instructions[0].operands = {read(3), write(2)};
  program.bodies[0].instructions[0].operands.push_back(write(3));
  expectLife(findBufferLives(program), 3, 0, 4);
}

TEST(BufferLives, AValueLastsThroughActionsThatDoNotUseIt) {
  Program program = makeSum();
  program.buffers.resize(7, program.buffers[1]);
  program.bodies.push_back({"between", {kernel({write(5), read(0)})}});
  program.step = {{0}, {1, 0}, {3}, {1, 1}, {2}};
  program.bodies[0].instructions[0].operands.push_back(write(6));
  program.bodies[2].instructions[0].operands.push_back(read(6));
  BufferLives found = findBufferLives(program);
  expectLife(found, 5, 6, 6);
  expectLife(found, 6, 0, 6); // The body `between` has the last instant.
  expectLife(found, 1, 0, 6);
}

TEST(BufferLives, UnusedBuffersHaveNone) {
  Program program = makeSum();
  program.buffers.push_back(program.buffers[1]);
  expectLife(findBufferLives(program), 5, 0, -1);
}

} // namespace
