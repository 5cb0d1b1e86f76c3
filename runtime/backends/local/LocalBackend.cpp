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
#include <thread>

using namespace weft::rt;
using namespace weft::rt::local;

namespace {

/// Looking for partners pays only while each rank has a core of its own.
constexpr int kSpins = 2000;

/// Everything that one run's threads share. They own it together: a rank that is
/// abandoned after a failure keeps it alive.
struct Run {
  Run(const std::vector<Axis> &mesh, int64_t ranks, std::chrono::nanoseconds timeout)
      : mesh(mesh),
        state(ranks, timeout, ranks <= int64_t(std::thread::hardware_concurrency()) ? kSpins : 0),
        operations(size_t(ranks)) {}

  const std::vector<Axis> mesh;
  RunState state;
  std::mutex mutex;
  /// By the ranks in group order. Guarded by `mutex`.
  std::map<std::vector<int64_t>, Rendezvous> groups;
  /// Each rank's operations; here, and not with the rank, so that others can name them after it
  /// has left. Only the rank itself adds to its own.
  std::vector<std::deque<Operation>> operations;
};

class LocalCommunicator : public Communicator {
public:
  LocalCommunicator(Run &shared, int64_t self)
      : shared(shared), self(self), operations(shared.operations[size_t(self)]),
        progress(shared.state.progress[size_t(self)]) {}

  int64_t rank() const override { return self; }

  Handle prepare(const Collective &collective, const CallSite &site) override {
    std::vector<int64_t> ranks = groupOf(self, collective.axes, shared.mesh);
    size_t member = size_t(std::find(ranks.begin(), ranks.end(), self) - ranks.begin());
    Rendezvous *group = nullptr;
    if (ranks.size() > 1) {
      std::lock_guard lock(shared.mutex);
      group = &shared.groups.try_emplace(ranks, ranks, shared.state).first->second;
    }
    operations.emplace_back(collective, site, group, member);
    return Handle(operations.size() - 1);
  }

  bool run(Handle handle, const void *operand, void *result) override {
    const Operation &operation = operations[handle];
    progress.last.store(&operation, std::memory_order_release);
    progress.inside.store(true, std::memory_order_release);
    bool ok = operation.run(operand, result);
    progress.inside.store(false, std::memory_order_release);
    return ok && !stopped();
  }

  bool fail(std::string message) override { return shared.state.fail(self, std::move(message)); }

  bool stopped() const override { return shared.state.stopped(); }

  double waitedSeconds() const override { return progress.waitedSeconds; }

private:
  Run &shared;
  const int64_t self;
  std::deque<Operation> &operations;
  Progress &progress;
};

class LocalBackend : public Backend {
public:
  LocalBackend(std::vector<Axis> mesh, const LocalOptions &options)
      : mesh(std::move(mesh)), options(options) {}

  int64_t rankCount() const override {
    int64_t count = 1;
    for (const Axis &axis : mesh) {
      count *= axis.size;
    }
    return count;
  }

  RunResult run(const std::function<void(Communicator &)> &body) override {
    auto shared = std::make_shared<Run>(mesh, rankCount(), options.timeout);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < rankCount(); ++rank) {
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
  const std::vector<Axis> mesh;
  const LocalOptions options;
};

} // namespace

std::unique_ptr<Backend> weft::rt::makeLocalBackend(std::vector<Axis> mesh,
                                                    const LocalOptions &options) {
  return std::make_unique<LocalBackend>(std::move(mesh), options);
}
