//===- MemoryCourseTest.cpp - the memory in use over a section --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryCourse.h"
#include "report/MemoryReport.h"
#include "tests/Toy.h"
#include "tests/ToyPipeline.h"
#include "weft-rt/BufferLives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace weft::rt;
using testing::ElementsAre;

namespace {

const std::pair<const char *, uint32_t> kOrders[] = {
    {kOneInFlight, 1}, {kTwoInFlight, 2}, {kThreeInFlight, 3}, {kAllForwardFirst, 4}};

/// Numbers in the pipeline's program.
constexpr uint32_t kTable = 0, kLoss = 5, kGradient = 6, kDifference = 8, kPart = 9;

/// Follows each place through a list of all instants, without bodies. Returns the places that each
/// action needs at each of its instructions.
std::vector<std::vector<std::set<uint32_t>>> livePlaces(const Program &program,
                                                        const std::vector<Action> &section) {
  std::vector<std::vector<std::set<uint32_t>>> live(section.size());
  std::vector<Instant> instants;
  for (size_t action = 0; action < section.size(); ++action) {
    size_t size = program.bodies[section[action].body].instructions.size();
    live[action].resize(size);
    for (size_t i = 0; i < size; ++i) {
      instants.push_back({action, i});
    }
  }
  BufferPlaces places(program);
  for (uint32_t place = 0; place < places.size(); ++place) {
    std::optional<size_t> last; // The last instant that used it, as a number in `instants`.
    for (size_t now = 0; now < instants.size(); ++now) {
      auto [action, number] = instants[now];
      bool isUsed = false, isRead = false;
      for (const Operand &operand :
           program.bodies[section[action].body].instructions[number].operands) {
        if (places.find(operand.buffer, section[action].frames) == place) {
          isUsed = true;
          isRead |= operand.access != Access::Write;
        }
      }
      if (isUsed) {
        bool isSame = last && (isRead || instants[*last].action == action);
        for (size_t time = isSame ? *last : now; time <= now; ++time) {
          live[instants[time].action][instants[time].instruction].insert(place);
        }
        last = now;
      }
      if (program.buffers[places[place].buffer].persistent) {
        live[action][number].insert(place);
      }
    }
  }
  return live;
}

/// Compares a course and its live buffers with `livePlaces` at each instant.
void expectRight(const Program &program, const std::vector<Action> &section) {
  const MemoryCourse course = findMemoryCourse(program, section);
  auto live = livePlaces(program, section);
  BufferPlaces places(program);
  uint64_t most = 0;
  for (size_t action = 0; action < section.size(); ++action) {
    for (size_t i = 0; i < live[action].size(); ++i) {
      MemoryUse expected;
      std::map<uint32_t, size_t> counts;
      for (uint32_t place : live[action][i]) {
        const Buffer &buffer = program.buffers[places[place].buffer];
        expected.bytes[size_t(buffer.kind)] += buffer.bytes;
        expected.framed[size_t(buffer.kind)] += buffer.frameSet ? buffer.bytes : 0;
        expected.aligned += (buffer.bytes + 63) / 64 * 64;
        ++counts[places[place].buffer];
      }
      const Instant instant = {action, i};
      ASSERT_EQ(course.at(instant), expected) << "action " << action << ", instruction " << i;
      most = std::max(most, expected.aligned);
      std::vector<LiveBuffer> buffers = findLiveBuffers(program, section, instant);
      ASSERT_EQ(buffers.size(), counts.size());
      for (const LiveBuffer &buffer : buffers) {
        bool isPersistent = program.buffers[buffer.buffer].persistent;
        ASSERT_EQ(buffer.values.size(), isPersistent ? 0 : counts[buffer.buffer]);
        for (const ValueLife &life : buffer.values) {
          ASSERT_TRUE(life.first <= instant && instant <= life.last);
        }
      }
    }
  }
  std::optional<Instant> peak = course.peak();
  ASSERT_EQ(peak ? course.at(*peak).aligned : 0, most);
}

TEST(MemoryCourse, OfToysIsRight) {
  for (const Program &program : {makeToy(2, 2), makeToyClasses(2)[1]}) {
    expectRight(program, program.init);
    expectRight(program, program.step);
    expectRight(program, program.evaluate);
  }
  for (auto [order, frames] : kOrders) {
    expectRight(makeToyPipeline(1, 1, order, frames), makeToyPipeline(1, 1, order, frames).step);
  }
}

/// Returns a section of few bodies, buffers and frames, which use each other's values at random.
Program makeRandom(std::mt19937_64 &random) {
  Program program;
  program.frameSets = {{0, {0, 0, 0}}};
  for (int i = 0; i < 8; ++i) {
    Buffer buffer = {8 + random() % 200, 0, BufferClass(random() % kBufferClasses),
                     random() % 8 == 0};
    buffer.kind = buffer.kind == BufferClass::Workspace ? BufferClass::Input : buffer.kind;
    buffer.frameSet = !buffer.persistent && random() % 2 ? std::optional(0u) : std::nullopt;
    program.buffers.push_back(buffer);
  }
  for (int i = 0; i < 3; ++i) {
    Body &body = program.bodies.emplace_back();
    body.instructions.resize(random() % 5);
    for (Instruction &instruction : body.instructions) {
      for (uint32_t buffer = 0; buffer < 8; ++buffer) {
        if (random() % 4 == 0) {
          instruction.operands.push_back({buffer, Access(random() % 3)});
        }
      }
    }
  }
  for (size_t i = random() % 12; i > 0; --i) {
    program.step.push_back({uint32_t(random() % 3), {}, {{0, uint32_t(random() % 3)}}});
  }
  return program;
}

TEST(MemoryCourse, OfRandomSectionsIsRightAndNoLargerThanThePackedLives) {
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  for (int trial = 0; trial < 300; ++trial) {
    const Program program = makeRandom(random);
    expectRight(program, program.step);
    auto live = livePlaces(program, program.step);
    auto [lives, begins] = findBufferLives(program);
    for (size_t action = 0; action < live.size(); ++action) {
      for (size_t i = 0; i < live[action].size(); ++i) {
        for (uint32_t place : live[action][i]) {
          int64_t time = begins[program.step[action].body] + int64_t(i);
          EXPECT_TRUE(lives[place].first <= time && time <= lives[place].last);
        }
      }
    }
  }
}

// Forward of two micro-batches, then their backward: actions 1 to 4 of the step.
TEST(MemoryCourse, FramesCountWhileTheyAreInFlight) {
  const Program program = makeToyPipeline(1, 1, "F0@0 F1@1 B0@0 B1@1 F2@0 B2@0", 2);
  MemoryCourse course = findMemoryCourse(program, program.step);
  auto framed = [&](size_t action, size_t instruction) {
    return course.at({action, instruction}).totalFramed();
  };
  const uint64_t difference = program.buffers[kDifference].bytes;
  EXPECT_EQ(framed(1, 0), difference);
  EXPECT_EQ(framed(1, 2), difference + 8); // With the part of the loss.
  EXPECT_EQ(framed(2, 0), 2 * difference);
  EXPECT_EQ(framed(3, 0), 2 * difference);
  EXPECT_EQ(framed(4, 0), difference);
  EXPECT_EQ(framed(5, 0), difference);
  EXPECT_EQ(framed(7, 0), 0);
  EXPECT_EQ(course.peak(), (Instant{2, 2}));
  // Forward and backward begin and end alike for all micro-batches.
  EXPECT_EQ(course.profiles.size(), 4u);
}

TEST(MemoryCourse, LiveBuffersHaveTheirValuesLives) {
  const Program program = makeToyPipeline(1, 1, kTwoInFlight, 2);
  std::vector<LiveBuffer> live = findLiveBuffers(program, program.step, {2, 2});
  auto find = [&](uint32_t buffer) {
    auto it = std::ranges::find(live, buffer, &LiveBuffer::buffer);
    return it == live.end() ? LiveBuffer{buffer, {{{99, 0}, {}}}} : *it;
  };
  auto expectLife = [](const ValueLife &life, Instant first, Instant last) {
    EXPECT_EQ(life.first, first);
    EXPECT_EQ(life.last, last);
  };
  LiveBuffer difference = find(kDifference);
  ASSERT_EQ(difference.values.size(), 2u);
  expectLife(difference.values[0], {1, 0}, {3, 0});
  expectLife(difference.values[1], {2, 0}, {5, 0});
  EXPECT_EQ(difference.bytes(program), 512u);
  ASSERT_EQ(find(kPart).values.size(), 1u);
  expectLife(find(kPart).values[0], {2, 2}, {2, 3});
  // Sums over micro-batches, from their zeros on.
  ASSERT_EQ(find(kLoss).values.size(), 1u);
  expectLife(find(kLoss).values[0], {0, 0}, {9, 1});
  expectLife(find(kGradient).values[0], {0, 0}, {9, 8});
  EXPECT_TRUE(find(kTable).values.empty());
  // The largest come first.
  EXPECT_TRUE(std::ranges::is_sorted(live, std::greater(),
                                     [&](const LiveBuffer &each) { return each.bytes(program); }));
}

TEST(MemoryCourse, ManyMicroBatchesHaveTheProfilesOfFew) {
  std::string order;
  Program program = makeToyPipeline(1, 1, kTwoInFlight, 2);
  const size_t profiles = findMemoryCourse(program, program.step).profiles.size();
  program.microBatches = 4000;
  const Action end = program.step.back();
  program.step.pop_back();
  for (int64_t number = 4; number < 4000; ++number) {
    program.step.push_back({2, number, {{0, uint32_t(number % 2)}}});
    program.step.push_back({3, number, {{0, uint32_t(number % 2)}}});
  }
  program.step.push_back(end);
  MemoryCourse course = findMemoryCourse(program, program.step);
  EXPECT_EQ(course.profiles.size(), profiles);
  EXPECT_EQ(course.actions.size(), program.step.size());
}

TEST(MemoryCourse, OfNothingHasNoPeak) {
  Program program = makeToy(1, 1);
  program.step.clear();
  EXPECT_EQ(findMemoryCourse(program, program.step).peak(), std::nullopt);
  program.bodies.push_back({"nothing", {}});
  program.step = {{uint32_t(program.bodies.size() - 1)}};
  EXPECT_EQ(findMemoryCourse(program, program.step).peak(), std::nullopt);
}

TEST(MemoryPeak, IsOfAllSections) {
  Program program = makeToy(1, 1);
  EXPECT_EQ(memoryPeak(program).section, "step");
  program.buffers.push_back({1 << 20, 0, BufferClass::Activation});
  auto number = uint32_t(program.buffers.size() - 1);
  program.evaluateBody().back().operands.push_back({number, Access::Write});
  MemoryPeak peak = memoryPeak(program);
  EXPECT_EQ(peak.section, "evaluate");
  EXPECT_EQ(peak.actions, &Program::evaluate);
  EXPECT_EQ(peak.instant, (Instant{0, program.evaluateBody().size() - 1}));
  EXPECT_THAT(memoryReport(program), testing::HasSubstr("at the peak (evaluate instruction "));
  program.init = program.step = program.evaluate = {};
  peak = memoryPeak(program);
  EXPECT_EQ(peak.section, "");
  EXPECT_EQ(peak.use, persistentUse(program));
}

} // namespace
