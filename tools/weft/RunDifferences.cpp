//===- RunDifferences.cpp - how far two runs are apart -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunDifferences.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace weft;

namespace {

/// A tensor below this share of all tensors is nothing but rounding.
constexpr double kNothing = 1e-10;

void note(ClassDifference &found, const std::string &name, int64_t step, double apart) {
  ++found.compared;
  found.greatest = std::max(found.greatest, apart);
  if (apart > kTolerance) {
    if (found.differing == 0) {
      found.first = name;
      found.firstDistance = apart;
      found.step = step;
    }
    ++found.differing;
  }
}

/// Numbers in their order, of which `isByStep` has one for each step.
ClassDifference compareSeries(const char *name, const std::vector<double> &got,
                              const std::vector<double> &expected, bool isByStep) {
  ClassDifference found{name};
  for (size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
    bool both = i < got.size() && i < expected.size();
    double apart =
        both ? distance({got[i]}, {expected[i]}, 0) : std::numeric_limits<double>::infinity();
    std::string where = isByStep ? std::string(name) + " of step " + std::to_string(i) : name;
    note(found, where, isByStep ? int64_t(i) : 0, apart);
  }
  return found;
}

/// Tensors `names`, as far as one of the runs has them, each measured against all of them.
void compareTensors(ClassDifference &found, const std::string &kind, const Tensors &got,
                    const Tensors &expected, const std::vector<std::string> &names, int64_t step) {
  double scale = normOf(expected, names);
  for (const std::string &name : names) {
    auto a = got.find(name), b = expected.find(name);
    if (a == got.end() && b == expected.end()) {
      continue;
    }
    double apart = a == got.end() || b == expected.end()
                       ? std::numeric_limits<double>::infinity()
                       : distance(a->second.values, b->second.values, scale);
    note(found, kind + name, step, apart);
  }
}

/// Names of tensors that are no parameters, by what they are states of: those of "adam_m/x" and
/// "adam_m/y" together.
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

std::vector<ClassDifference> weft::compareRuns(const RunPair &got, const RunPair &expected,
                                               const std::vector<std::string> &parameters) {
  int64_t lastStep = int64_t(expected.last.losses.size()) - 1;
  std::vector<ClassDifference> found;
  found.push_back(compareSeries("loss", got.last.losses, expected.last.losses, true));
  if (!expected.last.dropped.empty() || !got.last.dropped.empty()) {
    found.push_back(
        compareSeries("dropped tokens", got.last.dropped, expected.last.dropped, false));
  }
  std::vector<std::string> names;
  for (const std::string &parameter : parameters) {
    names.push_back("gradient/" + parameter);
  }
  ClassDifference &gradients = found.emplace_back(ClassDifference{"gradients"});
  compareTensors(gradients, "", got.first.gradients, expected.first.gradients, names, 0);
  compareTensors(gradients, "", got.last.gradients, expected.last.gradients, names, lastStep);
  found.push_back(compareSeries("gradient norm", got.last.norms, expected.last.norms, true));
  ClassDifference &weights = found.emplace_back(ClassDifference{"weights"});
  compareTensors(weights, "", got.last.weights, expected.last.weights, parameters, lastStep);
  ClassDifference states{"optimizer states"};
  for (const auto &[state, ofParameters] : statesOf(expected.last.weights, parameters)) {
    compareTensors(states, "", got.last.weights, expected.last.weights, ofParameters, lastStep);
  }
  if (states.compared > 0) {
    found.push_back(states);
  }
  found.push_back(
      compareSeries("validation loss", got.last.validation, expected.last.validation, false));
  return found;
}
