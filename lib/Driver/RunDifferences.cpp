//===- RunDifferences.cpp - differences between two runs -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/RunDifferences.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace weft;

namespace {

/// A tensor below this share of all tensors is nothing but rounding.
constexpr double kNothing = 1e-10;

/// The names of the value that differs if a run ended without writing tensors, or without weights.
constexpr const char *kNotFinite = "loss or gradient norm";
constexpr const char *kNotSaved = "weights or optimizer states";

/// Groups the names of tensors that are no parameters by their kind of state: "adam_m/x" and
/// "adam_m/y" are in one group.
std::map<std::string, std::vector<std::string>>
statesOf(const Tensors &tensors, const std::vector<std::string> &parameters) {
  std::map<std::string, std::vector<std::string>> states;
  for (const auto &[name, tensor] : tensors) {
    if (!llvm::is_contained(parameters, name)) {
      states[llvm::StringRef(name).split('/').first.str()].push_back(name);
    }
  }
  return states;
}

} // namespace

double weft::normOf(const Tensors &tensors, const std::vector<std::string> &names) {
  double sum = 0;
  for (const std::string &name : names) {
    if (auto it = tensors.find(name); it != tensors.end()) {
      for (double value : it->second.values) {
        sum += value * value;
      }
    }
  }
  return std::sqrt(sum);
}

double weft::distance(const std::vector<double> &got, const std::vector<double> &expected,
                      double scale) {
  if (got.size() != expected.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double apart = 0, size = 0;
  for (auto [a, b] : llvm::zip_equal(got, expected)) {
    apart += (a - b) * (a - b);
    size += b * b;
  }
  apart = std::sqrt(apart);
  size = std::sqrt(size);
  if (apart == 0) {
    return 0;
  }
  size = size <= kNothing * scale ? scale : size;
  double relative = apart / size;
  return std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative;
}

RunComparison::RunComparison(std::vector<std::string> parameters)
    : parameters(std::move(parameters)) {
  for (const std::string &parameter : this->parameters) {
    gradients.push_back("gradient/" + parameter);
  }
  for (const char *name : {"loss", "dropped tokens", "gradients", "gradient norm", "weights",
                           "optimizer states", "steps in one run", "validation loss"}) {
    found.push_back(ClassDifference{name});
  }
  found[Resumed].tolerance = 0;
  found[Resumed].isOfStep = found[Validation].isOfStep = false;
}

void RunComparison::note(Kind kind, const std::string &name, int64_t step, double apart) {
  ClassDifference &difference = found[kind];
  ++difference.compared;
  difference.greatest = std::max(difference.greatest, apart);
  if (apart > difference.tolerance) {
    if (difference.differing == 0) {
      difference.first = name;
      difference.step = step;
    }
    ++difference.differing;
  }
}

/// Compares series of numbers, with equally many for each step from `step` on.
void RunComparison::compareSeries(Kind kind, const std::string &name, int64_t step,
                                  llvm::ArrayRef<double> got, llvm::ArrayRef<double> expected) {
  for (size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
    bool both = i < got.size() && i < expected.size();
    note(kind, name, step,
         both ? distance({got[i]}, {expected[i]}, 0) : std::numeric_limits<double>::infinity());
  }
}

/// Compares those tensors of `names` that one of the runs has, each relative to all of them.
void RunComparison::compareTensors(Kind kind, int64_t step, const Tensors &got,
                                   const Tensors &expected, const std::vector<std::string> &names) {
  double scale = normOf(expected, names);
  for (const std::string &name : names) {
    auto a = got.find(name), b = expected.find(name);
    if (a == got.end() && b == expected.end()) {
      continue;
    }
    double apart = a == got.end() || b == expected.end()
                       ? std::numeric_limits<double>::infinity()
                       : distance(a->second.values, b->second.values, scale);
    note(kind, name, step, apart);
  }
}

void RunComparison::compareStep(const TrainingRun &got, const TrainingRun &expected) {
  int64_t step = expected.firstStep;
  if (!got.notFinite.empty() && got.gradients.empty()) {
    bool wasStepDone = !got.losses.empty();
    note(wasStepDone ? Validation : Loss, wasStepDone ? "validation loss" : kNotFinite, step,
         std::numeric_limits<double>::infinity());
    return;
  }
  compareSeries(Loss, "loss", step, got.losses, expected.losses);
  compareSeries(Dropped, "dropped tokens", step, got.dropped, expected.dropped);
  compareTensors(Gradients, step, got.gradients, expected.gradients, gradients);
  compareSeries(Norm, "gradient norm", step, got.norms, expected.norms);
  if (!got.notFinite.empty()) {
    note(Weights, kNotSaved, step, std::numeric_limits<double>::infinity());
    return;
  }
  compareTensors(Weights, step, got.weights, expected.weights, parameters);
  for (const auto &[state, ofParameters] : statesOf(expected.weights, parameters)) {
    compareTensors(States, step, got.weights, expected.weights, ofParameters);
  }
  compareSeries(Validation, "validation loss", step, got.validation, expected.validation);
}

void RunComparison::compareResumed(const TrainingRun &unbroken, const TrainingRun &resumed) {
  int64_t end = std::min(resumed.firstStep + int64_t(resumed.losses.size()),
                         unbroken.firstStep + int64_t(unbroken.losses.size()));
  for (int64_t step = resumed.firstStep; step < end; ++step) {
    auto i = size_t(step - resumed.firstStep), other = size_t(step - unbroken.firstStep);
    note(Resumed, "loss", step, distance({resumed.losses[i]}, {unbroken.losses[other]}, 0));
    note(Resumed, "gradient norm", step, distance({resumed.norms[i]}, {unbroken.norms[other]}, 0));
  }
  int64_t last = end - 1;
  if (!unbroken.notFinite.empty() || !resumed.notFinite.empty()) {
    bool wereStepsDone = !unbroken.gradients.empty() && !resumed.gradients.empty();
    note(Resumed, wereStepsDone ? kNotSaved : kNotFinite, wereStepsDone ? last : end,
         std::numeric_limits<double>::infinity());
    return;
  }
  compareTensors(Resumed, last, resumed.gradients, unbroken.gradients, gradients);
  std::vector<std::string> names;
  for (const auto &[name, tensor] : unbroken.weights) {
    names.push_back(name);
  }
  compareTensors(Resumed, last, resumed.weights, unbroken.weights, names);
  compareSeries(Resumed, "validation loss", last, resumed.validation, unbroken.validation);
}

bool RunComparison::stepDiffers() const {
  return llvm::any_of(found, [](const ClassDifference &difference) {
    return difference.isOfStep && difference.differing > 0;
  });
}

std::vector<ClassDifference> RunComparison::classes() const {
  std::vector<ClassDifference> present;
  llvm::copy_if(found, std::back_inserter(present),
                [](const ClassDifference &difference) { return difference.compared > 0; });
  return present;
}
