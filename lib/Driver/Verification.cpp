//===- Verification.cpp - is a plan the same as one rank? -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Verification.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/Compilation.h"
#include "weft/Driver/FirstDifference.h"
#include "weft/Driver/MadeUpData.h"
#include "weft/Driver/RunDifferences.h"
#include "weft/Driver/SmallPrograms.h"
#include "weft/Driver/TemporaryFolder.h"
#include "weft/Driver/TrainingRun.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace weft;

namespace {

/// Steps of the ranks in one run. A wrong copy of an optimizer's state after the first step changes
/// weights in the second, and the loss in the third.
constexpr int64_t kUnbrokenSteps = 3;

/// The number of seeds that are tried if the differences may be ties.
constexpr int64_t kSeeds = 3;

/// Prints a line with the name and duration of each activity.
class Stopwatch {
public:
  void lap(const llvm::Twine &what) {
    auto now = std::chrono::steady_clock::now();
    llvm::outs() << llvm::formatv("{0,-44} {1,5:F1} s\n", what.str(),
                                  std::chrono::duration<double>(now - last).count());
    llvm::outs().flush();
    last = now;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

void printShrunk(const verify::Shrunk &shrunk) {
  llvm::outs() << "the model is made smaller:\n";
  for (const verify::Change &change : shrunk.changes) {
    llvm::outs() << llvm::formatv("  {0,-34} {1,10} -> {2}\n", change.what, change.from, change.to);
  }
  for (const std::string &sentence : shrunk.notKept) {
    llvm::outs() << "  not kept: " << sentence << '\n';
  }
}

/// Prints the collectives of the original and of the small program; returns true if the small one
/// has all kinds.
bool printCollectives(const OriginalPlan &plan, const SmallProgram &split) {
  bool hasStages = split.programs.size() > 1;
  llvm::outs() << "collectives in "
               << (hasStages ? "the code of a rank of each stage" : "a rank's code")
               << ", in the original and here, with fewer layers:\n";
  bool isWhole = true;
  for (const auto &[kind, count] : plan.collectives) {
    auto it = split.collectives.find(kind);
    int64_t here = it == split.collectives.end() ? 0 : it->second;
    llvm::outs() << llvm::formatv("  {0,-44} {1,5} {2,5}{3}\n", kind, count, here,
                                  here == 0 ? "  not kept" : "");
    isWhole &= here > 0;
  }
  if (plan.collectives.empty()) {
    llvm::outs() << "  none\n";
  }
  return isWhole;
}

class Verification {
public:
  Verification(const CompileOptions &options, const Descriptions &descriptions, int64_t reserve)
      : options(options), descriptions(descriptions), reserve(reserve) {}

  llvm::Error run() {
    if (llvm::Error error = folder.create("weft-verify")) {
      return error;
    }
    if (llvm::Error error = compile()) {
      return error;
    }
    bool isWhole = printCollectives(plan, split);
    if (llvm::Error error = compareBySeeds()) {
      return error;
    }
    int64_t ranks = shrunk.plan.ranks(), parts = shrunk.plan.accumulation;
    int64_t stages = shrunk.plan.pipeline.stages;
    llvm::outs() << "verified: " << ranks << (ranks > 1 ? " ranks" : " rank");
    if (stages > 1) {
      llvm::outs() << " in " << stages << " stages";
    }
    llvm::outs() << (ranks > 1 ? " compute" : " computes");
    if (parts > 1) {
      llvm::outs() << " in " << parts << " micro-batches what one does at once";
    } else {
      llvm::outs() << " what one does";
    }
    llvm::outs() << (isWhole ? "" : ", but not all kinds of collectives are in it") << '\n';
    return llvm::Error::success();
  }

private:
  SmallProgramRequest requestFor(bool isSplit) const {
    SmallProgramRequest request;
    request.shrunk = &shrunk;
    request.original = &descriptions;
    request.recomputed = plan.recomputed;
    if (isSplit) {
      request.plan = &plan;
      request.mutation = options.mutation;
    }
    return request;
  }

  llvm::Error compile() {
    auto planned = planOriginal(options, descriptions, reserve);
    if (!planned) {
      return planned.takeError();
    }
    plan = std::move(*planned);
    stopwatch.lap("planned the model as it is");
    if (llvm::Error error = compileSplit()) {
      return error;
    }
    auto compiled = compileSmall(requestFor(false), folder.file("single"));
    if (!compiled) {
      return compiled.takeError();
    }
    single = std::move(*compiled);
    stopwatch.lap("compiled it for one rank");
    return writeMadeUpData(folder.file("data"), single.programs.front(), verify::kSteps);
  }

  /// Makes the model smaller and compiles it for the ranks. If axes of the least sizes divide what
  /// the plan's own do not, the ops can differ so that they cannot follow the plan: then more ranks
  /// keep these divisibilities.
  llvm::Error compileSplit() {
    shrunk = shrunkTo(verify::AxisSizes::Least);
    printShrunk(shrunk);
    llvm::Expected<SmallProgram> compiled = compileSmall(requestFor(true), folder.file("split"));
    if (!compiled) {
      int64_t ranks = shrunk.plan.ranks();
      verify::Shrunk other = shrunkTo(verify::AxisSizes::Divisors);
      if (other.plan.ranks() <= ranks) {
        return compiled.takeError();
      }
      llvm::outs() << "not with " << ranks << " ranks: " << llvm::toString(compiled.takeError())
                   << '\n';
      shrunk = std::move(other);
      printShrunk(shrunk);
      compiled = compileSmall(requestFor(true), folder.file("split"));
    }
    if (!compiled) {
      return compiled.takeError();
    }
    split = std::move(*compiled);
    stopwatch.lap("compiled the small one for " + std::to_string(shrunk.plan.ranks()) + " ranks");
    return llvm::Error::success();
  }

  verify::Shrunk shrunkTo(verify::AxisSizes axes) const {
    return verify::shrink(*descriptions.model, descriptions.recipe, planWithPadding(), axes);
  }

  /// Returns the plan with an entry for each dimension that was padded for aligned rows: the small
  /// model's is then padded for the same axes, which the search may have cut it by. As no op has
  /// the entry's name, it pads and cuts nothing.
  desc::PlanSpec planWithPadding() const {
    desc::PlanSpec padded = descriptions.plan;
    for (auto [dimension, size] : plan.paddedSizes) {
      desc::ShardingSpec entry;
      entry.value = "padded-for-aligned-rows";
      entry.dimension = dimension;
      for (const desc::AxisSpec &axis : padded.mesh) {
        if (size % axis.size == 0) {
          size /= axis.size;
          entry.axes.push_back(axis.name);
        }
      }
      if (!entry.axes.empty()) {
        padded.shardings.push_back(entry);
      }
    }
    return padded;
  }

  /// Runs the steps [first, end) of a program.
  RunRequest runOf(const SmallProgram &program, int64_t first, int64_t end) const {
    RunRequest request;
    request.program = program.path;
    request.data = folder.file("data");
    request.readsTokens = readsTokens(program.programs.front());
    request.seed = seed;
    request.firstStep = first;
    request.endStep = end;
    request.save = weightsAfter(program, end);
    request.folder = folder.getPath();
    return request;
  }

  static std::string weightsAfter(const SmallProgram &program, int64_t steps) {
    return program.path + ".weights-" + std::to_string(steps);
  }

  /// Runs step `step` of a program, from the weights that one rank has before it.
  RunRequest stepOf(const SmallProgram &program, int64_t step) const {
    RunRequest request = runOf(program, step, step + 1);
    request.load = step > 0 ? weightsAfter(single, step) : "";
    request.validates = step == verify::kSteps - 1;
    return request;
  }

  /// Tries several seeds: ties of FP8 numbers change with the seed, a mistake does not.
  llvm::Error compareBySeeds() {
    seed = single.programs.front().defaultSeed;
    for (int64_t last = kSeeds - 1;; --last, ++seed) {
      if (llvm::Error error = compare()) {
        return error;
      }
      if (printDifferences()) {
        return llvm::Error::success();
      }
      auto first = findFirst();
      if (!first) {
        return first.takeError();
      }
      if (!first->mayBeTie || last == 0) {
        return makeError("the plan does not compute what one rank does: " + first->sentence);
      }
      llvm::outs() << first->sentence
                   << "\nthat may be a number between two FP8 numbers, which are "
                   << "others with seed " << seed + 1 << ":\n";
    }
  }

  llvm::Error compare() {
    std::vector<std::string> parameters;
    for (const rt::NamedTensor &parameter : single.programs.front().parameters) {
      parameters.push_back(parameter.name);
    }
    RunComparison comparison(parameters);
    llvm::Error error = compareSteps(comparison);
    if (!error && !comparison.stepDiffers()) {
      error = compareResumed(comparison);
    }
    found = comparison.classes();
    return error;
  }

  /// Compares the steps up to the first that differs, which suffices to find the difference.
  llvm::Error compareSteps(RunComparison &comparison) {
    std::vector<double> losses;
    for (int64_t step = 0; step < verify::kSteps && !comparison.stepDiffers(); ++step) {
      auto expected = runTraining(stepOf(single, step));
      if (!expected) {
        return expected.takeError();
      }
      if (!expected->notFinite.empty()) {
        return makeError("one rank did not run to its end: " + expected->notFinite);
      }
      auto got = runTraining(stepOf(split, step));
      if (!got) {
        return got.takeError();
      }
      tellNotFinite(*got);
      comparison.compareStep(*got, *expected);
      losses.insert(losses.end(), expected->losses.begin(), expected->losses.end());
    }
    stopwatch.lap("ran both, step by step");
    llvm::outs() << "loss of each step on one rank:";
    for (double loss : losses) {
      llvm::outs() << llvm::format(" %.4f", loss);
    }
    llvm::outs() << '\n';
    return llvm::Error::success();
  }

  static void tellNotFinite(const TrainingRun &run) {
    if (!run.notFinite.empty()) {
      llvm::outs() << "the ranks ended: " << run.notFinite << '\n';
    }
  }

  /// Runs the first steps of the ranks in one run.
  RunRequest unbrokenRun(int64_t end) const {
    RunRequest request = runOf(split, 0, end);
    request.save = folder.file("unbroken");
    return request;
  }

  /// Runs all but the first of these steps again, from the tensors saved after the first.
  RunRequest resumedRun(int64_t end) const {
    RunRequest request = runOf(split, 1, end);
    request.load = weightsAfter(split, 1);
    request.save = folder.file("resumed");
    return request;
  }

  llvm::Error compareResumed(RunComparison &comparison) {
    auto unbroken = runTraining(unbrokenRun(kUnbrokenSteps));
    if (!unbroken) {
      return unbroken.takeError();
    }
    auto resumed = runTraining(resumedRun(kUnbrokenSteps));
    if (!resumed) {
      return resumed.takeError();
    }
    tellNotFinite(*unbroken);
    tellNotFinite(*resumed);
    comparison.compareResumed(*unbroken, *resumed);
    stopwatch.lap("ran steps of the ranks in one run");
    return llvm::Error::success();
  }

  bool printDifferences() {
    bool isSame = true;
    llvm::outs() << "greatest relative difference:\n";
    for (const ClassDifference &difference : found) {
      llvm::outs() << llvm::formatv("  {0,-18} {1,5} compared  ", difference.name,
                                    difference.compared)
                   << llvm::format("%.1e", difference.greatest);
      if (difference.differing > 0) {
        llvm::outs() << ", " << difference.differing
                     << (difference.tolerance > 0
                             ? llvm::formatv(" above {0:e0}", difference.tolerance).str()
                             : " not the same bits");
      }
      llvm::outs() << '\n';
      isSame &= difference.differing == 0;
    }
    return isSame;
  }

  llvm::Expected<FirstDifference> findFirst() {
    const ClassDifference &first = *llvm::find_if(
        found, [](const ClassDifference &difference) { return difference.differing > 0; });
    llvm::outs() << "differs: " << first.first << " of step " << first.step << '\n';
    llvm::outs().flush();
    if (!first.isOfStep && first.tolerance > 0) {
      return FirstDifference{
          "steps are right, but an evaluation is not, whose values cannot be looked at",
          /*mayBeTie=*/shrunk.recipe.fp8.has_value()};
    }
    auto difference = first.isOfStep ? firstOfStep(first.step) : firstOfResumed(first.step);
    stopwatch.lap("looked at every value of a step");
    return difference;
  }

  llvm::Expected<FirstDifference> firstOfResumed(int64_t step) const {
    auto sentence =
        firstResumedDifference(requestFor(true), unbrokenRun(step + 1), resumedRun(step + 1));
    if (!sentence) {
      return sentence.takeError();
    }
    return FirstDifference{*sentence};
  }

  llvm::Expected<FirstDifference> firstOfStep(int64_t step) const {
    SmallProgramRequest one = requestFor(false);
    // Otherwise the values of a micro-batch would have no counterparts.
    one.accumulates = shrunk.plan.accumulation > 1;
    return firstDifference(requestFor(true), one, stepOf(single, step));
  }

  const CompileOptions &options;
  const Descriptions &descriptions;
  const int64_t reserve;
  TemporaryFolder folder;
  Stopwatch stopwatch;
  verify::Shrunk shrunk;
  OriginalPlan plan;
  SmallProgram split, single;
  uint64_t seed = 0;
  std::vector<ClassDifference> found;
};

} // namespace

llvm::Error weft::verifyPlan(const CompileOptions &options, const Descriptions &descriptions) {
  CompileOptions whole = options;
  whole.mutation = std::nullopt;
  // The plan with which `weft compile` ends.
  llvm::FailureOr<PlanConditions> conditions = findConditions(whole, descriptions);
  if (failed(conditions)) {
    return makeSilentError();
  }
  Descriptions planned = descriptions;
  planned.plan.accumulation = conditions->accumulation;
  planned.plan.homes = conditions->homes;
  planned.plan = conditions->plan.value_or(planned.plan);
  return Verification(options, planned, conditions->reserve).run();
}
