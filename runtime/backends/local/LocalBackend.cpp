//===- LocalBackend.cpp - ranks as threads of one process -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"

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
  Run(int64_t ranks, std::chrono::nanoseconds timeout)
      : ranks(ranks),
        state(ranks, timeout, ranks <= int64_t(std::thread::hardware_concurrency()) ? kSpins : 0),
        operations(size_t(ranks)) {}

  const int64_t ranks;
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
        progress(shared.state.progress[size_t(self)]), collecting(prepareCollecting()) {}

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
    operations.emplace_back(collective, group, site, rendezvous, self);
    issued.reserve(operations.size());
    return Handle(operations.size() - 1);
  }

  bool issue(Handle handle, const void *operand, void *result) override {
    issued.push_back({handle, operand, result});
    return !stopped();
  }

  /// Does all work of the collective, in the rank's own thread.
  bool wait(Handle handle) override {
    auto isMeant = [&](const Issued &each) { return each.handle == handle; };
    auto last = std::find_if(issued.begin(), issued.end(), isMeant);
    bool ok = true;
    auto end = last == issued.end() ? issued.begin() : last + 1;
    for (auto next = issued.begin(); next != end; ++next) {
      const Operation &operation = operations[next->handle];
      ok = ok && inside(operation, [&] { return operation.run(next->operand, next->result); });
    }
    issued.erase(issued.begin(), end);
    return ok && !stopped();
  }

  bool collect(std::span<const char> own, const Receiver &take) override {
    const Operation &operation = operations[collecting];
    return inside(operation, [&] { return operation.collect(own, take); }) && !stopped();
  }

  bool fail(std::string message, ExitCode code) override {
    return shared.state.fail({self, std::move(message), code});
  }

  void moved() override {
    progress.moved.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }

  bool stopped() const override { return shared.state.stopped(); }

  double waitedSeconds() const override { return progress.waitedSeconds; }

private:
  struct Issued {
    Handle handle;
    const void *operand;
    void *result;
  };

  Handle prepareCollecting() {
    Collective nothing = {
        .kind = CollectiveKind::AllGather, .type = ElementType::I32, .shape = {0}};
    return prepare(nothing, allRanks(shared.ranks),
                   {"control", 1, "rank 0 collects what ranks have for files"});
  }

  /// Calls `work`; meanwhile reports of other ranks say that the rank is in `operation`.
  template <typename Work> bool inside(const Operation &operation, const Work &work) {
    progress.last.store(&operation, std::memory_order_release);
    progress.inside.store(true, std::memory_order_release);
    bool ok = work();
    progress.inside.store(false, std::memory_order_release);
    return ok;
  }

  Run &shared;
  const int64_t self;
  std::deque<Operation> &operations;
  Progress &progress;
  /// In order. Never longer than there are operations.
  std::vector<Issued> issued;
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
    auto shared = std::make_shared<Run>(ranks, options.timeout);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([shared, body, rank] {
        LocalCommunicator communicator(*shared, rank);
        body(communicator);
        shared->state.leave(rank);
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
