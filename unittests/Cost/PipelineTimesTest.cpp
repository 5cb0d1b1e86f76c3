//===- PipelineTimesTest.cpp - predicted times of a pipeline's step --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/PredictProgram.h"
#include "weft/Description/StageOrder.h"
#include "weft/Schedule/Proof.h"
#include "weft/Schedule/Timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

using namespace weft;
using namespace weft::cost;

namespace {

using desc::StageAction;
using Kind = StageAction::Kind;

/// Buffers of all stages.
constexpr uint32_t kOwn = 0, kReceived = 1, kOther = 2;

/// Stages of one rank, put together by hand.
class Stages {
public:
  explicit Stages(uint32_t count) : programs(count) {
    for (uint32_t stage = 0; stage < count; ++stage) {
      rt::Program &program = programs[stage];
      program.rankClass = stage;
      program.rankClasses = count;
      program.mesh = {{"dp", 1}};
      program.labels = {""};
      program.kernels = {{"work"}};
      program.observations = {{"loss", {rt::ElementType::F32, {}, {}}}};
      program.buffers = {{4, 0}, {4, 64}, {4, 128}};
      program.arenaBytes = 192;
    }
  }

  static rt::Instruction work(double seconds, uint32_t to = kOwn) {
    return {rt::Opcode::Kernel, 0, 0, {{to, rt::Access::Write}}, {}, {0, 0, seconds}};
  }
  static rt::Instruction agree(double seconds) {
    return {rt::Opcode::Agree, 0, 0, {}, {}, {0, 0, seconds}};
  }
  /// A collective of `stage` across classes. In a transfer the first class sends.
  rt::Instruction collective(uint32_t stage, rt::CollectiveKind kind, uint32_t number,
                             std::vector<uint32_t> classes, double seconds) {
    std::vector<rt::Operand> operands = {{kOwn, rt::Access::Read}, {kReceived, rt::Access::Write}};
    if (kind == rt::CollectiveKind::Transfer) {
      operands.erase(operands.begin() + (classes[0] == stage));
    }
    rt::Collective made = {.kind = kind, .shape = {1}};
    made.classes = std::move(classes);
    made.number = number;
    std::vector<rt::Collective> &all = programs[stage].collectives;
    all.push_back(made);
    return {rt::Opcode::Collective, uint32_t(all.size() - 1), 0, operands, {}, {0, 0, seconds}};
  }
  /// Returns the number of a new body.
  uint32_t body(uint32_t stage, std::vector<rt::Instruction> instructions) {
    programs[stage].bodies.push_back({"", std::move(instructions)});
    return uint32_t(programs[stage].bodies.size() - 1);
  }

  /// Returns the times; the programs must be proven.
  PipelineTimes times() const {
    EXPECT_EQ(schedule::prove(programs).diagnostics, std::vector<std::string>());
    return pipelineTimes(programs);
  }

  rt::Programs programs;
};

using TimeOf = std::function<double(const StageAction &)>;

/// Stages that do forward and backward in the order of a schedule. As in `order-stages`, transfers
/// stand where the action ends that makes their operand, if actions take `usual` time.
class Pipeline : public Stages {
public:
  Pipeline(const desc::StageSchedule &lists, int64_t microBatches, const TimeOf &usual,
           const TimeOf &timeOf, double transferSeconds)
      : Stages(uint32_t(lists.size())) {
    auto count = uint32_t(lists.size());
    std::vector<Bodies> bodies;
    for (uint32_t stage = 0; stage < count; ++stage) {
      programs[stage].microBatches = microBatches;
      bodies.push_back(makeBodies(stage, count, timeOf, transferSeconds));
    }
    auto course = std::get<desc::Course>(desc::simulate(lists, microBatches, usual));
    std::vector<std::tuple<double, bool, StageAction>> events;
    for (const desc::TimedAction &each : course.actions) {
      events.emplace_back(each.begin, true, each.action);
      events.emplace_back(each.end, false, each.action);
    }
    std::ranges::sort(events);
    for (const auto &[time, isCall, action] : events) {
      auto stage = uint32_t(action.chunk); // Each stage has one.
      size_t direction = size_t(action.kind);
      int64_t target = action.chunk + (direction == 0 ? 1 : -1);
      if (isCall) {
        programs[stage].step.push_back({bodies[stage].work[direction], action.microBatch});
      } else if (target >= 0 && target < count) {
        programs[stage].step.push_back({bodies[stage].send[direction]});
        programs[size_t(target)].step.push_back({bodies[size_t(target)].receive[direction]});
      }
    }
  }

private:
  /// Numbers of bodies, forward and backward.
  struct Bodies {
    uint32_t work[2] = {}, send[2] = {}, receive[2] = {};
  };

  Bodies makeBodies(uint32_t stage, uint32_t count, const TimeOf &timeOf, double seconds) {
    auto transfer = [&](uint32_t number, uint32_t from, uint32_t to) {
      return body(stage,
                  {collective(stage, rt::CollectiveKind::Transfer, number, {from, to}, seconds)});
    };
    Bodies made;
    made.work[0] = body(stage, {work(timeOf({stage, Kind::Forward}))});
    made.work[1] = body(stage, {work(timeOf({stage, Kind::Backward}))});
    if (stage + 1 < count) {
      made.send[0] = transfer(2 * stage + 1, stage, stage + 1);
      made.receive[1] = transfer(2 * stage + 2, stage + 1, stage);
    }
    if (stage > 0) {
      made.receive[0] = transfer(2 * stage - 1, stage - 1, stage);
      made.send[1] = transfer(2 * stage, stage, stage - 1);
    }
    return made;
  }
};

/// Backward takes twice as long as forward.
double usualTime(const StageAction &action) { return action.kind == Kind::Forward ? 1 : 2; }

PipelineTimes timesOf(const char *name, int64_t stages, int64_t microBatches,
                      const TimeOf &timeOf = usualTime, double transferSeconds = 0) {
  return Pipeline(*desc::makeSchedule(name, stages, 1, microBatches), microBatches, usualTime,
                  timeOf, transferSeconds)
      .times();
}

/// (S - 1) / (M + S - 1).
TEST(PipelineTimes, BubblesAreThoseOfTheClosedForm) {
  for (const char *name : {"gpipe", "1f1b"}) {
    for (int64_t stages : {1, 2, 4}) {
      for (int64_t microBatches = 1; microBatches <= 8; ++microBatches) {
        PipelineTimes times = timesOf(name, stages, microBatches);
        EXPECT_EQ(times.seconds, 3.0 * double(microBatches + stages - 1));
        EXPECT_EQ(times.busy, std::vector(size_t(stages), 3.0 * double(microBatches)));
        EXPECT_DOUBLE_EQ(times.bubble(), double(stages - 1) / double(microBatches + stages - 1))
            << name << ", " << stages << " stages, " << microBatches << " micro-batches";
      }
    }
  }
}

TEST(PipelineTimes, TransfersTakeTime) {
  for (int64_t microBatches : {1, 4, 7}) {
    // Each micro-batch takes 1.5 forward and 2.5 backward; the last stage begins 1.5 later and
    // ends 2.5 before the first.
    PipelineTimes times = timesOf("gpipe", 2, microBatches, usualTime, 0.5);
    EXPECT_DOUBLE_EQ(times.seconds, 4 * double(microBatches) + 3);
    EXPECT_EQ(times.busy, std::vector(2, 4.0 * double(microBatches)));
  }
}

/// The others wait for the slowest stage: senders, too.
TEST(PipelineTimes, TheSlowestStageGivesThePace) {
  auto timeOf = [](const StageAction &action) { return action.chunk == 1 ? 3.0 : 1.0; };
  PipelineTimes times = timesOf("gpipe", 3, 8, timeOf);
  // Forward of the last micro-batch ends on stage 1 at 1 + 8 * 3, and 1 later on stage 2.
  EXPECT_EQ(times.seconds, 2 * (1 + 8 * 3 + 1));
  EXPECT_EQ(times.busy, (std::vector{16.0, 48.0, 16.0}));
  EXPECT_DOUBLE_EQ(times.bubble(), 1 - 80.0 / (3 * 52));
}

/// A sender that has something else to do on another stream does it while it waits.
TEST(PipelineTimes, StreamsRunBesideTransfers) {
  Stages stages(2);
  using enum rt::CollectiveKind;
  rt::Instruction send = stages.collective(0, Transfer, 1, {0, 1}, 2);
  send.stream = rt::Stream::Communication;
  send.waits = {0};
  uint32_t first = stages.body(0, {Stages::work(1), send, Stages::work(2.5, kOther)});
  stages.programs[0].step = {{first}, {stages.body(0, {Stages::work(1)})}};
  stages.programs[1].step = {{stages.body(
      1, {Stages::work(2), stages.collective(1, Transfer, 1, {0, 1}, 2), Stages::work(1)})}};
  // The transfer takes place from 2 to 4, while the first stage works until 3.5. Its streams join.
  PipelineTimes times = stages.times();
  EXPECT_EQ(times.seconds, 5);
  EXPECT_EQ(times.busy, (std::vector{4.5, 5.0}));
  stages.programs[0].bodies[first].instructions[2].cost.seconds = 3.5;
  EXPECT_EQ(stages.times().seconds, 5.5);
}

/// Sums over all classes, and where all agree to go on.
TEST(PipelineTimes, AllClassesMeet) {
  Stages stages(3);
  for (uint32_t stage = 0; stage < 3; ++stage) {
    uint32_t body = stages.body(
        stage, {Stages::work(stage == 1 ? 5 : 1),
                stages.collective(stage, rt::CollectiveKind::AllReduce, 7, {0, 1, 2}, 2),
                Stages::work(stage == 2 ? 4 : 1), Stages::agree(0.5), Stages::work(1)});
    stages.programs[stage].step = {{body}};
  }
  PipelineTimes times = stages.times();
  EXPECT_EQ(times.seconds, 5 + 2 + 4 + 0.5 + 1);
  EXPECT_EQ(times.busy, (std::vector{5.5, 9.5, 8.5}));
}

TEST(PipelineTimes, CoursesShowWhoWaitsWhen) {
  Stages stages(2);
  rt::Instruction receive = stages.collective(0, rt::CollectiveKind::Transfer, 1, {1, 0}, 2);
  uint32_t first = stages.body(0, {Stages::work(1)}), second = stages.body(0, {receive});
  stages.programs[0].step = {{first}, {second}, {first}};
  rt::Instruction send = stages.collective(1, rt::CollectiveKind::Transfer, 1, {1, 0}, 2);
  stages.programs[1].step = {{stages.body(1, {Stages::work(4), send})}};
  std::vector<schedule::ClassCourse> courses =
      schedule::predictCourse(stages.programs, &rt::Program::step);
  ASSERT_EQ(courses.size(), 2u);
  auto spans = [](const std::vector<schedule::TimeSpan> &times) {
    std::vector<std::pair<double, double>> all;
    for (const schedule::TimeSpan &time : times) {
      all.emplace_back(time.begin, time.end);
    }
    return all;
  };
  using Spans = std::vector<std::pair<double, double>>;
  EXPECT_EQ(spans(courses[0].actions), (Spans{{0, 1}, {1, 6}, {6, 7}}));
  EXPECT_EQ(spans(courses[0].waits), (Spans{{1, 4}}));
  EXPECT_EQ(courses[0].busy(), 4);
  EXPECT_EQ(spans(courses[1].actions), (Spans{{0, 6}}));
  EXPECT_EQ(spans(courses[1].waits), Spans{});
  EXPECT_EQ(courses[1].busy(), 6);
}

/// Spans are those of single instructions, and tell when a class comes to one that waits. Those of
/// an action end where the next one begins.
TEST(PipelineTimes, CoursesShowInstructions) {
  Stages stages(2);
  rt::Instruction receive = stages.collective(0, rt::CollectiveKind::Transfer, 1, {1, 0}, 2);
  uint32_t first = stages.body(0, {Stages::work(1), Stages::work(0.1)}),
           second = stages.body(0, {receive, Stages::work(3)});
  stages.programs[0].step = {{first}, {second}, {first}};
  rt::Instruction send = stages.collective(1, rt::CollectiveKind::Transfer, 1, {1, 0}, 2);
  stages.programs[1].step = {{stages.body(1, {Stages::work(4), send})}};
  std::vector<std::vector<schedule::InstructionSpan>> spans(2);
  std::vector<std::pair<uint32_t, size_t>> actions;
  auto courses = schedule::predictCourse(
      stages.programs, &rt::Program::step,
      [&](uint32_t rankClass, size_t action, std::span<const schedule::InstructionSpan> own) {
        actions.emplace_back(rankClass, action);
        spans[rankClass].insert(spans[rankClass].end(), own.begin(), own.end());
        EXPECT_FALSE(own.empty());
      });
  std::ranges::sort(actions);
  EXPECT_EQ(actions, (std::vector<std::pair<uint32_t, size_t>>{{0, 0}, {0, 1}, {0, 2}, {1, 0}}));
  auto textOf = [](const std::vector<schedule::InstructionSpan> &own) {
    std::vector<std::array<double, 3>> all;
    for (const schedule::InstructionSpan &span : own) {
      all.push_back({span.begin, span.end, span.arrival});
    }
    return all;
  };
  using Spans = std::vector<std::array<double, 3>>;
  EXPECT_EQ(textOf(spans[0]),
            (Spans{{0, 1, 0}, {1, 1.1, 1}, {4, 6, 1.1}, {6, 9, 6}, {9, 10, 9}, {10, 9 + 1.1, 10}}));
  EXPECT_EQ(textOf(spans[1]), (Spans{{0, 4, 0}, {4, 6, 4}}));
  EXPECT_EQ(courses[0].end(), spans[0].back().end);
}

/// The longer of two times that differ is the time of a collective.
TEST(PipelineTimes, BothEndsTakeEquallyLong) {
  Stages stages(2);
  for (uint32_t stage : {0, 1}) {
    rt::Instruction transfer =
        stages.collective(stage, rt::CollectiveKind::Transfer, 1, {1, 0}, 1 + stage);
    stages.programs[stage].step = {
        {stages.body(stage, {Stages::work(1), transfer, Stages::work(1)})}};
  }
  EXPECT_EQ(stages.times().seconds, 4);
}

TEST(PipelineTimes, OneClassIsTheSumOfItsActions) {
  Stages stages(1);
  rt::Instruction beside = Stages::work(0.7, kOther);
  beside.stream = rt::Stream::Communication;
  uint32_t a = stages.body(0, {Stages::work(0.1), Stages::work(0.3), beside}),
           b = stages.body(0, {Stages::work(0.2), Stages::agree(0.1), beside});
  stages.programs[0].step = {{a}, {a}, {b}, {a}};
  double ofA = schedule::predictSeconds(stages.programs[0].bodies[a].instructions),
         ofB = schedule::predictSeconds(stages.programs[0].bodies[b].instructions);
  PipelineTimes times = stages.times();
  EXPECT_EQ(times.seconds, ofA + ofA + ofB + ofA);
  EXPECT_EQ(times.seconds, stepSeconds(stages.programs[0]));
  EXPECT_EQ(times.bubble(), 0);
  EXPECT_EQ(schedule::predictSeconds(stages.programs, &rt::Program::evaluate), 0);
}

} // namespace
