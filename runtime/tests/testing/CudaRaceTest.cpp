//===- CudaRaceTest.cpp - races that the simulator for CUDA finds -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Random.h"
#include "tests/testing/CudaBench.h"

#include <map>
#include <numeric>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class CudaRaceTest : public testing::TestWithParam<Misused> {};

TEST_P(CudaRaceTest, IsFoundWhateverTheSeed) { expectRefused(GetParam()); }

CallResult runMatmul(Bench &bench, Handle stream, Handle matmul, Address c) {
  return bench.runMatmul(stream, matmul, bench.a, bench.b, c, bench.blank);
}

const Misused kRaces[] = {
    {"TwoWrites", "zero: a race: writes the target, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       return bench.zero(bench.other, bench.a);
     }},
    {"AByteThatBothTouch", "writes 1 bytes as the target, and no event orders them",
     [](Bench &bench) {
       Bench::ok(bench.cuda.zero(bench.device, bench.stream, bench.a, 65));
       return bench.cuda.copy(bench.device, bench.other, bench.b, bench.a + 64, 64);
     }},
    {"KernelReadsWhatACopyWrites", "launch: a race: reads operand 0, of which copyToDevice (call ",
     [](Bench &bench) {
       Bench::ok(bench.send(bench.stream, bench.a));
       return bench.launch(bench.other, bench.a, bench.b);
     }},
    {"CopyWritesWhatAKernelReads",
     "copyToDevice: a race: writes the target, of which launch of 'scale_phase_0' (call ",
     [](Bench &bench) {
       Bench::ok(bench.launch(bench.stream, bench.a, bench.b));
       return bench.send(bench.other, bench.a);
     }},
    {"CopyToTheHostOfWhatAKernelWrites",
     "copyToHost: a race: reads the source, of which launch of 'scale_phase_0' (call ",
     [](Bench &bench) {
       Bench::ok(bench.launch(bench.stream, bench.a, bench.b));
       return bench.fetch(bench.other, bench.b);
     }},
    {"CoordinatesThatAreWritten", "launch: a race: reads the coordinates, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.other, bench.c));
       return bench.launch(bench.stream, bench.a, bench.b);
     }},
    {"MemoryOfTheHost",
     "copyToDevice: a race: reads memory of the host, of which copyToHost (call ",
     [](Bench &bench) {
       Bench::ok(bench.fetch(bench.stream, bench.a));
       return bench.send(bench.other, bench.b);
     }},
    {"EventRecordedTooEarly", "copy: a race: reads the source, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
       Bench::ok(bench.zero(bench.stream, bench.a));
       Bench::ok(bench.cuda.wait(bench.device, bench.other, bench.event));
       return bench.copy(bench.other, bench.b, bench.a);
     }},
    {"EventWaitedForTooLate", "copy: a race: reads the source, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
       CallResult result = bench.copy(bench.other, bench.b, bench.a);
       Bench::ok(bench.cuda.wait(bench.device, bench.stream, bench.event));
       return result;
     }},
    {"EventOfTheWrongStream", "copy: a race: reads the source, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       bench.order(bench.other, bench.other);
       return bench.copy(bench.other, bench.b, bench.a);
     }},
    {"EventRecordedAgainIsAnother", "zero: a race: writes the target, of which copy (call ",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       bench.order(bench.stream, bench.other);
       Bench::ok(bench.copy(bench.other, bench.b, bench.a));
       return bench.zero(bench.stream, bench.a);
     }},
    {"WhatTheHostDidNotAwait", "zero: a race: writes the target, of which zero (call ",
     [](Bench &bench) {
       Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
       Bench::ok(bench.zero(bench.stream, bench.a));
       Bench::ok(bench.cuda.await(bench.device, bench.event));
       return bench.zero(bench.other, bench.a);
     }},
    {"Workspace", "runMatmul: a race: writes the workspace, of which runMatmul (call ",
     [](Bench &bench) {
       Handle matmul = bench.prepareMatmul(64);
       Bench::ok(runMatmul(bench, bench.stream, matmul, bench.c));
       return runMatmul(bench, bench.other, matmul, bench.c + 64);
     }},
    {"ResultsOfTwoMatmuls", "runMatmul: a race: writes operand C, of which runMatmul (call ",
     [](Bench &bench) {
       Bench::ok(runMatmul(bench, bench.stream, bench.prepareMatmul(), bench.c));
       return runMatmul(bench, bench.other, bench.prepareMatmul(), bench.c);
     }},
};

INSTANTIATE_TEST_SUITE_P(Races, CudaRaceTest, testing::ValuesIn(kRaces), nameOfMisused);

TEST(CudaOrderTest, TwoMayRead) {
  Bench bench(0);
  Bench::ok(bench.copy(bench.stream, bench.b, bench.a));
  Bench::ok(bench.copy(bench.other, bench.c, bench.a));
}

TEST(CudaOrderTest, NoBytesAreNobodys) {
  Bench bench(0);
  Bench::ok(bench.zero(bench.stream, bench.a));
  Bench::ok(bench.cuda.zero(bench.device, bench.other, bench.a + 64, 0));
}

TEST(CudaOrderTest, EventsOrder) {
  Bench bench(0);
  Bench::ok(bench.zero(bench.stream, bench.a));
  bench.order(bench.stream, bench.other);
  Bench::ok(bench.copy(bench.other, bench.b, bench.a));
  bench.order(bench.other, bench.stream);
  Bench::ok(bench.zero(bench.stream, bench.a));
}

TEST(CudaOrderTest, OrderIsPassedOn) {
  Bench bench(0);
  Handle third = bench.makeStream();
  Bench::ok(bench.zero(bench.stream, bench.a));
  bench.order(bench.stream, bench.other);
  bench.order(bench.other, third);
  Bench::ok(bench.zero(third, bench.a));
}

TEST(CudaOrderTest, TheHostOrders) {
  Bench bench(0);
  Bench::ok(bench.zero(bench.stream, bench.a));
  bench.drain(bench.stream);
  Bench::ok(bench.zero(bench.other, bench.a));
}

/// Random work by the seed `made`, on three streams with some events; some of it races.
class MadeUpWork {
public:
  MadeUpWork(uint64_t made, uint64_t seed) : made(made), bench(seed) {
    streams.push_back(bench.makeStream());
    for (Address place : places) {
      contents[place].resize(kBenchCount);
    }
    Bench::ok(bench.zero(bench.stream, bench.blank));
    bench.drain(bench.stream);
    std::vector<double> &first = contents[bench.a];
    std::iota(first.begin(), first.end(), 1.0);
    std::memcpy(bench.pinned, first.data(), kBenchBytes);
    Bench::ok(bench.send(bench.stream, bench.a));
    bench.drain(bench.stream);
  }

  /// Enqueues work; if the simulator accepts it, also does it at once in `contents`.
  void enqueue() {
    Handle on = streams[draw(3)], event = events[draw(2)];
    Address from = places[draw(3)], to = places[draw(3)];
    CallResult result = nullptr;
    switch (draw(6)) {
    case 0:
      Bench::ok(bench.cuda.record(bench.device, event, on));
      return;
    case 1:
      result = bench.cuda.wait(bench.device, on, event);
      break;
    case 2:
      result = draw(3) == 0 ? bench.cuda.await(bench.device, event) : nullptr;
      break;
    case 3:
      if (!(result = bench.copy(on, to, from))) {
        contents[to] = contents[from];
      }
      break;
    default:
      if (!(result = bench.launch(on, from, to, 3))) {
        contents[to] = contents[from];
        for (double &value : contents[to]) {
          value *= 3;
        }
      }
    }
    (result ? refused : accepted) += 1;
  }

  void expectContents() {
    for (Handle stream : streams) {
      bench.drain(stream);
    }
    for (Address place : places) {
      Bench::ok(bench.fetch(bench.stream, place));
      bench.drain(bench.stream);
      EXPECT_EQ(std::memcmp(bench.pinned, contents[place].data(), kBenchBytes), 0);
    }
  }

  int refused = 0, accepted = 0;

private:
  uint64_t draw(uint64_t count) { return randomBits(made, 1, drawn++) % count; }

  uint64_t made, drawn = 0;
  Bench bench;
  std::vector<Handle> streams = {bench.stream, bench.other};
  Handle events[2] = {bench.event, bench.makeEvent()};
  Address places[3] = {bench.a, bench.b, bench.blank};
  std::map<Address, std::vector<double>> contents;
};

TEST(CudaOrderTest, WhatIsAcceptedHasOneResult) {
  int refused = 0, accepted = 0;
  for (uint64_t made = 0; made < 300; ++made) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      MadeUpWork work(made, seed);
      for (int i = 0; i < 60; ++i) {
        work.enqueue();
      }
      work.expectContents();
      ASSERT_FALSE(HasFailure()) << "work " << made << ", seed " << seed;
      refused += work.refused;
      accepted += work.accepted;
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(accepted, 10000);
}

} // namespace
