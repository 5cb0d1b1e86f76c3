//===- CudaRaceTest.cpp - races that the stand-in for CUDA finds ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/CudaBench.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class CudaRaceTest : public testing::TestWithParam<Misused> {};

TEST_P(CudaRaceTest, IsFoundWhateverTheSeed) { expectRefused(GetParam()); }

Result runProduct(Bench &bench, Handle stream, Handle product, Address c) {
  return bench.cuda.runProduct(bench.device, stream, product, bench.a, bench.b, c, bench.blank);
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
       Result result = bench.copy(bench.other, bench.b, bench.a);
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
    {"Workspace", "runProduct: a race: writes the workspace, of which runProduct (call ",
     [](Bench &bench) {
       Handle product = bench.prepareProduct(64);
       Bench::ok(runProduct(bench, bench.stream, product, bench.c));
       return runProduct(bench, bench.other, product, bench.c + 64);
     }},
    {"ResultsOfTwoProducts", "runProduct: a race: writes operand C, of which runProduct (call ",
     [](Bench &bench) {
       Bench::ok(runProduct(bench, bench.stream, bench.prepareProduct(), bench.c));
       return runProduct(bench, bench.other, bench.prepareProduct(), bench.c);
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

} // namespace
