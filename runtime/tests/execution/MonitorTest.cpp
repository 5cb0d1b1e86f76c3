//===- MonitorTest.cpp - devices that make no progress ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There is no device: the test writes the words and advances the time.
//
//===----------------------------------------------------------------------===//

#include "execution/Monitor.h"

#include "support/Text.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

using namespace weft::rt;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience(60);

/// Two ranks that share a failure.
struct Link : Communicator {
  struct Shared {
    std::mutex mutex;
    std::optional<Failure> failure;
    std::atomic<bool> hasFailed = false;
  };

  Link(int64_t self, Shared &shared) : self(self), shared(shared) {}

  int64_t rank() const override { return self; }
  Handle prepare(const Collective &, const RankGroup &, const CallSite &) override { return 0; }
  bool issue(Handle, const void *, void *) override { return true; }
  bool wait(Handle) override { return true; }
  bool collect(std::span<const char>, const Receiver &) override { return true; }
  bool fail(std::string message, ExitCode code) override {
    std::lock_guard lock(shared.mutex);
    shared.failure = shared.failure.value_or(Failure{self, message, code});
    shared.hasFailed = true;
    return false;
  }
  bool failLate(std::string message, const std::vector<int64_t> &others,
                std::chrono::milliseconds patience) override {
    asked = others;
    return fail(concat(message, "; asked for ", patience.count(), " ms"), ExitCode::Slow);
  }
  void tellBy(std::function<std::string()> describe) override { describeDevice = describe; }
  void moved() override { ++moves; }
  bool stopped() const override { return shared.hasFailed; }
  double waitedSeconds() const override { return 0; }

  const int64_t self;
  Shared &shared;
  std::atomic<int> moves = 0;
  std::vector<int64_t> asked;
  std::function<std::string()> describeDevice;
};

/// A clock that only the test advances, so that the machine's speed does not matter.
class HandClock {
public:
  Monitor::Clock::time_point now() {
    ++reads;
    return Monitor::Clock::time_point(Milliseconds(elapsed));
  }

  /// Advances the time and returns once the Monitor has looked at everything at the new time.
  /// `time` must not exceed a second, or the Monitor assumes that the process was suspended.
  void pass(Milliseconds time) {
    skip(time);
    // A look at up to three ranks, each of which reads the time, between parts of two other looks.
    constexpr int kReads = 9;
    for (int before = reads, tries = 0; reads < before + kReads; ++tries) {
      ASSERT_LT(tries, 60000) << "the Monitor does not look";
      std::this_thread::sleep_for(Milliseconds(1));
    }
  }

  /// Advances the time without waiting for the Monitor.
  void skip(Milliseconds time) { elapsed += time.count(); }

private:
  std::atomic<int> reads = 0;
  std::atomic<int64_t> elapsed = 0;
};

class MonitorTest : public testing::Test {
protected:
  void make(Milliseconds floor) {
    monitor.emplace(program, floor, [this] { return time.now(); });
  }
  void begin(Milliseconds floor) {
    make(floor);
    for (Link *link : {&first, &second}) {
      monitor->begin(link->rank(), *link, [this] { ++givenUp; });
      lines.push_back(&monitor->addLine(link->rank(), &words[link->rank()]));
    }
  }

  /// Returns the mark at the first all-reduce of a step, and the number of marks before it.
  uint32_t collectiveMark() const {
    const ProgressMarks &marks = monitor->marks();
    for (size_t i = 0; i < program.stepBody().size(); ++i) {
      if (program.stepBody()[i].opcode == Opcode::Collective) {
        return marks.behind("step", i);
      }
    }
    return 0;
  }

  void write(size_t rank, uint32_t value) {
    std::atomic_ref<uint32_t>(words[rank]).store(value, std::memory_order_release);
  }

  Failure failure() {
    for (int i = 0; i < 100 && !shared.hasFailed; ++i) {
      time.pass(Milliseconds(50));
    }
    std::lock_guard lock(shared.mutex);
    return shared.failure.value_or(Failure{-1, "none"});
  }

  Program program = makeToy(2, 1);
  HandClock time;
  Link::Shared shared;
  Link first{0, shared}, second{1, shared};
  uint32_t words[2] = {};
  std::atomic<int> givenUp = 0;
  std::optional<Monitor> monitor;
  std::vector<Monitor::Line *> lines;
};

TEST(ProgressMarksTest, AreAroundCollectivesAndWhereWorkIsLong) {
  Program program;
  program.labels = {"x"};
  auto add = [&](Opcode opcode, double seconds) {
    Instruction added;
    added.opcode = opcode;
    added.cost.seconds = seconds;
    program.stepBody().push_back(added);
  };
  for (int i = 0; i < 3; ++i) {
    add(Opcode::Matmul, 0.4e-3);
  }
  add(Opcode::Matmul, 5e-3);
  add(Opcode::Matmul, 0.1e-3);
  add(Opcode::Collective, 0.3e-3);
  for (int i = 0; i < 40; ++i) {
    add(Opcode::Matmul, 0);
  }
  ProgressMarks marks(program);
  std::vector<uint32_t> ends;
  for (uint32_t mark = 1; mark <= marks.count(); ++mark) {
    ends.push_back(marks.at(mark).range.last);
    EXPECT_EQ(marks.behind("step", marks.at(mark).range.last), mark);
  }
  EXPECT_THAT(ends, testing::ElementsAre(2, 3, 4, 5, 37, 45));
  EXPECT_DOUBLE_EQ(marks.at(1).seconds, 1.2e-3);
  EXPECT_EQ(marks.at(5).range.first, 6u);
  EXPECT_EQ(marks.behind("step", 6), 0u);
}

TEST_F(MonitorTest, LetsWhoComesOnGoOn) {
  begin(Milliseconds(150));
  EXPECT_EQ(lines[0]->issue(1), 1);
  for (uint32_t i = 1; i <= 8; ++i) {
    EXPECT_EQ(lines[0]->issue(1), i + 1); // The device always has work.
    time.pass(Milliseconds(100));
    write(0, i);
    time.pass({});
  }
  write(0, 9);
  time.pass(Milliseconds(300)); // All devices are idle.
  EXPECT_FALSE(shared.hasFailed);
  EXPECT_EQ(first.moves, 9);
  EXPECT_EQ(second.moves, 0);
  EXPECT_EQ(givenUp, 0);
}

TEST_F(MonitorTest, TellsOfADeviceThatIsStuckAndGivesUpAll) {
  begin(Milliseconds(100));
  lines[1]->issue(monitor->marks().behind("step", program.stepBody().size() - 1));
  Failure failed = failure();
  EXPECT_EQ(failed.rank, 1);
  EXPECT_EQ(failed.code, ExitCode::Stuck);
  EXPECT_THAT(failed.message,
              MatchesRegex("rank 1 is stuck: its device has been for [0-9.]+ ms in "
                           "step instructions? [0-9]+.* \\(.*, .*\\), place 1 of its work"));
  time.pass({}); // The Monitor sees that the run has stopped.
  time.pass(Milliseconds(501));
  EXPECT_TRUE(monitor->endsWithin(kPatience));
  EXPECT_EQ(givenUp, 2);
}

TEST_F(MonitorTest, TheBudgetGrowsWithThePrediction) {
  for (Instruction &instruction : program.stepBody()) {
    instruction.cost.seconds = 0.02;
  }
  begin(Milliseconds(100)); // Plus 200 ms for the prediction.
  lines[0]->issue(monitor->marks().behind("step", 0));
  time.pass({}); // The Monitor sees the work.
  time.pass(Milliseconds(300));
  EXPECT_FALSE(shared.hasFailed);
  time.pass(Milliseconds(1));
  EXPECT_TRUE(shared.hasFailed);
  EXPECT_THAT(failure().message, HasSubstr(", predicted to take 20 ms"));
}

TEST_F(MonitorTest, WorkThatComesWhileItLooksHasAllItsBudget) {
  std::atomic<Monitor::Line *> coming = nullptr;
  int reads = 0;
  monitor.emplace(program, Milliseconds(150), [&] {
    Monitor::Clock::time_point now = time.now();
    // The rank reads the clock as it begins, and each look does twice: before and after it sees.
    Monitor::Line *line = ++reads % 2 == 0 ? coming.exchange(nullptr) : nullptr;
    if (line) {
      time.skip(Milliseconds(100));
      line->issue(1);
    }
    return now;
  });
  monitor->begin(0, first, [] {});
  coming = &monitor->addLine(0, &words[0]);
  time.pass({}); // It comes, and is seen.
  time.pass(Milliseconds(150));
  EXPECT_FALSE(shared.hasFailed);
  time.pass(Milliseconds(1));
  EXPECT_TRUE(shared.hasFailed);
  monitor.reset(); // It reads the members of this object.
}

TEST_F(MonitorTest, NamesPartnersOfACollective) {
  begin(Milliseconds(200));
  uint32_t mark = collectiveMark();
  ASSERT_GT(mark, 0u);
  // Rank 1 has reached the all-reduce, rank 0 has not.
  for (Monitor::Line *line : lines) {
    line->issue(mark - 1);
    line->issue(mark);
  }
  write(1, 1);
  EXPECT_EQ(failure().code, ExitCode::Stuck);
  EXPECT_THAT(failure().message, MatchesRegex("rank 0 is stuck: its device has been for .*"));
}

TEST_F(MonitorTest, NamesPartnersThatAreThereOrHaveNothingToDo) {
  for (bool isThere : {true, false}) {
    shared.failure.reset();
    shared.hasFailed = false;
    words[0] = words[1] = 0;
    lines.clear();
    begin(Milliseconds(150));
    lines[0]->issue(collectiveMark());
    if (isThere) {
      lines[1]->issue(collectiveMark());
    }
    EXPECT_EQ(failure().code, ExitCode::Stuck);
    EXPECT_THAT(failure().message,
                isThere ? MatchesRegex("rank [01] is stuck: .*; rank [01] waits there too")
                        : MatchesRegex("rank 0 waited .*; rank 1 is missing: its device has "
                                       "nothing to do, and has not moved for .*"));
    monitor.reset();
  }
}

/// The collective waits for work on another line.
TEST_F(MonitorTest, JudgesTheLineWhoseTurnComesFirst) {
  uint32_t others[2] = {};
  begin(Milliseconds(200));
  uint32_t mark = collectiveMark();
  for (size_t rank : {0, 1}) {
    Monitor::Line &side = monitor->addLine(int64_t(rank), &others[rank]);
    lines[rank]->issue(ProgressMarks::kCopy);
    lines[rank]->issue(mark - 1);
    side.issue(mark);
    lines[rank]->issue(mark + 1);
  }
  write(0, 3); // It waits in the collective only.
  write(1, 1);
  EXPECT_THAT(failure().message,
              MatchesRegex("rank 1 is stuck: its device has been for .*, place 2 of its work"));
  EXPECT_EQ(failure().code, ExitCode::Stuck);
  EXPECT_THAT(first.describeDevice(),
              MatchesRegex("; its device is in step .*all-reduce.*, place 1 of its work"));
  monitor.reset();
}

/// An idle rank's host may wait for another rank's device.
TEST_F(MonitorTest, LooksBehindARankThatHasNothingToDo) {
  program = makeToy(3, 1);
  Link third(2, shared);
  uint32_t word = 0;
  begin(Milliseconds(200));
  monitor->begin(2, third, [] {});
  Monitor::Line &last = monitor->addLine(2, &word);
  uint32_t mark = collectiveMark();
  for (Monitor::Line *line : {lines[0], lines[1], &last}) {
    line->issue(mark - 1);
  }
  lines[0]->issue(mark);
  write(0, 1);
  write(1, 1);
  EXPECT_THAT(failure().message, MatchesRegex("rank 2 is stuck: .*, place 1 of its work"));
  monitor.reset();
}

TEST_F(MonitorTest, AsksPartnersInOtherProcesses) {
  make(Milliseconds(100));
  monitor->begin(0, first, [] {});
  Monitor::Line &line = monitor->addLine(0, &words[0]);
  EXPECT_EQ(first.describeDevice(), "; its device has nothing to do");
  line.issue(collectiveMark());
  EXPECT_THAT(
      first.describeDevice(),
      MatchesRegex("; its device is in step instruction [0-9]+ \\(all-reduce .*\\), place 1 "
                   "of its work"));
  EXPECT_THAT(failure().message, MatchesRegex("rank 0 waited .*; asked for 100 ms"));
  EXPECT_THAT(first.asked, testing::ElementsAre(1));
  monitor->end(0);
  EXPECT_FALSE(first.describeDevice);
}

TEST_F(MonitorTest, TellsWhoIsSlowFromWhoIsStuck) {
  begin(Milliseconds(300));
  uint32_t mark = collectiveMark();
  for (int i = 0; i < 100; ++i) {
    lines[0]->issue(mark - 1);
    lines[1]->issue(mark);
  }
  // Rank 1 is ahead and waits, as if in the collective; rank 0 makes slow progress.
  write(1, 90);
  for (uint32_t i = 1; i < 60 && !shared.hasFailed; ++i) {
    write(0, i);
    time.pass(Milliseconds(50));
  }
  EXPECT_EQ(failure().code, ExitCode::Slow);
  EXPECT_THAT(failure().message,
              testing::AllOf(HasSubstr("rank 1 waited "), HasSubstr("; rank 0 is missing: "),
                             HasSubstr(", and still moves, ")));
}

TEST_F(MonitorTest, LooksAtNothingOfARankThatHasEnded) {
  begin(Milliseconds(50));
  lines[0]->issue(1);
  monitor->end(0);
  time.pass(Milliseconds(300));
  EXPECT_FALSE(shared.hasFailed);
  first.fail("another", ExitCode::Error);
  time.pass({});
  time.pass(Milliseconds(501));
  EXPECT_TRUE(monitor->endsWithin(kPatience));
  EXPECT_EQ(givenUp, 1) << "only that of rank 1";
}

TEST_F(MonitorTest, DevicesThatRanksLeaveAreGivenUpSideBySide) {
  make(Milliseconds(50));
  std::promise<void> bothBegun;
  std::shared_future<void> begun = bothBegun.get_future().share();
  for (Link *link : {&first, &second}) {
    monitor->begin(link->rank(), *link, [this, &bothBegun, begun] {
      ++givenUp == 2 ? bothBegun.set_value() : begun.wait();
    });
  }
  first.fail("it is lost", ExitCode::Error);
  monitor->end(0);
  monitor->end(1);
  EXPECT_EQ(givenUp, 0) << "others may still read what they have sent";
  EXPECT_TRUE(monitor->endsWithin(kPatience));
  EXPECT_EQ(givenUp, 2);
  EXPECT_TRUE(monitor->endsWithin(kPatience));
  EXPECT_EQ(givenUp, 2) << "once is enough";
}

TEST_F(MonitorTest, ADeviceThatIsNeverGivenUpIsTold) {
  make(Milliseconds(50));
  // The Monitor's thread outlives it.
  auto end = std::make_shared<std::promise<void>>();
  monitor->begin(0, first, [end] { end->get_future().wait(); });
  first.fail("it is lost", ExitCode::Error);
  monitor->end(0);
  EXPECT_FALSE(monitor->endsWithin(Milliseconds(20)));
  end->set_value();
  EXPECT_TRUE(monitor->endsWithin(kPatience));
}

} // namespace
