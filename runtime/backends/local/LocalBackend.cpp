//===- LocalBackend.cpp - ranks as threads of one process -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"

#include "backends/local/IssueQueue.h"
#include "backends/local/Operation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::local;

namespace {

/// Spinning pays only while each rank has a core of its own.
constexpr int kSpins = 2000;

/// The shared state of one run's threads. They own it together: a rank that is abandoned
/// after a failure keeps it alive.
struct Run {
  Run(int64_t ranks, const LocalOptions &options)
      : ranks(ranks), delays(options.delays),
        state(ranks, options.timeout,
              ranks <= int64_t(std::thread::hardware_concurrency()) ? kSpins : 0),
        operations(size_t(ranks)) {}

  const int64_t ranks;
  const TestDelays delays;
  RunState state;
  std::mutex mutex;
  /// The rendezvous by the members' ranks. Guarded by `mutex`.
  std::map<std::vector<int64_t>, Rendezvous> groups;
  /// Each rank's operations. They are kept here so that other ranks can name them after the rank
  /// has left. Only the rank itself adds to its own.
  std::vector<std::deque<Operation>> operations;
};

class LocalCommunicator : public Communicator {
public:
  LocalCommunicator(Run &shared, int64_t self)
      : shared(shared), self(self), operations(shared.operations[size_t(self)]),
        progress(shared.state.progress[size_t(self)]), shaker(shared.delays, self, /*thread=*/1),
        collecting(prepareCollecting()) {}

  /// After `leave`, others report what the rank has not done.
  ~LocalCommunicator() override { shared.state.leave(self); }

  int64_t rank() const override { return self; }

  Handle prepare(const Collective &collective, const RankGroup &group,
                 const CallSite &site) override {
    Rendezvous *rendezvous = nullptr;
    if (group.ranks.size() > 1) {
      std::vector<int64_t> ranks = group.ranks;
      if (collective.kind == CollectiveKind::Transfer) {
        std::sort(ranks.begin(), ranks.end()); // So that two that both send meet, and fail.
      }
      std::lock_guard lock(shared.mutex);
      rendezvous = &shared.groups.try_emplace(ranks, ranks, shared.state).first->second;
    }
    operations.emplace_back(collective, group, site, rendezvous, self,
                            shared.delays.ofLink(collective, group.ranks.size()));
    queue.reserve(operations.size());
    return Handle(operations.size() - 1);
  }

  bool issue(Handle handle, const void *operand, void *result) override {
    queue.push({&operations[handle], operand, result});
    return !stopped();
  }

  bool wait(Handle handle) override {
    return waiting([&] { own.waitedSeconds += queue.wait(operations[handle]); });
  }

  /// Needs the communication thread only if that has work already.
  bool run(Handle handle, const void *operand, void *result) override {
    if (!queue.isEmpty()) {
      return issue(handle, operand, result) && wait(handle);
    }
    return waiting([&] { perform({&operations[handle], operand, result}, own); });
  }

  bool collect(std::span<const char> bytes, const Receiver &take) override {
    const Operation &operation = operations[collecting];
    return waiting([&] {
      own.waitedSeconds += queue.waitForAll();
      inside(operation, [&] { operation.collect(bytes, take, own); });
    });
  }

  bool fail(std::string message, ExitCode code) override {
    return shared.state.fail({self, std::move(message), code});
  }

  void moved() override {
    progress.moved.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }

  bool stopped() const override { return shared.state.stopped(); }

  double waitedSeconds() const override { return own.waitedSeconds; }

  int64_t busyThreads() const override { return beside.isMoving.load(std::memory_order_relaxed); }

private:
  Handle prepareCollecting() {
    Collective nothing = {
        .kind = CollectiveKind::AllGather, .type = ElementType::I32, .shape = {0}};
    return prepare(nothing, allRanks(shared.ranks),
                   {"control", 1, "rank 0 collects what ranks have for files"});
  }

  /// Calls `work`; meanwhile the timeout for other ranks counts.
  template <typename Work> bool waiting(const Work &work) {
    progress.waitsSince.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
    work();
    progress.waitsSince.store(Progress::kNotWaiting, std::memory_order_relaxed);
    return !stopped();
  }

  /// Calls `work`; meanwhile reports of other ranks say that the rank is in `operation`.
  template <typename Work> void inside(const Operation &operation, const Work &work) {
    progress.last.store(&operation, std::memory_order_release);
    progress.inside.store(true, std::memory_order_release);
    work();
    progress.inside.store(false, std::memory_order_release);
  }

  /// Runs a collective on the thread of `runner`.
  void perform(const IssueQueue::Issued &next, Runner &runner) {
    if (stopped()) {
      return;
    }
    inside(*next.operation, [&] {
      delay(shaker.next(), runner);
      if (next.operation->run(next.operand, next.result, runner)) {
        delay(next.operation->linkDelay, runner);
      }
    });
  }

  void delay(TestDelays::Duration time, Runner &runner) {
    if (time.count() > 0) {
      sleepFor(time, [&] { return stopped(); });
      runner.waitedSeconds += std::chrono::duration<double>(time).count();
    }
  }

  Run &shared;
  const int64_t self;
  std::deque<Operation> &operations;
  Progress &progress;
  /// Used by the thread that runs the next collective.
  Shaker shaker;
  /// The rank's thread and the communication thread.
  Runner own, beside;
  IssueQueue queue{[this](const IssueQueue::Issued &next, bool isBeside) {
    perform(next, isBeside ? beside : own);
  }};
  const Handle collecting;
};

class LocalBackend : public Backend {
public:
  LocalBackend(int64_t ranks, const LocalOptions &options) : ranks(ranks), options(options) {}

  int64_t rankCount() const override { return ranks; }

  RankRange ranksHere() const override { return {0, ranks}; }

  int64_t ranksOnHost() const override { return ranks; }

  bool reportsErrors() override { return true; }

  Result<std::string> agree(const Result<std::string> &own) override { return own; }

  RunResult run(const std::function<void(Communicator &)> &body) override {
    auto shared = std::make_shared<Run>(ranks, options);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([shared, body, rank] {
        LocalCommunicator communicator(*shared, rank);
        body(communicator);
      });
    }
    RunResult result = shared->state.wait(options.grace);
    for (std::thread &thread : threads) {
      if (result.abandoned) {
        thread.detach();
      } else {
        thread.join();
      }
    }
    return result;
  }

private:
  const int64_t ranks;
  const LocalOptions options;
};

} // namespace

std::unique_ptr<Backend> weft::rt::makeLocalBackend(int64_t ranks, const LocalOptions &options) {
  return std::make_unique<LocalBackend>(ranks, options);
}
