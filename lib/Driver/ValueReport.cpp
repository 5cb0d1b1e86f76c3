//===- ValueReport.cpp - why a value is sharded as it is, for people ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ValueReport.h"

#include "weft/Driver/CommandLine.h"

#include "core/Text.h"

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

/// Of a name's parts that end it, as mlp.up.weight ends layers.0.mlp.up.weight, that which is
/// spelled most alike counts.
size_t distanceTo(llvm::StringRef wanted, llvm::StringRef name) {
  size_t least = rt::editDistance(wanted, name);
  for (size_t dot = name.find('.'); dot != llvm::StringRef::npos; dot = name.find('.', dot + 1)) {
    least = std::min(least, rt::editDistance(wanted, name.substr(dot + 1)));
  }
  return least;
}

} // namespace

void weft::printValueReport(llvm::raw_ostream &os, const ValueQuestion &question,
                            const desc::MachineSpec &machine, int64_t reserve) {
  const LayoutPrice &chosen = question.chosen;
  os << question.value;
  if (question.together > 0) {
    os << ", decided together with " << question.together << " more";
  }
  os << "\n  lies  " << chosen.layout << "\n  why   " << question.why << '\n';
  os << llvm::format("the search says %.3f ms a step, and of a rank's memory ",
                     1e3 * chosen.seconds)
     << rt::bytesText(uint64_t(chosen.bytes)) << '\n';
  if (question.ways <= 1) {
    os << "no other way is allowed\n";
    return;
  }
  int64_t memory = int64_t(machine.device.memoryBytes);
  if (reserve > 0) {
    os << "it leaves " << rt::bytesText(uint64_t(reserve)) << " of the "
       << rt::bytesText(uint64_t(memory)) << " for what it does not count\n";
  }
  os << "a step, at best, if it lay in another way, all else as is best then:\n";
  for (const LayoutPrice &price : question.others) {
    printPrice(os, price, chosen, std::max<int64_t>(memory - reserve, 0));
  }
  auto isBetter = [&](const LayoutPrice &price) {
    return price.fits && price.seconds < chosen.seconds * (1 - 1e-4);
  };
  if (llvm::any_of(question.others, isBetter)) {
    os << "  the search is not exact here, and has missed what takes less: pin it to have that\n";
  }
  size_t left = question.ways - 1 - question.others.size();
  if (left > 0) {
    os << "  " << left << " more " << (left == 1 ? "way is" : "ways are")
       << " not allowed, or take more where nothing else moves\n";
  }
}

llvm::Error weft::refuseName(const ValueQuestion &question) {
  auto listed = [](llvm::ArrayRef<std::string> names) {
    std::string text = llvm::join(names.take_front(kMostNames), ", ");
    return names.size() > kMostNames
               ? text + " and " + std::to_string(names.size() - kMostNames) + " more"
               : text;
  };
  if (question.isAmbiguous) {
    return makeError("'" + question.name + "' is the name of " +
                     llvm::Twine(question.names.size()) +
                     " values that are decided apart, expected one: " + listed(question.names));
  }
  // What has the name in it is nearer than what is spelled alike.
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string &name : question.names) {
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
