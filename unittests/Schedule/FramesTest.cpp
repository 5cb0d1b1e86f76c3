//===- FramesTest.cpp - programs with micro-batches in flight -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Frames.h"
#include "tests/ToyPipeline.h"
#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Lifetimes.h"
#include "weft/Schedule/Proof.h"
#include "weft/Schedule/Streams.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

using namespace weft;
using namespace weft::schedule;

namespace {

/// Numbers in the program: buffers in its frames, others, and bodies.
constexpr uint32_t kDifference = 8, kPart = 9, kGradient = 6, kNorm = 7, kForward = 2, kEnd = 4;

const std::pair<const char *, uint32_t> kOrders[] = {{rt::kOneInFlight, 1},
                                                     {rt::kTwoInFlight, 2},
                                                     {rt::kThreeInFlight, 3},
                                                     {rt::kAllForwardFirst, 4}};

std::string refusal(const rt::Program &program) {
  std::string text;
  for (const std::string &message : prove(program).diagnostics) {
    text += message + "\n";
  }
  return text;
}

rt::Program makePacked(const std::string &order, uint32_t frames) {
  rt::Program program = rt::makeToyPipeline(2, 2, order, frames);
  packArena(program);
  return program;
}

TEST(Frames, AreProvenInEveryOrder) {
  for (auto [order, frames] : kOrders) {
    EXPECT_EQ(refusal(rt::makeToyPipeline(2, 2, order, frames)), "");
    EXPECT_EQ(refusal(makePacked(order, frames)), "");
  }
}

/// Micro-batches get the frames that the orders name by hand.
TEST(Frames, FollowFromActions) {
  for (auto [order, frames] : kOrders) {
    rt::Program expected = rt::makeToyPipeline(2, 2, order, frames), made = expected;
    std::vector<bool> isOfMicroBatch(made.buffers.size(), false);
    isOfMicroBatch[kDifference] = true;
    made.frameSets.clear();
    made.buffers[kDifference].frameSet.reset();
    made.buffers[kPart].frameSet.reset();
    for (rt::Action &action : made.step) {
      action.frames.clear();
    }
    makeFrameSets(made, made.step, isOfMicroBatch);
    if (frames == 1) { // One place is enough.
      EXPECT_TRUE(made.frameSets.empty());
      EXPECT_FALSE(made.buffers[kDifference].frameSet);
      continue;
    }
    ASSERT_EQ(made.frameSets.size(), 1u);
    EXPECT_EQ(made.buffers[kDifference].frameSet, 0u);
    EXPECT_FALSE(made.buffers[kPart].frameSet);
    packArena(made);
    EXPECT_EQ(made.frameSets[0].offsets.size(), frames);
    EXPECT_EQ(made.buffers[kPart].frameSet, 1u); // Scratch of `forward`.
    EXPECT_EQ(refusal(made), "");
    for (rt::Action &action : made.step) {
      std::erase_if(action.frames, [](const rt::FrameUse &use) { return use.set == 1; });
    }
    EXPECT_EQ(made.step, expected.step) << order;
  }
}

/// Lets `backward` read what `forward` has in `part`, which so stays in frames.
void keepPart(rt::Program &program) {
  program.bodies[kForward + 1].instructions[0].operands.push_back({kPart, rt::Access::Read});
}

TEST(Frames, LieOneAfterAnotherAndOnTheirOwn) {
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  keepPart(program);
  program.buffers[kNorm].kind = rt::BufferClass::Workspace; // For its alignment.
  packArena(program);
  EXPECT_EQ(program.buffers[kDifference].offset, 0);
  EXPECT_EQ(program.buffers[kPart].offset, 256);
  EXPECT_EQ(program.frameSets[0].bytes, 512);
  EXPECT_EQ(program.frameSets[0].offsets[1], program.frameSets[0].offsets[0] + 512);
  EXPECT_EQ(program.frameSets[0].offsets[0] % 256, 0);
}

TEST(Frames, TheArenaHasThoseThatAreInUse) {
  uint64_t before = 0;
  for (auto [order, frames] : kOrders) {
    const rt::Program program = makePacked(order, frames);
    if (frames > 1) {
      EXPECT_EQ(program.arenaBytes - before, 128);
    }
    before = program.arenaBytes;
  }
  // A frame that is never used is left out.
  EXPECT_EQ(makePacked(rt::kOneInFlight, 2).frameSets[0].offsets.size(), 1);
}

/// Returns a pipeline in which what `forward` keeps lies in two sets.
rt::Program makeTwoSets(const std::string &order, uint32_t frames) {
  rt::Program program = rt::makeToyPipeline(2, 2, order, frames);
  keepPart(program);
  program.frameSets.emplace_back();
  program.buffers[kPart].frameSet = 1;
  packArena(program);
  return program;
}

TEST(Frames, BuffersThatAreNeededAlikeShareASet) {
  // Also the part of the loss, if `backward` reads it; and what the next forward still needs.
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  program.frameSets.clear();
  std::vector<bool> isOfMicroBatch(program.buffers.size(), false);
  isOfMicroBatch[kDifference] = isOfMicroBatch[kPart] = true;
  keepPart(program);
  makeFrameSets(program, program.step, isOfMicroBatch);
  ASSERT_EQ(program.frameSets.size(), 1u);
  EXPECT_EQ(program.buffers[kPart].frameSet, 0u);
  packArena(program);
  EXPECT_EQ(program.frameSets[0].bytes, 128 + 64);
}

TEST(Frames, OfTwoSetsAreAllProven) {
  for (auto [order, frames] : kOrders) {
    rt::Program program = makeTwoSets(order, frames);
    EXPECT_EQ(refusal(program), "") << order;
    auto region = findFrameRegions(program)[1];
    EXPECT_EQ(region.end - region.begin, findMostFrameBytes(program)[1]) << order;
  }
}

constexpr uint32_t kBackward = 3, kGather = 5;

/// A program whose forward and backward read a copy of the table, which an action of no micro-batch
/// gathers before `isGatheredAt` of the actions between.
rt::Program makeGathered(const char *order, uint32_t frames,
                         const std::function<bool(size_t)> &isGatheredAt) {
  rt::Program program = rt::makeToyPipeline(2, 2, order, frames);
  const auto copy = uint32_t(program.buffers.size());
  program.buffers.push_back(program.buffers[kGradient]);
  program.buffers[copy].kind = rt::BufferClass::ParameterCopy;
  rt::Instruction gather = program.bodies[kEnd].instructions[2]; // As if it were an all-gather.
  gather.operands = {{0, rt::Access::Read}, {copy, rt::Access::Write}};
  program.bodies.push_back({"gather", {gather}});
  program.bodies[kForward].instructions[0].operands[0].buffer = copy;
  program.bodies[kBackward].instructions[0].operands.push_back({copy, rt::Access::Read});
  std::vector<rt::Action> step;
  for (size_t number = 0; number < program.step.size(); ++number) {
    if (program.step[number].microBatch && isGatheredAt(number - 1)) {
      step.push_back({kGather});
    }
    step.push_back(program.step[number]);
  }
  program.step = step;
  program.frameSets.clear();
  std::vector<bool> mayHaveFrames(program.buffers.size(), false);
  mayHaveFrames[kDifference] = mayHaveFrames[copy] = true;
  makeFrameSets(program, program.step, mayHaveFrames);
  packArena(program);
  return program;
}

/// A gather serves the actions up to the next one, whatever their micro-batches, and others have
/// its place then.
TEST(Frames, HoldWhatIsGathered) {
  for (auto [order, frames] : kOrders) {
    for (size_t period : {1, 2, 3, 100}) {
      rt::Program program =
          makeGathered(order, frames, [&](size_t number) { return number % period == 0; });
      EXPECT_EQ(refusal(program), "") << order << ' ' << period;
      ASSERT_EQ(program.step[1].frames.size(), 1u);
      const uint32_t set = program.step[1].frames[0].set;
      auto region = findFrameRegions(program)[1];
      EXPECT_GE(region.end - region.begin, findMostFrameBytes(program)[1]);
      EXPECT_GE(findMostFrameBytes(program)[1], program.frameSets[set].bytes);
    }
  }
}

TEST(Frames, MistakesWithGathersAreRefused) {
  const auto first = [](size_t number) { return number == 0; };
  rt::Program late = makeGathered(rt::kTwoInFlight, 2, first);
  std::swap(late.step[1], late.step[2]);
  EXPECT_EQ(refusal(late), "step instruction 1 'micro-batch 0/table: differences' of forward reads "
                           "buffer 10 of frame 0, which no instruction has written\n");
  // Another gather's bytes, or an activation's, lie in the place that is named.
  rt::Program other = makeGathered(rt::kTwoInFlight, 2, first);
  const uint32_t set = other.step[1].frames[0].set;
  rt::FrameSet &gathered = other.frameSets[set];
  gathered.offsets[0] = other.frameSets[1 - set].offsets[0];
  EXPECT_NE(refusal(other), "");
  // What a micro-batch leaves is not of all of them.
  rt::Program whole = makeGathered(rt::kTwoInFlight, 2, first);
  for (rt::Action &action : whole.step) {
    if (action.body == kBackward) {
      action.microBatch.reset();
    }
  }
  EXPECT_NE(refusal(whole), "");
}

/// Adds instructions to a body that fill a buffer and read it again, before the instruction `at`.
uint32_t addScratch(rt::Program &program, uint32_t body, int64_t at) {
  const auto buffer = uint32_t(program.buffers.size());
  program.buffers.push_back(program.buffers[kNorm]);
  rt::Instruction fill = program.bodies[kEnd].instructions[3];
  rt::Instruction sum = program.bodies[kEnd].instructions[4];
  fill.operands[1].buffer = buffer;
  sum.operands = {{buffer, rt::Access::Read}, {buffer, rt::Access::Write}};
  std::vector<rt::Instruction> &instructions = program.bodies[body].instructions;
  instructions.insert(instructions.begin() + at, {fill, sum});
  return buffer;
}

TEST(Frames, HoldScratchWhileTheyAreNotFull) {
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  for (rt::Body &body : program.bodies) {
    for (rt::Instruction &instruction : body.instructions) {
      instruction.stream = rt::Stream::Compute;
      instruction.waits.clear();
    }
  }
  const auto end = int64_t(program.bodies[kForward + 1].instructions.size());
  const uint32_t early = addScratch(program, kForward, 0);
  const uint32_t late = addScratch(program, kForward + 1, end);
  const uint32_t tooEarly = addScratch(program, kForward + 1, 0);
  const auto forwardEnd = int64_t(program.bodies[kForward].instructions.size());
  const uint32_t tooLate = addScratch(program, kForward, forwardEnd);
  packArena(program);
  EXPECT_EQ(refusal(program), "");
  // At the same place: no action uses both.
  for (uint32_t buffer : {early, late}) {
    EXPECT_EQ(program.buffers[buffer].frameSet, 0u);
    EXPECT_EQ(program.buffers[buffer].offset, 0);
  }
  // In sets of their bodies.
  for (uint32_t buffer : {tooEarly, tooLate}) {
    EXPECT_GT(program.buffers[buffer].frameSet, 0u);
  }
  // Beside computation, as long as is predicted.
  rt::Instruction &sum = program.bodies[kForward].instructions[1];
  sum.stream = rt::Stream::Communication;
  sum.cost.seconds = 1;
  packArena(program);
  EXPECT_GT(program.buffers[early].frameSet, 0u);
  EXPECT_EQ(program.buffers[late].frameSet, 0u);
}

TEST(Frames, OfTwoSetsInUseAtOnceLieApart) {
  rt::Program program = makeTwoSets(rt::kTwoInFlight, 2);
  for (uint64_t &offset : program.frameSets[1].offsets) {
    offset = program.frameSets[0].offsets[1];
  }
  EXPECT_NE(refusal(program).find("buffer 9 of frame 0 and buffer 8 of frame 1 overlap in space "
                                  "and time"),
            std::string::npos)
      << refusal(program);
}

/// Returns a program of a few sets. Of each, every micro-batch uses a frame in two actions.
rt::Program makeRandomFrames(std::mt19937_64 &random) {
  rt::Program program;
  const size_t sets = 1 + random() % 4;
  program.frameSets.resize(sets);
  for (uint32_t set = 0; set < sets; ++set) {
    const uint64_t bytes = 65536 * (1 + random() % 20);
    program.buffers.push_back({bytes, 0, rt::BufferClass::Activation, false, rt::ElementType::F32});
    program.buffers.back().frameSet = set;
    rt::Instruction use;
    use.operands = {{set, rt::Access::Read}};
    program.bodies.push_back({"use", {use}});
    program.bodies.push_back({"use again", {use}});
  }
  program.microBatches = 8;
  for (int64_t microBatch = 0; microBatch < program.microBatches; ++microBatch) {
    for (uint32_t set = 0; set < sets; ++set) {
      for (uint32_t body : {2 * set, 2 * set + 1}) {
        program.step.insert(program.step.begin() + int64_t(random() % (program.step.size() + 1)),
                            {body, microBatch});
      }
    }
  }
  return program;
}

TEST(Frames, TakeLittleMoreThanThoseInUse) {
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  double excess = 0;
  constexpr int kTrials = 100;
  for (int trial = 0; trial < kTrials; ++trial) {
    rt::Program program = makeRandomFrames(random);
    packFrames(program);
    std::map<std::pair<uint32_t, int64_t>, std::pair<size_t, size_t>> spans;
    for (size_t action = 0; action < program.step.size(); ++action) {
      auto &[first, last] =
          spans
              .try_emplace({program.step[action].frames[0].set, *program.step[action].microBatch},
                           action, action)
              .first->second;
      last = action;
    }
    auto placeOf = [&](size_t action) {
      auto [set, frame] = program.step[action].frames[0];
      uint64_t begin = program.frameSets[set].offsets[frame];
      return std::pair(begin, begin + program.frameSets[set].bytes);
    };
    for (const auto &[key, span] : spans) {
      auto [begin, end] = placeOf(span.first);
      EXPECT_EQ(placeOf(span.second), std::pair(begin, end));
      for (const auto &[other, otherSpan] : spans) {
        auto [otherBegin, otherEnd] = placeOf(otherSpan.first);
        bool meets = span.first <= otherSpan.second && otherSpan.first <= span.second;
        EXPECT_TRUE(key == other || !meets || end <= otherBegin || otherEnd <= begin);
      }
    }
    auto region = findFrameRegions(program)[1];
    const auto most = double(findMostFrameBytes(program)[1]);
    EXPECT_GE(double(region.end - region.begin), most);
    excess += double(region.end - region.begin) / most - 1;
  }
  EXPECT_LT(excess / kTrials, 0.01);
  RecordProperty("excess", std::to_string(excess / kTrials));
}

/// What `backward` leaves to a later action begins where `forward`'s value has been read.
TEST(Frames, ShareBytesWhereOneEndsAndAnotherBegins) {
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  const auto result = uint32_t(program.buffers.size());
  program.buffers.push_back(program.buffers[kDifference]);
  program.buffers.push_back(program.buffers[kNorm]);
  program.buffers[result].frameSet = 1;
  program.frameSets.resize(2);
  rt::Instruction fill = program.bodies[kEnd].instructions[3], use = fill;
  fill.operands[1].buffer = result;
  use.operands = {{result, rt::Access::Read}, {result + 1, rt::Access::Write}};
  program.bodies[kForward + 1].instructions.push_back(fill);
  const auto later = uint32_t(program.bodies.size());
  program.bodies.push_back({"later", {use}});
  for (auto action = program.step.begin(); action != program.step.end(); ++action) {
    if (action->body == kForward + 1) {
      const rt::Action next = {later, action->microBatch};
      action = program.step.insert(action + 1, next);
    }
  }
  packArena(program);
  EXPECT_EQ(refusal(program), "");
  const auto region = findFrameRegions(program)[1];
  EXPECT_EQ(region.end - region.begin, findMostFrameBytes(program)[1]);
  // Two frames, beside which `forward` needs the part of the loss.
  EXPECT_EQ(region.end - region.begin, 2 * program.frameSets[0].bytes + 64);
}

/// Sets of four and of three equal buffers leave holes, unless they are cut.
TEST(Frames, OfUnequalSetsAreCut) {
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  constexpr int kTrials = 20;
  double excess = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    rt::Program program;
    program.frameSets.resize(2);
    for (uint32_t set : {0u, 1u}) {
      rt::Instruction use;
      for (uint32_t count = 4 - set; count > 0; --count) {
        use.operands.push_back({uint32_t(program.buffers.size()), rt::Access::Read});
        program.buffers.push_back(
            {65536, 0, rt::BufferClass::Activation, false, rt::ElementType::F32, set});
      }
      program.bodies.push_back({"use", {use}});
      program.bodies.push_back({"use again", {use}});
    }
    program.microBatches = 16;
    for (int64_t microBatch = 0; microBatch < program.microBatches; ++microBatch) {
      for (uint32_t body = 0; body < 4; ++body) {
        const size_t least = program.step.size() - std::min<size_t>(program.step.size(), 12);
        const size_t at = least + random() % (program.step.size() + 1 - least);
        program.step.insert(program.step.begin() + int64_t(at), {body, microBatch});
      }
    }
    packFrames(program);
    const auto region = findFrameRegions(program)[1];
    const auto most = double(findMostFrameBytes(program)[1]);
    EXPECT_GE(double(region.end - region.begin), most);
    excess += double(region.end - region.begin) / most - 1;
  }
  EXPECT_LT(excess / kTrials, 0.01);
  RecordProperty("excess", std::to_string(excess / kTrials));
}

/// A library's scratch, too, lies where frames hold nothing.
TEST(Frames, HoldWorkspaces) {
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  program.bodies[kForward].instructions[1].stream = rt::Stream::Compute;
  for (rt::Instruction &instruction : program.bodies[kForward].instructions) {
    instruction.waits.clear();
  }
  const uint32_t workspace = addScratch(program, kForward, 0);
  program.buffers[workspace].kind = rt::BufferClass::Workspace;
  packArena(program);
  EXPECT_EQ(refusal(program), "");
  EXPECT_EQ(program.buffers[workspace].frameSet, 0u);
  for (uint64_t offset : program.frameSets[0].offsets) {
    EXPECT_EQ(offset % rt::kWorkspaceAlignment, 0u);
  }
}

struct Refusal {
  const char *order;
  uint32_t frames;
  const char *text;
};

const Refusal kRefusals[] = {
    // Reused too early: a frame too few for two micro-batches in flight.
    {"F0@0 F1@0 B0@0 B1@0", 1,
     "step instruction 9 'micro-batch 0/table: gradient' of backward reads buffer 8 of frame 0, "
     "which forward has written for micro-batch 1\n"},
    {"F0@0 F1@1 F2@0 B0@0 B1@1 B2@0", 2,
     "step instruction 13 'micro-batch 0/table: gradient' of backward reads buffer 8 of frame 0, "
     "which forward has written for micro-batch 2\n"},
    // Frames swapped.
    {"F0@0 F1@1 B0@1 B1@0", 2,
     "step instruction 9 'micro-batch 0/table: gradient' of backward reads buffer 8 of frame 1, "
     "which forward has written for micro-batch 1\n"
     "step instruction 10 'micro-batch 1/table: gradient' of backward reads buffer 8 of frame 0, "
     "which forward has written for micro-batch 0\n"},
    // Another frame, and backward before forward.
    {"F0@0 B0@1", 2,
     "step instruction 5 'micro-batch 0/table: gradient' of backward reads buffer 8 of frame 1, "
     "which no instruction has written\n"},
    {"B0@0 F0@0", 1,
     "step instruction 1 'micro-batch 0/table: gradient' of backward reads buffer 8 of frame 0, "
     "which no instruction has written\n"},
    {"F0@0 F1@1 B0@0 B1@1", 1, "step action 2 is for frame 1 of set 0, which has 1\n"},
};

TEST(Frames, MistakesAreRefused) {
  for (const Refusal &refused : kRefusals) {
    EXPECT_EQ(refusal(rt::makeToyPipeline(2, 2, refused.order, refused.frames)), refused.text)
        << refused.order;
  }
}

/// Any other frame or order of one action, where all are needed, is refused.
TEST(Frames, MutantsAreRefused) {
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  for (auto [order, frames] : {kOrders[1], kOrders[2], kOrders[3]}) {
    const rt::Program right = makePacked(order, frames);
    for (int trial = 0; trial < 50; ++trial) {
      rt::Program moved = right;
      rt::Action &action = moved.step[1 + random() % 8];
      uint32_t &frame = action.frames[0].frame;
      frame = (frame + 1 + random() % (frames - 1)) % frames;
      EXPECT_NE(refusal(moved), "") << order;

      rt::Program early = right; // A backward before its forward.
      auto isBackward = [&](size_t i) { return early.step[i].body == kForward + 1; };
      size_t number = 1 + random() % 8;
      while (!isBackward(number)) {
        number = 1 + random() % 8;
      }
      rt::Action late = early.step[number];
      early.step.erase(early.step.begin() + int64_t(number));
      early.step.insert(early.step.begin() + 1, late);
      EXPECT_NE(refusal(early), "") << order;

      rt::Program few = right;
      few.frameSets[0].offsets.pop_back();
      EXPECT_NE(refusal(few), "") << order;
    }
  }
}

TEST(Frames, NothingElseLiesInThem) {
  rt::Program right = rt::makeToyPipeline(2, 2, rt::kTwoInFlight, 2);
  keepPart(right);
  packArena(right);
  rt::Program program = right;
  program.buffers[kGradient].offset = program.offsetOf(kPart, 1);
  program.arenaBytes += program.buffers[kGradient].bytes;
  EXPECT_NE(refusal(program).find("buffer 6 and buffer 9 of frame 1 overlap in space and time"),
            std::string::npos)
      << refusal(program);
  program = right;
  program.buffers[kPart].offset = program.buffers[kDifference].offset;
  EXPECT_NE(refusal(program).find(
                "reads buffer 8 of frame 0, some of whose bytes buffer 9 of frame 0 has "
                "overwritten"),
            std::string::npos)
      << refusal(program);
}

TEST(Frames, StreamsAreOrderedInEach) {
  rt::Program program = makePacked(rt::kTwoInFlight, 2);
  program.bodies[kForward].instructions[2].waits.clear();
  std::string text = refusal(program);
  for (const char *frame : {"0", "1"}) {
    EXPECT_NE(text.find(std::string(" of forward reads buffer 8 of frame ") + frame +
                        " on compute without waiting for"),
              std::string::npos)
        << text;
  }
}

/// Assigns streams and waits anew; all that computes takes equally long.
void useStreams(rt::Program &program) {
  for (rt::Body &one : program.bodies) {
    for (rt::Instruction &instruction : one.instructions) {
      instruction.cost.seconds = instruction.opcode == rt::Opcode::Observe ? 0 : 1e-3;
      instruction.stream = rt::Stream::Compute;
      instruction.waits.clear();
    }
  }
  packArena(program);
  assignStreams(program);
}

/// The sum of differences runs beside a kernel that does not need it.
TEST(Frames, StreamsAreAssigned) {
  for (auto [order, frames] : kOrders) {
    rt::Program program = rt::makeToyPipeline(2, 2, order, frames);
    std::vector<rt::Instruction> &body = program.bodies[kForward].instructions;
    rt::Instruction other = program.bodies[kEnd].instructions[3];
    other.operands[0].buffer = 0;
    other.operands[1].buffer = uint32_t(program.buffers.size());
    program.buffers.push_back(program.buffers[kNorm]);
    body.insert(body.begin() + 1, other);
    useStreams(program);
    EXPECT_EQ(refusal(program), "");
    EXPECT_NE(toText(program).find("over {model} %8 -> %8 on communication"), std::string::npos);
  }
}

/// Of three buffers that `forward` needs before it fills a frame, two lie in the frame. The third
/// lies apart from it.
TEST(Frames, AreNeededAsEarlyAsTheirScratch) {
  rt::Program program = rt::makeToyPipeline(2, 2, rt::kOneInFlight, 1);
  rt::Instruction fill = program.bodies[kEnd].instructions[3], join = fill;
  join.operands = {{kNorm, rt::Access::Write}};
  std::vector<rt::Instruction> early;
  for (int i = 0; i < 3; ++i) {
    fill.operands[1].buffer = uint32_t(program.buffers.size());
    program.buffers.push_back(program.buffers[kNorm]);
    early.push_back(fill);
    join.operands.push_back({fill.operands[1].buffer, rt::Access::Read});
  }
  program.buffers.back().bytes = 128; // As a frame.
  early.push_back(join);
  std::vector<rt::Instruction> &body = program.bodies[kForward].instructions;
  body.insert(body.begin(), early.begin(), early.end());
  // A sum runs beside another kernel.
  rt::Instruction other = program.bodies[kEnd].instructions[4];
  other.operands = {{kNorm, rt::Access::Read}, {kNorm, rt::Access::Write}};
  body.insert(body.begin() + 4, other);
  useStreams(program);
  EXPECT_NE(toText(program).find("on communication"), std::string::npos);
  EXPECT_EQ(refusal(program), "");
}

/// A buffer of `forward` shares bytes with frame 1 only, so frame 0 alone needs no wait.
TEST(Frames, WaitsAreThoseOfAll) {
  rt::Program program = rt::makeToyPipeline(2, 2, "F0@0 B0@0 F1@1 B1@1 F2@0 B2@0 F3@1 B3@1", 2);
  auto own = uint32_t(program.buffers.size());
  program.buffers.push_back(program.buffers[kNorm]);
  program.buffers[own].offset = program.offsetOf(kPart, 1);
  std::vector<rt::Instruction> &body = program.bodies[kForward].instructions;
  rt::Instruction fill = program.bodies[kEnd].instructions[3],
                  sum = program.bodies[kEnd].instructions[4];
  fill.operands[1].buffer = own;
  sum.operands = {{own, rt::Access::Read}, {own, rt::Access::Write}};
  sum.stream = rt::Stream::Communication;
  body[1].stream = rt::Stream::Compute;
  body.insert(body.begin(), {fill, sum});
  setWaits(program, kForward);
  EXPECT_EQ(refusal(program), "");
  EXPECT_EQ(body[4].waits, std::vector<uint32_t>{1});
  body[4].waits.clear();
  EXPECT_NE(refusal(program).find("writes buffer 9 of frame 1 on compute without waiting for"),
            std::string::npos)
      << refusal(program);
}

} // namespace
