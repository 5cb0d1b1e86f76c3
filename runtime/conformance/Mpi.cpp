//===- Mpi.cpp - the suite on ranks as processes ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Started by mpirun, or as torchrun does, with any number of processes. All of them run all
// tests. Tests that need more ranks print that they are skipped; surplus processes idle.
//
//===----------------------------------------------------------------------===//

#include "backends/processes/MpiBackend.h"
#include "conformance/Conformance.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace weft::rt;

static std::unique_ptr<mpi::World> world;

bool conformance::isExact() { return true; }

std::unique_ptr<Backend> conformance::makeBackendUnderTest(int64_t ranks,
                                                           std::chrono::milliseconds timeout) {
  if (ranks > world->size()) {
    if (world->rank() == 0) {
      std::printf("skipped: %lld ranks on %lld processes\n", static_cast<long long>(ranks),
                  static_cast<long long>(world->size()));
    }
    return nullptr;
  }
  MpiOptions options;
  options.timeout = timeout;
  Result<std::unique_ptr<Backend>> backend =
      makeMpiBackend(*world, ranks, options, /*mayIdle=*/true);
  EXPECT_TRUE(backend) << backend.error().message;
  return backend ? std::move(*backend) : nullptr;
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  Result<std::unique_ptr<mpi::World>> started = mpi::World::start();
  if (!started) {
    std::fprintf(stderr, "error: %s\n", started.error().message.c_str());
    return 1;
  }
  world = std::move(*started);
  if (world->rank() != 0) {
    GTEST_FLAG_SET(brief, true); // One process prints progress; all print failures.
  }
  int status = RUN_ALL_TESTS();
  world->abandon(); // As runs that fail have done already. All processes are here, though.
  world->library().finish();
  return status;
}
