//===- CudaGraphsTest.cpp - graphs on the simulator -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/testing/CudaBench.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// Captures the work of `body` as a graph.
template <typename Body> Handle capture(Bench &bench, const Body &body) {
  Handle graph = 0;
  Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
  body();
  Bench::ok(bench.cuda.endCapture(bench.device, bench.stream, &graph));
  return graph;
}

double firstOf(Bench &bench, Address from) {
  Bench::ok(bench.fetch(bench.stream, from));
  bench.drain(bench.stream);
  double value = 0;
  std::memcpy(&value, bench.pinned, sizeof value);
  return value;
}

TEST(CudaGraphs, AreDoneAtEachLaunchAndNotBefore) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Bench bench(seed);
    std::vector<double> ones(kBenchCount, 1);
    std::memcpy(bench.pinned, ones.data(), kBenchBytes);
    Bench::ok(bench.send(bench.stream, bench.a));
    bench.drain(bench.stream);
    // b = 3 a, then a = b: on two streams.
    Handle graph = capture(bench, [&] {
      bench.order(bench.stream, bench.other);
      Bench::ok(bench.launch(bench.other, bench.a, bench.b, 3));
      Bench::ok(bench.zero(bench.stream, bench.blank));
      bench.order(bench.other, bench.stream);
      Bench::ok(bench.copy(bench.stream, bench.a, bench.b));
    });
    EXPECT_EQ(firstOf(bench, bench.a), 1);
    for (double expected : {3, 9, 27}) {
      Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
      EXPECT_EQ(firstOf(bench, bench.a), expected);
    }
    Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
    Bench::ok(bench.cuda.launchGraph(bench.device, bench.other, graph)); // Behind the one before.
    bench.order(bench.other, bench.stream);
    EXPECT_EQ(firstOf(bench, bench.a), 243);
    Bench::ok(bench.cuda.freeGraph(bench.device, graph));
  }
}

TEST(CudaGraphs, MayBeForgotten) {
  Bench bench(6);
  Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
  Bench::ok(bench.zero(bench.stream, bench.a));
  Bench::ok(bench.cuda.endCapture(bench.device, bench.stream, nullptr));
  EXPECT_THAT(
      bench.cuda.close(bench.device),
      testing::Not(testing::HasSubstr("graph"))); // It names the other objects that are left.
}

TEST(CudaGraphs, CountWordsUp) {
  Bench bench(3);
  auto *word = reinterpret_cast<uint32_t *>(bench.pinned);
  *word = 5;
  Handle graph = capture(bench, [&] {
    Bench::ok(bench.cuda.countProgress(bench.device, bench.stream, word));
    Bench::ok(bench.cuda.countProgress(bench.device, bench.stream, word));
  });
  Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
  Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
  bench.drain(bench.stream);
  EXPECT_EQ(*word, 9u);
}

TEST(CudaGraphs, WorkThatFailsDoesSoAtItsLaunch) {
  Bench bench(4);
  bench.simulator.failWorkAt(4, "an illegal address"); // Behind three of the bench's.
  Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
  Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
  EXPECT_THAT(bench.finish(bench.stream), testing::HasSubstr("an illegal address"));
}

/// Both ranks of a world, of which neither waits for the other.
TEST(CudaGraphs, HoldCollectivesOfAllRanks) {
  for (bool isUniform : {true, false}) {
    Bench bench(5);
    Handle second = bench.openSecond(), stream = 0, links[2], graphs[2];
    Bench::ok(bench.cuda.makeStream(second, &stream));
    Address place = 0;
    Bench::ok(bench.cuda.allocate(second, kBenchBytes, &place));
    Bench::ok(bench.cuda.zero(second, stream, place, kBenchBytes));
    WorldId id;
    Bench::ok(bench.cuda.makeWorldId(&id));
    Handle devices[] = {bench.device, second}, streams[] = {bench.stream, stream};
    Address places[] = {bench.a, place};
    auto settle = [&] {
      for (int i = 0; i < 2; ++i) {
        for (bool isReady = false; !isReady;) {
          Bench::ok(bench.cuda.ready(devices[i], links[i], &isReady));
        }
      }
    };
    for (int i = 0; i < 2; ++i) {
      Bench::ok(bench.cuda.join(devices[i], &id, 2, i, &links[i]));
    }
    settle();
    auto reduce = [&](int i) {
      return bench.cuda.allReduce(devices[i], streams[i], links[i], ReductionKind::Sum,
                                  ElementType::F64, places[i], places[i], kBenchCount);
    };
    for (int i = 0; i < 2; ++i) {
      Bench::ok(bench.cuda.beginCapture(devices[i], streams[i]));
      Bench::ok(reduce(i));
      EXPECT_THAT(bench.cuda.endCapture(devices[i], streams[i], &graphs[i]),
                  testing::HasSubstr("which is not known to be ready"));
    }
    settle();
    for (int i = 0; i < 2; ++i) {
      Bench::ok(bench.cuda.endCapture(devices[i], streams[i], &graphs[i]));
      EXPECT_THAT(bench.cuda.end(devices[i], links[i]),
                  testing::HasSubstr("is still part of 1 graphs"));
    }
    Bench::ok(bench.cuda.launchGraph(devices[0], streams[0], graphs[0]));
    if (isUniform) {
      Bench::ok(bench.cuda.launchGraph(devices[1], streams[1], graphs[1]));
      bench.drain(bench.stream);
    } else {
      EXPECT_THAT(reduce(1), testing::HasSubstr("do not agree: a graph's all-reduce sum f64 of 64 "
                                                "and all-reduce sum f64 of 64"));
    }
  }
}

const Misused kMisused[] = {
    {"AllocatingWhileCapturing", "nothing may be allocated while a stream is captured",
     [](Bench &bench) {
       Address made = 0;
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.allocate(bench.device, 8, &made);
     }},
    {"MakingAnEventWhileCapturing", "nothing may be made while a stream is captured",
     [](Bench &bench) {
       Handle made = 0;
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.makeEvent(bench.device, &made);
     }},
    {"AwaitingWhileCapturing", "nothing may be waited for while a stream is captured",
     [](Bench &bench) {
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.await(bench.device, bench.event);
     }},
    {"AwaitingAnEventOfAGraph", "was recorded last for a graph",
     [](Bench &bench) {
       capture(bench,
               [&] { Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream)); });
       return bench.cuda.await(bench.device, bench.event);
     }},
    {"WaitingForAnEventOfAGraph", "got one of a capture that has ended",
     [](Bench &bench) {
       capture(bench,
               [&] { Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream)); });
       return bench.cuda.wait(bench.device, bench.other, bench.event);
     }},
    {"WaitingForAnEventFromBefore", "a stream that is captured waits for an event from before",
     [](Bench &bench) {
       Bench::ok(bench.cuda.record(bench.device, bench.event, bench.other));
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.wait(bench.device, bench.stream, bench.event);
     }},
    {"LeavingAStreamInTheCapture", "does not wait for the last work of stream 2",
     [](Bench &bench) {
       Handle graph = 0;
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       bench.order(bench.stream, bench.other);
       Bench::ok(bench.zero(bench.other, bench.a));
       return bench.cuda.endCapture(bench.device, bench.stream, &graph);
     }},
    {"EndingOnAnotherStream", "expected stream 1, on which the capture was begun, got stream 2",
     [](Bench &bench) {
       Handle graph = 0;
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.endCapture(bench.device, bench.other, &graph);
     }},
    {"EndingWhatWasNotBegun", "no capture was begun",
     [](Bench &bench) {
       Handle graph = 0;
       return bench.cuda.endCapture(bench.device, bench.stream, &graph);
     }},
    {"BeginningTwice", "nothing may be captured while a stream is captured",
     [](Bench &bench) {
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.beginCapture(bench.device, bench.other);
     }},
    {"CapturingOnASealedDevice", "nothing may be captured on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.beginCapture(bench.device, bench.stream);
     }},
    {"WritingAValueInAGraph", "each launch of a graph would write the same",
     [](Bench &bench) {
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.writeProgress(bench.device, bench.stream,
                                       reinterpret_cast<uint32_t *>(bench.pinned), 1);
     }},
    {"LaunchingIntoACapture", "a graph may not be launched into another",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
       Bench::ok(bench.cuda.beginCapture(bench.device, bench.stream));
       return bench.cuda.launchGraph(bench.device, bench.stream, graph);
     }},
    {"LaunchingWhatIsFreed", "graph 1 is freed",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
       Bench::ok(bench.cuda.freeGraph(bench.device, graph));
       return bench.cuda.launchGraph(bench.device, bench.stream, graph);
     }},
    {"FreeingAGraphThatRuns", "the graph may still be in use",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
       Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
       return bench.cuda.freeGraph(bench.device, graph);
     }},
    {"LaunchingBesideWorkOnTheSameBytes", "a race: writes the target",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
       Bench::ok(bench.zero(bench.other, bench.a));
       return bench.cuda.launchGraph(bench.device, bench.stream, graph);
     }},
    {"BranchesOfAGraphThatRace", "a race: writes the target",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] {
         bench.order(bench.stream, bench.other);
         Bench::ok(bench.zero(bench.other, bench.a));
         Bench::ok(bench.zero(bench.stream, bench.a));
         bench.order(bench.other, bench.stream);
       });
       return bench.cuda.launchGraph(bench.device, bench.stream, graph);
     }},
    {"MemoryOfAGraphThatIsFreed", "freed",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.blank)); });
       Bench::ok(bench.cuda.free(bench.device, bench.blank));
       return bench.cuda.launchGraph(bench.device, bench.stream, graph);
     }},
    {"HostMemoryThatChangesBeforeALaunchHasCopiedIt", "the host has changed its memory",
     [](Bench &bench) {
       Handle graph = capture(bench, [&] { Bench::ok(bench.send(bench.stream, bench.a)); });
       Bench::ok(bench.cuda.launchGraph(bench.device, bench.stream, graph));
       bench.pinned[0] = 1;
       return bench.finish(bench.stream);
     }},
    {"LeavingAGraph", "left are",
     [](Bench &bench) {
       capture(bench, [&] { Bench::ok(bench.zero(bench.stream, bench.a)); });
       return bench.cuda.close(bench.device);
     }},
};

class CudaGraphsMisused : public testing::TestWithParam<Misused> {};

TEST_P(CudaGraphsMisused, IsRefused) { expectRefused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, CudaGraphsMisused, testing::ValuesIn(kMisused), nameOfMisused);

} // namespace
