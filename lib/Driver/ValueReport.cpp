//===- ValueReport.cpp - why a value is sharded as it is, for people ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ValueReport.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/Compilation.h"

#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace weft;

namespace {

constexpr size_t kMostNames = 6;

std::string bytesDifference(double bytes) {
  return (bytes < 0 ? "-" : "+") + rt::bytesText(uint64_t(std::abs(bytes)));
}

void printPrice(llvm::raw_ostream &os, const LayoutPrice &price, const LayoutPrice &chosen,
                int64_t available) {
  os << llvm::format("  %12.3f ms  %+12.3f ms  %7.3f x  %12s  ", 1e3 * price.seconds,
                     1e3 * (price.seconds - chosen.seconds), price.seconds / chosen.seconds,
                     bytesDifference(price.bytes - chosen.bytes).c_str())
     << price.layout;
  if (!price.fits) {
    os << ": more than the " << rt::bytesText(uint64_t(available)) << " it may take";
  }
  os << '\n';
}

/// Returns the edit distance of `wanted` from `name` or its nearest suffix: mlp.up.weight is a
/// suffix of layers.0.mlp.up.weight.
size_t distanceTo(llvm::StringRef wanted, llvm::StringRef name) {
  size_t least = rt::editDistance(wanted, name);
  for (size_t dot = name.find('.'); dot != llvm::StringRef::npos; dot = name.find('.', dot + 1)) {
    least = std::min(least, rt::editDistance(wanted, name.substr(dot + 1)));
  }
  return least;
}

/// Returns the error of a name that fits no value, or several; it lists names.
llvm::Error refuseName(const ValueQuestion &question, const ValueAnswer &answer) {
  auto listed = [](llvm::ArrayRef<std::string> names) {
    std::string text = llvm::join(names.take_front(kMostNames), ", ");
    return names.size() > kMostNames
               ? text + " and " + std::to_string(names.size() - kMostNames) + " more"
               : text;
  };
  if (answer.isAmbiguous) {
    return makeError("'" + question.name + "' is the name of " + llvm::Twine(answer.names.size()) +
                     " values that are decided apart, expected one: " + listed(answer.names));
  }
  // Names that contain the name are nearer than names of similar spelling.
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string &name : answer.names) {
    bool holds = llvm::StringRef(name).contains(question.name);
    near.emplace_back(holds ? 0 : distanceTo(question.name, name), name);
  }
  llvm::sort(near);
  std::vector<std::string> nearest;
  for (const auto &[distance, name] : near) {
    if (nearest.size() < 4 && !llvm::is_contained(nearest, name)) {
      nearest.push_back(name);
    }
  }
  return makeError("no value is called '" + question.name + "'; near are " + listed(nearest));
}

/// Returns the answer under these conditions.
llvm::Expected<ValueExplanation> answer(const ValueQuestion &question,
                                        const CompileOptions &options, Descriptions descriptions,
                                        const PlanConditions &conditions) {
  descriptions.plan.accumulation = conditions.accumulation;
  descriptions.plan.homes = conditions.homes;
  Compilation compilation(options, descriptions);
  compilation.leave(conditions.reserve);
  compilation.ask(question);
  bool isPlanned = succeeded(compilation.begin()) && succeeded(compilation.runPhases());
  const ValueAnswer &answer = compilation.getPlanFacts().answer;
  if (!isPlanned) {
    return answer.names.empty() ? makeSilentError() : refuseName(question, answer);
  }
  return ValueExplanation{answer, conditions.reserve};
}

} // namespace

llvm::Expected<ValueExplanation> weft::explainValue(const ValueQuestion &question,
                                                    const CompileOptions &options,
                                                    const Descriptions &descriptions) {
  // Most often this is the plan that is found first, and a wrong name is reported at once.
  const PlanConditions given{0, descriptions.plan.accumulation, descriptions.plan.homes,
                             std::nullopt};
  auto first = answer(question, options, descriptions, given);
  if (!first) {
    return first;
  }
  llvm::FailureOr<PlanConditions> found = findConditions(options, descriptions);
  if (failed(found)) {
    return makeSilentError();
  }
  return *found == given ? std::move(first) : answer(question, options, descriptions, *found);
}

void weft::printValueReport(llvm::raw_ostream &os, const ValueExplanation &explanation,
                            const desc::MachineSpec &machine) {
  const auto &[answer, reserve] = explanation;
  const LayoutPrice &chosen = answer.chosen;
  os << answer.value;
  if (answer.together > 0) {
    os << ", decided together with " << answer.together << " more";
  }
  os << "\n  lies  " << chosen.layout << "\n  why   " << answer.why << '\n';
  os << llvm::format("the search says %.3f ms a step, and of a rank's memory ",
                     1e3 * chosen.seconds)
     << rt::bytesText(uint64_t(chosen.bytes)) << '\n';
  if (answer.ways <= 1) {
    os << "no other way is allowed\n";
    return;
  }
  int64_t memory = int64_t(machine.device.memoryBytes);
  if (reserve > 0) {
    os << "it leaves " << rt::bytesText(uint64_t(reserve)) << " of the "
       << rt::bytesText(uint64_t(memory)) << " for what it does not count\n";
  }
  os << "a step, at best, if it lay in another way, all else as is best then:\n";
  for (const LayoutPrice &price : answer.others) {
    printPrice(os, price, chosen, std::max<int64_t>(memory - reserve, 0));
  }
  auto isBetter = [&](const LayoutPrice &price) {
    return price.fits && price.seconds < chosen.seconds * (1 - 1e-4);
  };
  if (llvm::any_of(answer.others, isBetter)) {
    os << "  the search is not exact here, and has missed what takes less: pin it to have that\n";
  }
  size_t left = answer.ways - 1 - answer.others.size();
  if (left > 0) {
    os << "  " << left << " more " << (left == 1 ? "way is" : "ways are")
       << " not allowed, or take more where nothing else moves\n";
  }
}
