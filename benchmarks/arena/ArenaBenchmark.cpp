//===- ArenaBenchmark.cpp - time and memory of Schedule on large programs -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counters: `gap_percent`, what the plan takes above the lower bound; `operations`,
// instructions of all ranks together.
//
//===----------------------------------------------------------------------===//

#include "SyntheticProgram.h"
#include "weft/Schedule/Arena.h"
#include "weft/Schedule/Proof.h"

#include <benchmark/benchmark.h>

using namespace weft;
using namespace weft::schedule;

namespace {

void setGap(benchmark::State &state, const ArenaProblem &problem, const ArenaPlan &plan) {
  double bound = double(arenaLowerBound(problem));
  state.counters["buffers"] = double(problem.buffers.size());
  state.counters["gap_percent"] = 100 * (double(plan.bytes) - bound) / bound;
}

/// One walk; `layers` as the argument, 22 buffers each.
void firstFit(benchmark::State &state) {
  ArenaProblem problem = test::makeStepProblem(state.range(0), 1);
  ArenaPlan plan;
  for (auto _ : state) {
    plan = packFirstFit(problem);
  }
  setGap(state, problem, plan);
}
BENCHMARK(firstFit)->Arg(96)->Arg(8640)->Unit(benchmark::kMillisecond);

void pack(benchmark::State &state) {
  ArenaProblem problem = test::makeStepProblem(state.range(0), 1);
  ArenaPlan plan;
  for (auto _ : state) {
    plan = packArena(problem);
  }
  setGap(state, problem, plan);
}
BENCHMARK(pack)->Arg(96)->Arg(960)->Arg(8640)->Unit(benchmark::kMillisecond);

void check(benchmark::State &state) {
  ArenaProblem problem = test::makeStepProblem(state.range(0), 1);
  ArenaPlan plan = packFirstFit(problem);
  for (auto _ : state) {
    benchmark::DoNotOptimize(checkArena(problem, plan));
  }
}
BENCHMARK(check)->Arg(96)->Arg(8640)->Unit(benchmark::kMillisecond);

/// The whole proof for 1024 ranks of one class; about nine instructions a layer.
void proof(benchmark::State &state) {
  rt::Program program = test::makeProgram({state.range(0), 128, 8, 1024, 8});
  for (auto _ : state) {
    if (!prove(program).holds()) {
      state.SkipWithError("the proof must hold");
    }
  }
  state.counters["operations"] = double(program.step.size() * program.rankCount());
}
BENCHMARK(proof)->Arg(96)->Arg(305)->Unit(benchmark::kMillisecond);

/// Eight classes of 128 ranks that sum gradients together.
void proofOfClasses(benchmark::State &state) {
  rt::Programs programs = test::makeClasses({state.range(0), 8, 128, 1024, 8});
  for (auto _ : state) {
    if (!prove(programs).holds()) {
      state.SkipWithError("the proof must hold");
    }
  }
}
BENCHMARK(proofOfClasses)->Arg(305)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
