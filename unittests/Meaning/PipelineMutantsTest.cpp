//===- PipelineMutantsTest.cpp - harmful mutants of pipelines are refused --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `weft compile` always proves of programs, against all orders in which a small
// instance may run.
//
//===----------------------------------------------------------------------===//

#include "AbstractRun.h"
#include "ChunkedPipeline.h"
#include "SmallPipeline.h"
#include "TableMutations.h"

#include "weft/Meaning/ProveTable.h"
#include "weft/Pipeline/Schedule/ShareKernels.h"
#include "weft/Schedule/Proof.h"
#include "weft/Schedule/Streams.h"

#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest.h"

#include <iostream>
#include <map>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

struct PipelineCase {
  ChunkedShape shape;
  const char *schedule;
};

const PipelineCase kCases[] = {
    {{2, 2, 3}, "1f1b"}, {{2, 2, 3}, "gpipe"}, {{3, 3, 3}, "1f1b"}, {{3, 3, 3}, "gpipe"},
    {{2, 4, 3}, "1f1b"}, {{2, 4, 2}, "gpipe"}, {{2, 2, 2, true}, "1f1b"}, {{3, 6, 3}, "1f1b"},
};

/// The programs of a pipeline with streams, as for devices, and all that is proven of them.
class Pipeline {
public:
  explicit Pipeline(const PipelineCase &from) {
    const std::string text = chunkedPipeline(from.shape);
    local = maker.parse(text);
    stages =
        maker.compile(text, from.shape.microBatches, from.schedule, from.shape.stages, 2);
    for (rt::Program &program : stages.programs) {
      for (rt::Body &body : program.bodies) {
        for (rt::Instruction &instruction : body.instructions) {
          instruction.cost.seconds = instruction.opcode == rt::Opcode::Observe ? 0 : 1e-3;
        }
      }
      schedule::assignStreams(program);
    }
    shareKernels(stages.programs);
    for (OwningOpRef<ModuleOp> &module : stages.modules) {
      modules.push_back(*module);
    }
    kernels.emplace(modules);
  }

  const rt::Programs &programs() const { return stages.programs; }

  /// Returns why the programs are refused; "" if they are not.
  std::string refusal(const rt::Programs &programs) {
    schedule::Proof proof = schedule::prove(programs);
    if (!proof.holds()) {
      return proof.diagnostics.front();
    }
    std::string message;
    ScopedDiagnosticHandler handler(&maker.context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    return succeeded(proveTable(*local, modules, programs)) ? "" : message;
  }

  Exploration explore(const rt::Programs &programs, Queues queues,
                      Reduction reduction = Reduction::OwnInstructions) {
    return test::explore(programs, *kernels, queues, reduction);
  }

private:
  SmallPipeline maker;
  OwningOpRef<ModuleOp> local;
  CompiledStages stages;
  std::vector<ModuleOp> modules;
  std::optional<KernelTerms> kernels;
};

struct Counts {
  size_t refusedHarmful = 0, acceptedHarmful = 0, refusedHarmless = 0, acceptedHarmless = 0;
};

TEST(PipelineMutants, HarmfulOnesAreRefused) {
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  std::vector<Term> ends;
  for (const PipelineCase &one : kCases) {
    pipelines.push_back(std::make_unique<Pipeline>(one));
    Pipeline &pipeline = *pipelines.back();
    ASSERT_EQ(pipeline.refusal(pipeline.programs()), "");
    ends.push_back(0);
    for (Queues queues : {Queues::One, Queues::OnePerStream}) {
      Exploration found = pipeline.explore(pipeline.programs(), queues);
      ASSERT_EQ(found.fate, Fate::Ends) << nameOf(found.fate);
      ends.back() = *found.ends.begin();
      std::cout << one.schedule << one.shape.stages << one.shape.chunks << one.shape.microBatches << " " << found.states << " states\n";
    }
  }
  std::map<std::string, Counts> counts;
  std::map<std::string, std::map<std::string, size_t>> reasons;
  Random random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  size_t count = getenv("N") ? atoi(getenv("N")) : 300, states = 0;
  for (size_t made = 0, turn = 0; made < count; ++turn) {
    const Mutation &mutation = tableMutations()[turn % tableMutations().size()];
    size_t number = random() % pipelines.size();
    Pipeline &pipeline = *pipelines[number];
    rt::Programs mutant = pipeline.programs();
    if (!mutation.apply(mutant, random)) {
      continue;
    }
    ++made;
    std::string fate;
    for (Queues queues : {Queues::One, Queues::OnePerStream}) {
      Exploration found = pipeline.explore(mutant, queues);
      states += found.states;
      if (found.fate != Fate::Ends) {
        fate = nameOf(found.fate);
      } else if (*found.ends.begin() != ends[number] && fate.empty()) {
        fate = "other values";
      }
    }
    std::string refusal = pipeline.refusal(mutant);
    std::string name = std::string(mutation.group) + ": " + mutation.name;
    Counts &own = counts[name];
    (fate.empty() ? refusal.empty() ? own.acceptedHarmless : own.refusedHarmless
     : refusal.empty() ? own.acceptedHarmful : own.refusedHarmful)++;
    if (fate.empty() && !refusal.empty()) {
      std::cout << "harmless refused: " << name << ": " << refusal << "\n";
    }
    if (!fate.empty() && refusal.empty()) {
      std::cout << "MISS: " << made << " case " << number << " " << name << ": " << fate << "\n";
      if (getenv("V")) for (auto &p : mutant) std::cout << rt::toText(p);
    }
    reasons[name][fate.empty() ? "harmless" : fate]++;
  }
  for (auto &[name, own] : counts) {
    std::cout << name << ": harmful " << own.refusedHarmful << " refused " << own.acceptedHarmful
              << " accepted; harmless " << own.refusedHarmless << " refused "
              << own.acceptedHarmless << " accepted; ";
    for (auto &[r, c] : reasons[name]) std::cout << r << " " << c << ", ";
    std::cout << "\n";
  }
  std::cout << states << " states\n";
}

} // namespace
