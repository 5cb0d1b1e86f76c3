//===- VerifyCommand.cpp - is a plan the same as one rank? ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"
#include "FirstDifference.h"
#include "MadeUpData.h"
#include "RunDifferences.h"
#include "SmallPrograms.h"
#include "TemporaryFolder.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <limits>

using namespace weft;

namespace {

/// What is being done and how long it took, a line each.
class Watch {
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

/// Which collectives the small program has of those of the original; whether all kinds.
bool printCollectives(const OriginalPlan &plan, const SmallProgram &split) {
  llvm::outs() << "collectives in a rank's code, in the original and here, with fewer layers:\n";
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
  Verification(const CompileOptions &options, const Descriptions &descriptions)
      : options(options), descriptions(descriptions),
        shrunk(verify::shrink(*descriptions.model, descriptions.recipe, descriptions.plan)) {}

  llvm::Error run() {
    if (llvm::Error error = folder.create("weft-verify")) {
      return error;
    }
    printShrunk(shrunk);
    if (llvm::Error error = compile()) {
      return error;
    }
    bool isWhole = printCollectives(plan, split);
    if (llvm::Error error = compare()) {
      return error;
    }
    bool isSame = printDifferences();
    if (!isSame) {
      return reportFirst();
    }
    int64_t ranks = shrunk.plan.ranks(), parts = shrunk.plan.accumulation;
    llvm::outs() << "verified: " << ranks << (ranks > 1 ? " ranks compute" : " rank computes");
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
    if (isSplit) {
      request.plan = &plan;
      request.mutation = options.mutation;
    }
    return request;
  }

  llvm::Error compile() {
    auto planned = planOriginal(options, descriptions);
    if (!planned) {
      return planned.takeError();
    }
    plan = std::move(*planned);
    watch.lap("planned the model as it is");
    auto compiled = compileSmall(requestFor(true), folder.file("split"));
    if (!compiled) {
      return compiled.takeError();
    }
    split = std::move(*compiled);
    watch.lap("compiled the small one for " + std::to_string(shrunk.plan.ranks()) + " ranks");
    compiled = compileSmall(requestFor(false), folder.file("single"));
    if (!compiled) {
      return compiled.takeError();
    }
    single = std::move(*compiled);
    watch.lap("compiled it for one rank");
    return writeMadeUpData(folder.file("data"), single.program, verify::kSteps);
  }

  llvm::Expected<RunPair> runBoth(const SmallProgram &program) {
    RunPair pair;
    for (auto [step, run] :
         {std::pair<int64_t, TrainingRun *>(0, &pair.first), {verify::kSteps - 1, &pair.last}}) {
      auto done = runTraining({program.path, folder.file("data"), readsTokens(program.program),
                               verify::kSteps, step, folder.getPath()});
      if (!done) {
        return done.takeError();
      }
      *run = std::move(*done);
    }
    return pair;
  }

  llvm::Error compare() {
    auto got = runBoth(split);
    if (!got) {
      return got.takeError();
    }
    auto expected = runBoth(single);
    if (!expected) {
      return expected.takeError();
    }
    std::vector<std::string> parameters;
    for (const rt::NamedTensor &parameter : single.program.parameters) {
      parameters.push_back(parameter.name);
    }
    found = compareRuns(*got, *expected, parameters);
    watch.lap("ran both, each twice");
    const std::vector<double> &losses = expected->last.losses;
    double moved = std::abs(losses.back() / losses.front() - 1);
    llvm::outs() << llvm::format("loss on one rank from %.4f to %.4f%s\n", losses.front(),
                                 losses.back(), moved < 0.1 ? ", less than by a tenth" : "");
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
        llvm::outs() << ", " << difference.differing << " above "
                     << llvm::format("%.0e", kTolerance);
      }
      llvm::outs() << '\n';
      isSame &= difference.differing == 0;
    }
    return isSame;
  }

  /// The step whose values show the mistake: where nothing of the first step differs but what comes
  /// after, it is in the update of the step before.
  llvm::Error reportFirst() {
    const ClassDifference *first = nullptr;
    int64_t step = std::numeric_limits<int64_t>::max();
    for (const ClassDifference &difference : found) {
      if (difference.differing > 0 && difference.step < step) {
        first = &difference;
        step = difference.step;
      }
    }
    llvm::outs() << "differs: " << first->first << " in step " << step << '\n';
    llvm::outs().flush();
    int64_t observed = step > 0 && first->name == "loss" ? step - 1 : step;
    SmallProgramRequest one = requestFor(false);
    // Or there would be no values to compare those of a micro-batch with.
    one.accumulates = shrunk.plan.accumulation > 1;
    auto sentence =
        firstDifference(requestFor(true), one, observed, folder.getPath(), folder.file("data"));
    if (!sentence) {
      return sentence.takeError();
    }
    watch.lap("looked at every value of a step");
    return makeError("the plan does not compute what one rank does: " + *sentence);
  }

  const CompileOptions &options;
  const Descriptions &descriptions;
  const verify::Shrunk shrunk;
  TemporaryFolder folder;
  Watch watch;
  OriginalPlan plan;
  SmallProgram split, single;
  std::vector<ClassDifference> found;
};

llvm::Error run(const CompileOptions &options) {
  llvm::Expected<Descriptions> descriptions = openDescriptions(options, checkDescriptionOptions);
  if (!descriptions) {
    return descriptions.takeError();
  }
  if (descriptions->plan.mesh.empty() && descriptions->plan.accumulation == 1) {
    return makeError("expected a plan of several ranks or micro-batches, by --plan, --pin or "
                     "--mesh: one rank has nothing to be compared with");
  }
  return Verification(options, *descriptions).run();
}

} // namespace

int weft::verifyCommand(llvm::ArrayRef<const char *> arguments) {
  CompileOptions options;
  CommandLine line(
      "weft verify MODEL --machine FILE --recipe FILE (--plan FILE | --pin NAME=VALUE | --mesh "
      "AXES)",
      "Makes MODEL smaller, compiles it for the ranks of the plan and for one, trains both for\n"
      "some steps in float64, here, and compares every loss, gradient and weight. Where they "
      "differ\n"
      "it names the op at fault. Exit status: 0 if all are the same, else 1.");
  declareDescriptionOptions(line, options);
  declarePlanOptions(line, options);
  declareMutationOptions(line, options);
  return line.run("verify", arguments, [&] { return run(options); });
}
