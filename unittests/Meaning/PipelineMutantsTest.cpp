//===- PipelineMutantsTest.cpp - harmful mutants of pipelines are refused --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `weft compile` always proves of programs, the proof of the table and that of
// meaning, against all orders in which small instances may run (AbstractRun.h). A mutant
// is harmful if in some order ranks wait for ever, do not do the same together or touch
// the same bytes at one time, or if it ends otherwise than the right program.
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

#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <optional>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

constexpr Queues kQueues[] = {Queues::One, Queues::OnePerStream};

struct PipelineCase {
  ChunkedShape shape;
  const char *schedule;
};

/// The programs of a pipeline with streams, as for devices, and all that is proven of them.
class Pipeline {
public:
  explicit Pipeline(const PipelineCase &from) {
    const std::string text = chunkedPipeline(from.shape);
    local = maker.parse(text);
    stages = maker.compile(text, from.shape.microBatches, from.schedule, from.shape.stages, 2);
    for (rt::Program &program : stages.programs) {
      for (rt::Body &body : program.bodies) {
        for (rt::Instruction &instruction : body.instructions) {
          instruction.cost.seconds = instruction.opcode == rt::Opcode::Observe ? 0 : 1e-3;
        }
      }
      schedule::assignStreams(program);
    }
    shareKernelTable(stages.programs);
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

  /// Returns how the right program ends.
  Term rightEnd() {
    std::set<Term> ends;
    for (Queues queues : kQueues) {
      Exploration found = explore(programs(), *kernels, queues);
      EXPECT_EQ(found.fate, Fate::Ends) << nameOf(found.fate);
      ends.insert(found.ends.begin(), found.ends.end());
    }
    EXPECT_EQ(ends.size(), 1U);
    return ends.empty() ? 0 : *ends.begin();
  }

  /// Returns what harm the programs do; "" if none.
  std::string harmOf(const rt::Programs &programs, Term rightEnd) {
    for (Queues queues : kQueues) {
      Exploration found = explore(programs, *kernels, queues);
      if (found.fate != Fate::Ends) {
        return nameOf(found.fate);
      }
      if (*found.ends.begin() != rightEnd) {
        return "other values";
      }
    }
    return "";
  }

  /// Returns how the programs end in a few random orders.
  std::set<Term> endsOfWalks(const rt::Programs &programs) {
    std::set<Term> ends;
    for (Queues queues : kQueues) {
      Exploration found = walk(programs, *kernels, queues, 20);
      EXPECT_EQ(found.fate, Fate::Ends) << nameOf(found.fate);
      ends.insert(found.ends.begin(), found.ends.end());
    }
    return ends;
  }

private:
  SmallPipeline maker;
  OwningOpRef<ModuleOp> local;
  CompiledStages stages;
  std::vector<ModuleOp> modules;
  std::optional<KernelTerms> kernels;
};

/// Draws mutants: each group of mutations equally often.
class Mutants {
public:
  explicit Mutants(uint64_t seed) : random(seed) {
    for (const Mutation &mutation : tableMutations()) {
      groups[mutation.group].push_back(&mutation);
    }
    next = groups.begin();
  }

  size_t draw(size_t count) { return size_t(random() % count); }

  /// Changes the programs; returns null if that was not possible.
  const Mutation *mutate(rt::Programs &programs) {
    const std::vector<const Mutation *> &group = next->second;
    const Mutation *mutation = group[draw(group.size())];
    if (!mutation->apply(programs, random)) {
      return nullptr;
    }
    next = std::next(next) == groups.end() ? groups.begin() : std::next(next);
    return mutation;
  }

private:
  Random random;
  std::map<std::string, std::vector<const Mutation *>> groups;
  std::map<std::string, std::vector<const Mutation *>>::iterator next;
};

/// Why harmless programs are refused: words of the message, and the reason.
constexpr std::pair<const char *, const char *> kStrictRules[] = {
    {"collective number", "transfers are matched by number, too"},
    {"collectives of number", "transfers are matched by number, too"},
    {"has written for micro-batch", "the body does not use the number of its micro-batch"},
    {"agrees to go on, after", "the class has written what the others see as before"},
    {"but ranks do not agree to go on after it", "another class sees the value in time"},
    {", which holds f64", "both ends name another type of equal size"},
    {"which no instruction has written", "nobody uses what is read"},
    {"has overwritten", "nobody uses what is read"},
    {"overlap in space and time", "nobody uses what is overwritten"},
    {" without waiting for ", "hosts wait in between, where ranks agree"},
    {"prove-meaning: ", "a sum over ranks of zeros is no zero"},
};

const char *strictRuleOf(const std::string &refusal) {
  for (auto [words, reason] : kStrictRules) {
    if (refusal.find(words) != std::string::npos) {
      return reason;
    }
  }
  return nullptr;
}

struct Counts {
  size_t refusedHarmful = 0, acceptedHarmless = 0, refusedHarmless = 0;
};

/// 300, or what WEFT_MUTANTS says.
size_t mutantCount() {
  const char *text = std::getenv("WEFT_MUTANTS");
  return text ? std::strtoul(text, nullptr, 10) : 300;
}

TEST(PipelineMutants, HarmfulOnesAreRefused) {
  const size_t count = mutantCount();
  const PipelineCase cases[] = {
      {{2, 2, 3}, "1f1b"},
      {{2, 2, 3}, "gpipe"},
      {{3, 3, 3}, "1f1b"},
      {{3, 3, 3}, "gpipe"},
      {{2, 4, 3}, "1f1b"},
      {{2, 4, 2}, "gpipe"},
      {{2, 2, 2, true}, "1f1b"},
      {{3, 6, 3}, "1f1b"},
      // Gathers and reductions at places of the schedule.
      {{2, 4, 2, false, true},
       "0UNSHARD,0F0,0F1,0RESHARD,2UNSHARD,2F0,2B0,2F1,2UNSHARD,2B1,2RESHARD,2REDUCE_GRAD,0UNSHARD,"
       "0B0,0B1,0REDUCE_GRAD;1UNSHARD,1F0,1F1,3UNSHARD,3F0,3B0,1B0,3F1,3B1,3REDUCE_GRAD,1B1"},
      // Gradients of weights wait for one more micro-batch, and for none.
      {{3, 3, 3, false, false, true},
       "0F0,0F1,0F2,0B0,0B1,0B2;1F0,1F1,1I0,1F2,1I1,1W0,1I2,1W1,1W2;2F0,2B0,2F1,2B1,2F2,2B2"},
      {{2, 4, 2, false, false, true},
       "0F0,0F1,2F0,2I0,2F1,0B0,2I1,2W0,2W1,0B1;1F0,3F0,3B0,1I0,1F1,1W0,3F1,3B1,1I1,1W1"}};
  std::deque<Pipeline> pipelines;
  std::vector<Term> ends;
  for (const PipelineCase &one : cases) {
    Pipeline &pipeline = pipelines.emplace_back(one);
    ASSERT_EQ(pipeline.refusal(pipeline.programs()), "");
    ends.push_back(pipeline.rightEnd());
  }
  std::map<std::string, Counts> counts;
  std::map<std::string, size_t> reasons, harms;
  Mutants mutants(1);
  for (size_t made = 0; made < count;) {
    size_t number = mutants.draw(pipelines.size());
    rt::Programs mutant = pipelines[number].programs();
    const Mutation *mutation = mutants.mutate(mutant);
    if (!mutation) {
      continue;
    }
    ++made;
    std::string harm = pipelines[number].harmOf(mutant, ends[number]);
    std::string refusal = pipelines[number].refusal(mutant);
    Counts &own = counts[mutation->group];
    if (!harm.empty()) {
      EXPECT_NE(refusal, "") << mutation->group << ", " << mutation->name << ": " << harm
                             << " in pipeline " << number;
      ++own.refusedHarmful;
      ++harms[harm];
    } else if (refusal.empty()) {
      ++own.acceptedHarmless;
    } else {
      const char *reason = strictRuleOf(refusal);
      ASSERT_TRUE(reason) << mutation->group << ", " << mutation->name << ": " << refusal;
      ++own.refusedHarmless;
      ++reasons[reason];
    }
  }
  Counts all;
  for (const auto &[group, own] : counts) {
    std::cout << group << ": " << own.refusedHarmful << " harmful and refused, "
              << own.acceptedHarmless << " harmless and accepted, " << own.refusedHarmless
              << " harmless and refused\n";
    all.refusedHarmful += own.refusedHarmful;
    all.acceptedHarmless += own.acceptedHarmless;
    all.refusedHarmless += own.refusedHarmless;
  }
  for (const auto &[harm, count] : harms) {
    std::cout << "harm: " << harm << ": " << count << "\n";
  }
  for (const auto &[reason, count] : reasons) {
    std::cout << "harmless and refused: " << reason << ": " << count << "\n";
  }
  EXPECT_GE(all.refusedHarmful, count / 2);
  EXPECT_GE(all.acceptedHarmless, count / 10);
  EXPECT_LE(all.refusedHarmless, count / 12);
}

/// Random orders, in which nothing runs at once, end alike, too.
TEST(PipelineMutants, HarmlessOnesEndAlikeInRandomOrders) {
  Pipeline pipeline({{2, 4, 2}, "1f1b"});
  const Term right = pipeline.rightEnd();
  EXPECT_EQ(pipeline.endsOfWalks(pipeline.programs()), std::set<Term>{right});
  Mutants mutants(2);
  for (size_t harmless = 0; harmless < 30;) {
    rt::Programs mutant = pipeline.programs();
    if (mutants.mutate(mutant) && pipeline.harmOf(mutant, right).empty()) {
      ++harmless;
      EXPECT_EQ(pipeline.endsOfWalks(mutant), std::set<Term>{right});
    }
  }
}

} // namespace
