//===- Backends.cpp - times collectives of Weft's backends ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// weft-bench-collectives local RANKS, or by mpirun: weft-bench-collectives mpi RANKS
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include "backends/local/LocalBackend.h"
#include "backends/processes/MpiBackend.h"

#include <cstdlib>
#include <string>

using namespace weft;
using namespace weft::rt;

static Collective makeCollective(size_t kind, int64_t bytes, int64_t ranks) {
  constexpr std::array kKindOf = {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
                                  CollectiveKind::AllGather, CollectiveKind::AllToAll};
  Collective collective;
  collective.kind = kKindOf[kind];
  // Shards of all-to-all are as long as plain calls have them: dimension 0 is taken apart.
  int64_t elements = bench::operandElements(kind, bytes, ranks);
  collective.shape = {ranks, elements / ranks};
  if (collective.kind == CollectiveKind::AllReduce) {
    collective.shape = {elements};
  }
  return collective;
}

static void measure(Communicator &communicator, int64_t ranks) {
  for (size_t kind = 0; kind < bench::kKinds.size(); ++kind) {
    for (int64_t bytes : bench::kSizes) {
      std::vector<float> operand(size_t(bytes) / sizeof(float), 1.0F), result(operand.size());
      auto handle = communicator.prepare(makeCollective(kind, bytes, ranks), allRanks(ranks),
                                         {"benchmark", uint32_t(kind), bench::kKinds[kind]});
      double seconds = bench::secondsOf(
          bytes, [&] { return communicator.run(handle, operand.data(), result.data()); });
      if (communicator.rank() == 0) {
        bench::print(kind, bytes, seconds);
      }
    }
  }
}

static Result<std::unique_ptr<Backend>> makeBackend(const std::string &name, int64_t ranks,
                                                    std::unique_ptr<mpi::World> &world) {
  if (name == "local") {
    return makeLocalBackend(ranks, {});
  }
  Result<std::unique_ptr<mpi::World>> started = mpi::World::start();
  if (!started) {
    return started.error();
  }
  world = std::move(*started);
  return makeMpiBackend(*world, ranks, {});
}

int main(int argc, char **argv) {
  int64_t ranks = argc == 3 ? std::atoll(argv[2]) : 0;
  std::string name = argc == 3 ? argv[1] : "";
  if (ranks < 1 || (name != "local" && name != "mpi")) {
    std::fprintf(stderr, "usage: %s local|mpi RANKS\n", argv[0]);
    return 2;
  }
  std::unique_ptr<mpi::World> world;
  Result<std::unique_ptr<Backend>> backend = makeBackend(name, ranks, world);
  if (!backend) {
    std::fprintf(stderr, "error: %s\n", backend.error().message.c_str());
    return 1;
  }
  RunResult result = (*backend)->run([&](Communicator &each) { measure(each, ranks); });
  if (result.failure) {
    std::fprintf(stderr, "error: %s\n", result.failure->message.c_str());
    std::_Exit(1);
  }
  return 0;
}
