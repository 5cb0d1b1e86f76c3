//===- MpiBackend.cpp - ranks as processes --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/MpiBackend.h"

#include "backends/processes/Engine.h"
#include "backends/processes/Introduction.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

/// The time that ranks have to connect to rank 0.
constexpr std::chrono::seconds kConnectPatience(30);

/// Returns an error that all processes have: only rank 0 reports it.
Error atFirst(const World &world, Error error) { return world.rank() == 0 ? error : Error(); }

class MpiCommunicator : public Communicator {
public:
  MpiCommunicator(Engine &engine, FailureDetector &detector, int64_t self)
      : engine(engine), detector(detector), self(self) {}

  int64_t rank() const override { return self; }
  Handle prepare(const Collective &collective, const RankGroup &group,
                 const CallSite &site) override {
    return engine.prepare(collective, group, site);
  }
  bool issue(Handle handle, const void *operand, void *result) override {
    bool ok = engine.issue(handle, operand, result);
    detector.wake(); // Someone is to go on with it while the rank computes.
    return ok;
  }
  bool wait(Handle handle) override { return engine.wait(handle); }
  bool run(Handle handle, const void *operand, void *result) override {
    return engine.issue(handle, operand, result) && engine.wait(handle);
  }
  bool collect(std::span<const char> own, const Receiver &take) override {
    return engine.collect(own, take);
  }
  bool fail(std::string message, ExitCode code) override { return detector.fail(message, code); }
  bool failLate(std::string message, const std::vector<int64_t> &others,
                std::chrono::milliseconds patience) override {
    detector.waits({std::move(message), true, Waiting::kDevice, 0, others, patience});
    return false;
  }
  void tellBy(std::function<std::string()> describe) override {
    detector.tellBy(std::move(describe));
  }
  void moved() override { detector.moved(); }
  bool stopped() const override { return detector.stopped(); }
  double waitedSeconds() const override { return engine.waitedSeconds(); }
  int64_t busyThreads() const override { return engine.isHelped(); }

private:
  Engine &engine;
  FailureDetector &detector;
  const int64_t self;
};

/// The state that the rank's thread uses; the thread may outlive the run if it hangs.
struct Part {
  Part(const TransportTable &library, uint64_t group, int64_t ranks, int64_t rank,
       std::shared_ptr<FailureDetector> detector, const MpiOptions &options)
      : detector(std::move(detector)),
        engine(library, group, ranks, rank, *this->detector, options.timeout, options.delays) {}

  const std::shared_ptr<FailureDetector> detector;
  Engine engine;
  std::atomic<bool> isDone = false;
};

class MpiBackend : public Backend {
public:
  MpiBackend(World &world, uint64_t group, int64_t ranks, const MpiOptions &options)
      : world(world), group(group), ranks(ranks), options(options) {}

  ~MpiBackend() override {
    if (detector && detector->isBroken()) {
      world.abandon();
    } else {
      world.library().freeGroup(&group);
    }
  }

  /// Exchanges introductions with the other processes.
  Status start() {
    Introduction own = introduce();
    std::vector<char> sent = own.encode(), received(size_t(rankCount()) * sent.size());
    if (const char *reason =
            world.library().allGather(group, sent.data(), received.data(), sent.size())) {
      return makeError(reason);
    }
    Result<std::vector<Introduction>> all = readIntroductions(received);
    if (!all) {
      return atFirst(world, all.error());
    }
    std::vector<std::string> places;
    for (const Introduction &each : *all) {
      places.push_back(each.placeText());
      onHost += each.host == all->at(size_t(world.rank())).host;
    }
    const Introduction &first = all->front();
    Bytes32 key = world.secret().keyOf(first.run);
    Status status = world.rank() == 0 ? controlChannel->accept(rankCount(), key, kConnectPatience)
                                      : controlChannel->connect(first.address, world.rank(), key,
                                                                kConnectPatience);
    if (!status) {
      world.abandon();
      return status;
    }
    detector = std::make_shared<FailureDetector>(*controlChannel, world.rank(), std::move(places),
                                                 tcp::publicNameOf(key), options.grace);
    return {};
  }

  int64_t rankCount() const override { return ranks; }
  RankRange ranksHere() const override { return {world.rank(), 1}; }
  int64_t ranksOnHost() const override { return onHost; }
  bool reportsErrors() override { return detector->reportsErrors(); }
  Result<std::string> agree(const Result<std::string> &own) override {
    return detector->agree(own);
  }

  RunResult run(const std::function<void(Communicator &)> &body) override {
    auto part =
        std::make_shared<Part>(world.library(), group, ranks, world.rank(), detector, options);
    std::thread thread([part, body, rank = world.rank()] {
      MpiCommunicator communicator(part->engine, *part->detector, rank);
      body(communicator);
      part->isDone = true;
      part->detector->wake();
    });
    RunResult result =
        detector->serve([&] { return part->isDone.load(); }, [&] { return part->engine.help(); },
                        [&] { return part->engine.begun(); });
    if (result.abandoned) {
      thread.detach();
      abandoned = part;
    } else {
      thread.join();
    }
    return result;
  }

private:
  Introduction introduce() {
    Introduction own;
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    own.host = host;
    own.process = getpid();
    own.program = options.program;
    own.arguments = options.arguments;
    if (world.rank() == 0) {
      Result<std::string> address = controlChannel->listen(world.firstHost());
      Result<Bytes32> run = randomBytes();
      own.address = address ? *address : "";
      own.problem = address ? "" : address.error().message;
      own.run = run ? *run : Bytes32();
      own.problem += run ? "" : run.error().message;
    }
    return own;
  }

  World &world;
  uint64_t group;
  const int64_t ranks;
  const MpiOptions options;
  int64_t onHost = 0;
  std::unique_ptr<ControlChannel> controlChannel = std::make_unique<ControlChannel>();
  std::shared_ptr<FailureDetector> detector;
  std::shared_ptr<Part> abandoned;
};

} // namespace

Result<std::unique_ptr<Backend>> weft::rt::makeMpiBackend(World &world, int64_t ranks,
                                                          const MpiOptions &options, bool mayIdle) {
  static_assert(2 * kGroupNumbers < kTags);
  if (world.size() != ranks && !(mayIdle && world.size() > ranks)) {
    return atFirst(world, makeError(world.size(),
                                    " processes were started, but the plan of this program is for ",
                                    ranks, ranks == 1 ? " rank" : " ranks"));
  }
  uint64_t group = 0;
  if (const char *reason = world.library().makeGroup(ranks, &group)) {
    return makeError(reason);
  }
  if (world.rank() >= ranks) {
    return std::unique_ptr<Backend>();
  }
  auto backend = std::make_unique<MpiBackend>(world, group, ranks, options);
  if (Status status = backend->start(); !status) {
    return status.error();
  }
  return std::unique_ptr<Backend>(std::move(backend));
}
