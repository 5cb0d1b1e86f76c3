//===- OrderBenchmark.cpp - time to order and to simulate a pipeline -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `order` finds the order of all communication, `course` simulates a step. Counters
// `communications` and `actions`: what the classes issue and do, all together.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"
#include "weft/Schedule/Timeline.h"

#include <benchmark/benchmark.h>

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

namespace {

constexpr uint32_t kClasses = 16;

/// Numbers of bodies: what a class receives and sends on the way forth and back.
enum BodyNumber : uint32_t { kReceiveForth, kSendForth, kReceiveBack, kSendBack, kEnd };

rt::Instruction transferOf(rt::Program &program, uint32_t from, uint32_t to) {
  rt::Collective transfer = {.kind = rt::CollectiveKind::Transfer};
  transfer.classes = {from, to};
  transfer.number = 2 * std::min(from, to) + (from < to ? 1 : 2);
  program.collectives.push_back(transfer);
  return {rt::Opcode::Collective,
          uint32_t(program.collectives.size() - 1),
          0,
          {{0, program.rankClass == from ? rt::Access::Read : rt::Access::Write}},
          {}};
}

/// One stage of a pipeline of 16 under 1F1B, whose bodies also have `sums` sums over its ranks.
rt::Program makeStage(uint32_t stage, int64_t microBatches, size_t sums) {
  rt::Program program;
  program.rankClass = stage;
  program.rankClasses = kClasses;
  program.mesh = {{"dp", 64}};
  program.microBatches = program.globalBatch = microBatches;
  program.labels = {""};
  program.buffers = {{4, 0}};
  program.arenaBytes = 64;
  program.bodies = {{"receive forth", {}},
                    {"send forth", {}},
                    {"receive back", {}},
                    {"send back", {}},
                    {"end", {}}};
  auto add = [&](BodyNumber body, uint32_t from, uint32_t to) {
    if (from < kClasses && to < kClasses) {
      program.bodies[body].instructions.push_back(transferOf(program, from, to));
    }
  };
  add(kReceiveForth, stage - 1, stage);
  add(kSendForth, stage, stage + 1);
  add(kReceiveBack, stage + 1, stage);
  add(kSendBack, stage, stage - 1);
  program.collectives.push_back({.axes = {0}});
  rt::Instruction sum = {rt::Opcode::Collective,
                         uint32_t(program.collectives.size() - 1),
                         0,
                         {{0, rt::Access::Read}, {0, rt::Access::Write}},
                         {}};
  for (BodyNumber body : {kReceiveForth, kReceiveBack}) {
    program.bodies[body].instructions.insert(program.bodies[body].instructions.end(), sums, sum);
  }
  program.bodies[kEnd].instructions = {{rt::Opcode::Agree, 0, 0, {}, {}}};
  return program;
}

/// Lets stage s be in each event when it is in one order of all: forward of micro-batch m at time
/// 2 m + s, backward at 2 m + 2 S - 1 - s.
rt::Programs makePipeline(int64_t microBatches, size_t sums) {
  rt::Programs programs;
  for (uint32_t stage = 0; stage < kClasses; ++stage) {
    programs.push_back(makeStage(stage, microBatches, sums));
  }
  for (int64_t time = 0; time < 2 * (microBatches + int64_t(kClasses)); ++time) {
    for (uint32_t stage = 0; stage < kClasses; ++stage) {
      // Both stages of a transfer come to it at the time of its sender.
      auto issue = [&](BodyNumber send, BodyNumber receive, int64_t twice, uint32_t to) {
        if (twice < 0 || twice % 2 != 0 || twice / 2 >= microBatches || to >= kClasses) {
          return;
        }
        programs[stage].step.push_back({send, twice / 2});
        programs[to].step.push_back({receive, twice / 2});
      };
      issue(kSendForth, kReceiveForth, time - stage, stage + 1);
      issue(kSendBack, kReceiveBack, time - (2 * kClasses - 1 - stage), stage - 1);
    }
  }
  for (rt::Program &program : programs) {
    program.step.push_back({kEnd});
  }
  return programs;
}

void order(benchmark::State &state) {
  rt::Programs programs = makePipeline(state.range(0), size_t(state.range(1)));
  size_t count = 0;
  for (const rt::Program &program : programs) {
    count += expansionOf(program, Section::Step).size();
  }
  for (auto _ : state) {
    Diagnostics diagnostics;
    checkCollectives(programs, diagnostics);
    if (diagnostics.size() > 0) {
      state.SkipWithError(diagnostics.take().front().c_str());
    }
  }
  state.counters["communications"] = double(count);
}
BENCHMARK(order)->Args({41700, 0})->Args({1024, 80})->Unit(benchmark::kMillisecond);

/// The simulation of a step whose actions all wait for others, by the number of micro-batches: each
/// class has four actions for each.
void course(benchmark::State &state) {
  rt::Programs programs = makePipeline(state.range(0), /*sums=*/1);
  size_t count = 0;
  for (rt::Program &program : programs) {
    count += program.step.size();
    for (rt::Body &body : program.bodies) {
      for (rt::Instruction &instruction : body.instructions) {
        instruction.cost.seconds = 1e-3;
      }
    }
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictCourse(programs, &rt::Program::step));
  }
  state.counters["actions"] = double(count);
}
BENCHMARK(course)->Arg(128)->Unit(benchmark::kMillisecond);

} // namespace
