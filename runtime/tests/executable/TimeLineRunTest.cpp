//===- TimeLineRunTest.cpp - the time line of a run -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Execution/time_lines.py compares the contents of the file with reports.
//
//===----------------------------------------------------------------------===//

#include "executable/Executable.h"
#include "execution/HostExecutor.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"
#include "tests/ToyFiles.h"
#include "training/ClockBarriers.h"
#include "training/Options.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

class TimeLineRun : public testing::Test {
protected:
  /// Trains two rank classes on the host, as threads; stores the output.
  int run(std::vector<std::string> words) {
    words.insert(words.end(), {"--data", data});
    std::vector<const char *> arguments;
    for (const std::string &word : words) {
      arguments.push_back(word.c_str());
    }
    Result<Options> options = parseOptions(programs.front(), arguments);
    EXPECT_EQ(errorOf(options), "");
    auto find = [] { return Result<MakeExecutor>(makeHostExecutor); };
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = int(train(programs, kToyKernels, *options, find));
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  /// Returns true if the folder has nothing but the data.
  bool isEmpty() const {
    namespace fs = std::filesystem;
    const fs::path path = fs::path(folder.file("x")).parent_path();
    return std::distance(fs::directory_iterator(path), fs::directory_iterator()) == 1;
  }

  const Programs programs = makeToyClasses(2);
  TemporaryFolder folder;
  std::string data = folder.write("data", toyText()), line = folder.file("line"), out, err;
};

TEST_F(TimeLineRun, IsOfTheLastStepByDefault) {
  ASSERT_EQ(run({"--steps", "4", "--timeline", line}), 0) << err;
  EXPECT_THAT(out, HasSubstr("the time line of step 3 is in '" + line + "'\n"));
  const std::string trace = folder.read("line");
  EXPECT_THAT(trace, HasSubstr("step 3"));
  EXPECT_THAT(trace, testing::Not(HasSubstr("step 2")));
  EXPECT_THAT(trace, HasSubstr("stage 0, rank 0"));
  EXPECT_THAT(trace, HasSubstr("stage 1, rank 2"));
  EXPECT_THAT(trace, testing::Not(HasSubstr("rank 3")));
}

TEST_F(TimeLineRun, IsOfTheChosenStepsAndRanks) {
  ASSERT_EQ(
      run({"--steps", "4", "--timeline", line, "--timeline-steps", "0-1", "--timeline-ranks", "3"}),
      0)
      << err;
  EXPECT_THAT(out, HasSubstr("the time line of steps 0 to 1 is in '" + line + "'\n"));
  const std::string trace = folder.read("line");
  EXPECT_THAT(trace, HasSubstr("step 1"));
  EXPECT_THAT(trace, testing::Not(HasSubstr("step 2")));
  EXPECT_THAT(trace, HasSubstr("stage 1, rank 3"));
  EXPECT_THAT(trace, testing::Not(HasSubstr("rank 0")));
}

TEST_F(TimeLineRun, RefusesOthers) {
  EXPECT_EQ(run({"--steps", "4", "--timeline", line, "--timeline-steps", "3-4"}), 1);
  EXPECT_THAT(err, HasSubstr("--timeline-steps is 3-4, expected steps of this run, from 0 to "
                             "before 4"));
  EXPECT_EQ(run({"--steps", "4", "--timeline", line, "--timeline-ranks", "4"}), 1);
  EXPECT_THAT(err, HasSubstr("--timeline-ranks: rank 4 is none of the program's ranks, 0 to 3"));
  EXPECT_EQ(run({"--steps", "4", "--timeline", line, "--timeline-ranks", "a"}), 1);
  EXPECT_THAT(err, HasSubstr("--timeline-ranks: expected ranks such as 0,4-7, got 'a'"));
  EXPECT_EQ(run({"--steps", "0", "--timeline", line}), 1);
  EXPECT_THAT(err, HasSubstr("--timeline has nothing to show, since this run does no step"));
  EXPECT_EQ(run({"--steps", "4", "--timeline", folder.file("none/line")}), 1);
  EXPECT_THAT(err, HasSubstr("cannot write '" + folder.file("none/line") + "'"));
  EXPECT_TRUE(isEmpty());
}

/// Barriers of a millisecond at which the second clock shows `ahead` nanoseconds more.
std::pair<ClockBarriers::Barriers, ClockBarriers::Barriers> barriersOf(int64_t ahead) {
  ClockBarriers::Barriers first, second;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto time = int64_t(i) * 1'000'000;
    first[i] = {time, time + 300 + int64_t(i)};
    second[i] = {ahead + time + 100, ahead + time + 350 + int64_t(i)};
  }
  return {first, second};
}

TEST(Clocks, AreOneIfTheyMayBe) {
  const auto [first, second] = barriersOf(0);
  const ClockDifference difference = compareClocks(first, second);
  EXPECT_EQ(difference.ahead, 0);
  EXPECT_EQ(difference.error, 350); // The second leaves barrier 0 at 350, the first came at 0.
}

TEST(Clocks, DifferByWhatBarriersBound) {
  for (int64_t ahead : {int64_t(-5'000), int64_t(1'000'000'000'000)}) {
    const auto [first, second] = barriersOf(ahead);
    const ClockDifference difference = compareClocks(first, second);
    // From 100 - 300 to 350 around the truth.
    EXPECT_EQ(difference.ahead, ahead + 75);
    EXPECT_EQ(difference.error, 275);
  }
}

} // namespace
