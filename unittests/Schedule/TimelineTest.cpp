//===- TimelineTest.cpp - when the instructions of a body run --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Timeline.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::schedule;

namespace {

rt::Instruction compute(double seconds, std::vector<uint32_t> waits = {}) {
  rt::Instruction made = {rt::Opcode::Kernel, 0, 0, {}, {}, {0, 0, seconds}};
  made.waits = std::move(waits);
  return made;
}

/// A collective on the communication stream.
rt::Instruction collective(double seconds, double share, std::vector<uint32_t> waits = {}) {
  rt::Instruction made = {rt::Opcode::Collective, 0, 0, {}, {}, {0, 0, seconds, share}};
  made.stream = rt::Stream::Communication;
  made.waits = std::move(waits);
  return made;
}

using Body = std::vector<rt::Instruction>;

void expectSpan(const TimeSpan &span, double begin, double end) {
  EXPECT_DOUBLE_EQ(span.begin, begin);
  EXPECT_DOUBLE_EQ(span.end, end);
}

TEST(Timeline, ComputationBesideACollectiveIsSlower) {
  // It does three quarters while the collective runs.
  const Body body = {compute(1), collective(1, 0.25, {0}), compute(2)};
  const std::vector<TimeSpan> times = predictTimes(body);
  expectSpan(times[1], 1, 2);
  expectSpan(times[2], 1, 3.25);
  EXPECT_DOUBLE_EQ(predictSeconds(body), 3.25);
}

TEST(Timeline, ComputationThatEndsBesideACollectiveWasSlowerAllTheTime) {
  expectSpan(predictTimes(Body{collective(4, 0.5), compute(1), compute(0.5)})[2], 2, 3);
}

TEST(Timeline, ACollectiveSlowsDownWhatHasBegun) {
  // The collective waits for the first kernel and for the one before it, and begins in the second.
  const Body body = {compute(1), collective(2, 0.5, {0}), collective(2, 0.5), compute(3),
                     compute(1)};
  const std::vector<TimeSpan> times = predictTimes(body);
  expectSpan(times[1], 1, 3);
  expectSpan(times[2], 3, 5);
  expectSpan(times[3], 1, 6); // One second in each collective, and one behind them.
  expectSpan(times[4], 6, 7);
}

TEST(Timeline, NothingIsComputedBesideWhatTakesAll) {
  expectSpan(predictTimes(Body{collective(2, 1), compute(3)})[1], 0, 5);
}

TEST(Timeline, CollectivesOnTheStreamOfComputationTakeNothingFromIt) {
  Body body = {compute(1), collective(2, 0.5), compute(1)};
  body[1].stream = rt::Stream::Compute;
  EXPECT_EQ(predictSeconds(body), 4);
}

TEST(Timeline, CollectivesWithoutAShareCostComputationNothing) {
  EXPECT_EQ(predictSeconds(Body{collective(3, 0), compute(1), compute(1)}), 3);
}

/// Programs of two classes: the first sends to the second.
rt::Programs sendAndReceive(Body sender, Body receiver) {
  rt::Programs programs(2);
  for (uint32_t number = 0; number < 2; ++number) {
    rt::Program &program = programs[number];
    program.rankClass = number;
    program.rankClasses = 2;
    rt::Collective transfer = {.kind = rt::CollectiveKind::Transfer, .shape = {1}};
    transfer.classes = {0, 1};
    transfer.number = 1;
    program.collectives = {transfer};
    program.bodies.push_back({"", number == 0 ? std::move(sender) : std::move(receiver)});
    program.step = {{0}};
  }
  return programs;
}

TEST(Timeline, TransfersSlowDownBothEndsOnceBothHaveCome) {
  // The receiver waits from 0 to 2, at full rate, for the sender.
  const rt::Programs programs = sendAndReceive({compute(2), collective(1, 0.5, {0}), compute(1)},
                                               {collective(1, 0.5), compute(1), compute(2)});
  std::vector<std::vector<InstructionSpan>> spans(2);
  predictCourse(programs, &rt::Program::step,
                [&](uint32_t number, size_t, std::span<const InstructionSpan> all) {
                  spans[number].assign(all.begin(), all.end());
                });
  expectSpan(spans[0][1], 2, 3);
  expectSpan(spans[0][2], 2, 3.5);
  expectSpan(spans[1][0], 2, 3);
  EXPECT_EQ(spans[1][0].arrival, 0);
  expectSpan(spans[1][1], 0, 1);
  expectSpan(spans[1][2], 1, 3.5); // A second alone, half of one beside, and the rest.
}

} // namespace
