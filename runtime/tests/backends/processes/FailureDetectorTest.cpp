//===- FailureDetectorTest.cpp - ranks that are stopped and go on ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/FailureDetector.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <optional>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

constexpr int kRanks = 3;
constexpr Bytes32 kKey = {1, 2, 3};
constexpr std::chrono::seconds kPatience(60), kGrace(60);

/// The end of a rank's run.
struct End {
  std::optional<ExitCode> code;
  bool reports = false;
};

/// Ranks as threads. Ranks 1 and 2 give up waiting for rank 0, which does not look at messages
/// until `goesOn`.
struct Ranks {
  End ends[kRanks];
  std::unique_ptr<ControlChannel> channels[kRanks];
  /// Counted down by ranks 1 and 2: when they have given up waiting, and when their run has ended.
  std::latch haveWaited{kRanks - 1}, haveEnded{kRanks - 1};

  /// `begins` is called by rank 0 before the others wait, `goesOn` before it looks at messages.
  template <typename Begin, typename GoOn> Ranks(const Begin &begins, const GoOn &goesOn) {
    const std::string run =
        std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    connect();
    std::latch haveBegun{1};
    std::vector<std::thread> others;
    for (int64_t rank = 1; rank < kRanks; ++rank) {
      others.emplace_back([&, rank] {
        FailureDetector detector(*channels[rank], rank, places(), run, kGrace);
        haveBegun.wait();
        detector.waits({"rank " + std::to_string(rank) + " waited", true, 0, 1, {0}, kPatience});
        haveWaited.count_down();
        serve(detector, rank);
        haveEnded.count_down();
        channels[rank].reset();
      });
    }
    auto detector = std::make_unique<FailureDetector>(*channels[0], 0, places(), run, kGrace);
    begins(*this);
    haveBegun.count_down();
    goesOn(*this);
    serve(*detector, 0);
    detector.reset();
    // The others wait until rank 0 is gone, and its channel until they are.
    std::thread closing([&] { channels[0].reset(); });
    for (std::thread &other : others) {
      other.join();
    }
    closing.join();
  }

  int reporters() const {
    return int(std::ranges::count_if(ends, [](const End &end) { return end.reports; }));
  }

private:
  static std::vector<std::string> places() { return {"process 10", "process 11", "process 12"}; }

  void serve(FailureDetector &detector, int64_t rank) {
    RunResult result =
        detector.serve([&] { return detector.stopped(); }, [] { return FailureDetector::kNoWork; },
                       [] { return std::map<int64_t, int64_t>(); });
    EXPECT_FALSE(result.abandoned);
    if (result.failure) {
      ends[rank].code = result.failure->code;
    }
    ends[rank].reports = detector.reportsErrors();
  }

  void connect() {
    for (std::unique_ptr<ControlChannel> &channel : channels) {
      channel = std::make_unique<ControlChannel>();
    }
    Result<std::string> address = channels[0]->listen("127.0.0.1");
    ASSERT_TRUE(address) << address.error().message;
    std::vector<std::thread> others;
    for (int64_t rank = 1; rank < kRanks; ++rank) {
      others.emplace_back(
          [&, rank] { EXPECT_TRUE(channels[rank]->connect(*address, rank, kKey, kPatience)); });
    }
    EXPECT_TRUE(channels[0]->accept(kRanks, kKey, kPatience));
    for (std::thread &other : others) {
      other.join();
    }
  }
};

TEST(FailureDetectorTest, RankZeroThatWasStoppedEndsAsTheOthersDid) {
  Ranks ranks([](Ranks &) {}, [](Ranks &all) { all.haveEnded.wait(); });
  for (const End &end : ranks.ends) {
    EXPECT_EQ(end.code, ExitCode::Stuck);
  }
  EXPECT_FALSE(ranks.ends[0].reports);
  EXPECT_EQ(ranks.reporters(), 1);
}

TEST(FailureDetectorTest, RankZeroThatGoesOnInTimeReports) {
  // Rank 0 is stopped for longer than others wait for its decision, but not while they do.
  Ranks ranks([](Ranks &) { std::this_thread::sleep_for(std::chrono::milliseconds(2500)); },
              [](Ranks &all) { all.haveWaited.wait(); });
  ASSERT_TRUE(ranks.ends[0].code);
  for (const End &end : ranks.ends) {
    EXPECT_EQ(end.code, ranks.ends[0].code);
  }
  EXPECT_EQ(ranks.reporters(), 1);
}

} // namespace
