//===- FirstDifference.cpp - finds the first op whose results differ -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/FirstDifference.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/MadeUpData.h"
#include "weft/Driver/RunDifferences.h"

#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"

using namespace weft;

namespace {

/// Returns the elements of a padded tensor that are no padding: those within `shape`.
std::vector<double> withoutPadding(const Tensor &tensor, const std::vector<int64_t> &shape) {
  if (tensor.shape == shape || tensor.shape.size() != shape.size()) {
    return tensor.values;
  }
  std::vector<double> kept;
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    bool isInside = true;
    int64_t rest = int64_t(i);
    for (size_t dim = shape.size(); dim-- > 0;) {
      isInside &= rest % tensor.shape[dim] < shape[dim];
      rest /= tensor.shape[dim];
    }
    if (isInside) {
      kept.push_back(tensor.values[i]);
    }
  }
  return kept;
}

/// Compiles a program that writes every value of a step.
llvm::Expected<SmallProgram> compileObserved(SmallProgramRequest request, const RunRequest &run) {
  request.observes = true;
  return compileSmall(request, run.folder + "/observed");
}

/// Runs `program`, and returns the values that it wrote in the last step.
llvm::Expected<Tensors> valuesOf(const SmallProgram &program, RunRequest run) {
  run.program = program.path;
  run.save.clear(); // Programs refuse to save weights that are not finite, which are to be found.
  run.validates = false; // Which shows no values, and ends the run where its loss is not finite.
  llvm::Expected<TrainingRun> done = runTraining(run);
  if (!done) {
    return done.takeError();
  }
  return std::move(done->gradients);
}

/// Returns the first of `values` whose distance exceeds `tolerance`; an empty sentence if there is
/// none.
llvm::Expected<FirstDifference> firstOf(const std::vector<verify::ObservedValue> &values,
                                        const Tensors &got, const Tensors &expected, int64_t step,
                                        double tolerance) {
  for (const verify::ObservedValue &value : values) {
    // Where only stages have a sum, at least nothing may change it on its way.
    bool isOfStage = value.mayBeOfStage && expected.find(value.original) == expected.end();
    const Tensors &from = isOfStage ? got : expected;
    auto a = got.find(value.name), b = from.find(value.original);
    if (a == got.end() || b == from.end()) {
      return makeError("one of the programs does not show " + value.maker);
    }
    // Norms far below 1 count as rounding: for a tensor by itself, no other scale is known.
    const Tensor &right = b->second;
    double apart = distance(withoutPadding(a->second, right.shape), right.values, 1.0);
    if (apart > tolerance) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "the first value of step " << step << " that differs is made by " << value.maker
          << llvm::format(", relative difference %.1e", apart);
      return FirstDifference{text, value.isCoarse};
    }
  }
  return FirstDifference{};
}

} // namespace

llvm::Expected<FirstDifference> weft::firstDifference(SmallProgramRequest split,
                                                      SmallProgramRequest single, RunRequest run) {
  Tensors values[2];
  std::vector<verify::ObservedValue> observed;
  for (auto [request, read] : {std::pair(&single, &values[0]), {&split, &values[1]}}) {
    llvm::Expected<SmallProgram> program = compileObserved(*request, run);
    if (!program) {
      return program.takeError();
    }
    llvm::Expected<Tensors> shown = valuesOf(*program, run);
    if (!shown) {
      return shown.takeError();
    }
    *read = std::move(*shown);
    observed = std::move(program->values);
  }
  auto first = firstOf(observed, values[1], values[0], run.firstStep, kTolerance);
  if (!first || !first->sentence.empty()) {
    return first;
  }
  first->mayBeTie =
      llvm::any_of(observed, [](const verify::ObservedValue &value) { return value.isCoarse; });
  first->sentence =
      "no value of step " + std::to_string(run.firstStep) +
      " differs where all are looked at: the mistake is in the order that balance-sequences "
      "gives them, or in what Schedule and Lower make of them" +
      (single.accumulates ? ", or in adding up micro-batches, which one rank does there too" : "") +
      (split.shrunk->plan.pipeline.stages > 1
           ? ", or in the schedule: to show values, stages work on one micro-batch after another"
           : "");
  return first;
}

llvm::Expected<std::string> weft::firstResumedDifference(SmallProgramRequest split,
                                                         RunRequest unbroken, RunRequest resumed) {
  llvm::Expected<SmallProgram> program = compileObserved(split, unbroken);
  if (!program) {
    return program.takeError();
  }
  auto got = valuesOf(*program, unbroken), expected = valuesOf(*program, resumed);
  if (!got || !expected) {
    return llvm::joinErrors(got.takeError(), expected.takeError());
  }
  std::vector<verify::ObservedValue> own = program->values;
  for (verify::ObservedValue &value : own) {
    value.original = value.name; // Of the same program.
  }
  int64_t step = unbroken.endStep - 1;
  auto first = firstOf(own, *got, *expected, step, 0);
  if (!first) {
    return first.takeError();
  }
  return "every step is right by itself, but step " + std::to_string(step) +
         " is not where it follows on those before it: copies of a parameter or of an optimizer "
         "state "
         "are not the same on all ranks, or something else is kept from step to step; " +
         (first->sentence.empty() ? "no value of the step differs where all are looked at"
                                  : first->sentence);
}
