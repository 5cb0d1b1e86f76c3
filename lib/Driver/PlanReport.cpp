//===- PlanReport.cpp - a plan, for people --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/PlanReport.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/Report.h"

#include "report/MemoryReport.h"
#include "support/Text.h"
#include "weft/Cost/PredictProgram.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace weft;

namespace {

/// 12345678 as "12,345,678".
std::string groupedText(double number) {
  std::string digits = std::to_string(std::lround(number));
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

using Parts = std::vector<std::pair<std::string, double>>;

/// Prints times with their shares of the sum, the largest first.
void printParts(llvm::raw_ostream &os, Parts parts, double all) {
  llvm::sort(parts, [](const auto &a, const auto &b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  double rest = 0;
  for (const auto &[name, seconds] : parts) {
    if (seconds < 1e-3 * all) {
      rest += seconds;
      continue;
    }
    os << llvm::format("  %-24s %12s %6.1f %%\n", name.c_str(), secondsText(seconds).c_str(),
                       100 * seconds / all);
  }
  if (rest > 0) {
    os << llvm::format("  %-24s %12s %6.1f %%\n", "less than 0.1 % each", secondsText(rest).c_str(),
                       100 * rest / all);
  }
}

void printHeader(llvm::raw_ostream &os, const PlanFacts &facts, const rt::Program &program,
                 const desc::MachineSpec &machine) {
  int64_t ranks = program.rankCount();
  os << program.modelName << " on " << ranks << (ranks == 1 ? " rank" : " ranks") << " of "
     << machine.name;
  std::string mesh = meshText(program);
  os << (mesh.empty() ? "" : ", ") << mesh << ", plan " << program.planHash << '\n';
  for (const std::string &line : desc::recognize(facts.plan, facts.variables)) {
    os << "  " << line << '\n';
  }
}

void printSpeed(llvm::raw_ostream &os, const rt::Programs &programs,
                const desc::RecipeSpec &recipe) {
  const rt::Program &program = programs.front();
  double seconds = cost::stepSeconds(programs);
  os << "predicted: " << secondsText(seconds) << " a step";
  if (recipe.sequenceLength > 0) {
    os << ", " << groupedText(double(recipe.globalBatchTokens()) / seconds) << " tokens/s";
  } else {
    os << ", " << groupedText(double(recipe.globalBatch) / seconds) << " samples/s";
  }
  double peak = program.stepPeakFlopsPerRank() * double(program.rankCount());
  if (peak > 0) {
    os << llvm::format(", MFU %.1f %%", 100 * program.stepFlops / seconds / peak);
  }
  os << waitingText(programs, seconds) << '\n';
}

/// Prints the bound of predicted times, and the time that the search adds up, which is no bound:
/// collectives beside computation may take less.
void printSearch(llvm::raw_ostream &os, const SearchReport &search, const rt::Programs &programs,
                 const desc::PlanSpec &asked) {
  if (search.leastSeconds > 0) {
    bool isOpen = asked.shardings.empty() && asked.homes.empty();
    os << "no plan " << (isOpen ? "on this mesh" : "that keeps these pins") << " takes less than "
       << secondsText(search.leastSeconds)
       << llvm::format(", for its matmuls alone; this one takes %.2f times that\n",
                       cost::stepSeconds(programs) / search.leastSeconds);
  }
  os << "the search, each op and collective by itself, says " << secondsText(search.seconds)
     << llvm::format(
            " (at most %.2f %% above the least such sum%s, %zu decisions):\n", 100 * search.gap,
            search.searchesAll ? "" : " of those searched on so many parts", search.decisions);
}

} // namespace

void weft::printPlanReport(llvm::raw_ostream &os, const PlanFacts &facts,
                           const rt::Programs &programs, const Descriptions &descriptions) {
  const desc::MachineSpec &machine = descriptions.machine;
  printHeader(os, facts, programs.front(), machine);
  printSpeed(os, programs, descriptions.recipe);
  const SearchReport &search = facts.search;
  printSearch(os, search, programs, descriptions.plan);
  Parts parts(facts.price.computing.begin(), facts.price.computing.end());
  for (const auto &[axes, seconds] : facts.price.sending) {
    parts.emplace_back("between ranks over " + axes, seconds);
  }
  printParts(os, parts, search.seconds);
  for (const rt::Program &program : programs) {
    os << rt::memoryReport(program);
  }
  os << "  of " << rt::bytesText(uint64_t(machine.device.memoryBytes)) << " of a device '"
     << machine.device.name << "'\n";
}

/// Returns the schedule of that name for the chunks of `price`, where they lie; nothing if they lie
/// elsewhere.
static std::optional<desc::StageSchedule> scheduleOf(const PipelinePrice &price,
                                                     llvm::StringRef name, int64_t microBatches) {
  auto stages = int64_t(price.stages.size()), chunks = int64_t(price.chunks.size()) / stages;
  auto schedule = desc::makeSchedule(name.str(), stages, chunks, microBatches);
  auto places = schedule ? desc::stagesOfChunks(*schedule) : std::vector<int64_t>();
  bool isSame = llvm::equal(places, price.chunks, [](int64_t stage, const ChunkPrice &chunk) {
    return stage == chunk.stage;
  });
  return isSame ? schedule : std::nullopt;
}

void weft::printSchedules(llvm::raw_ostream &os, const PlanFacts &facts) {
  const PipelinePrice &price = facts.price.pipeline;
  const desc::PipelineSpec &spec = facts.plan.pipeline;
  int64_t microBatches = facts.plan.accumulation;
  if (price.stages.empty()) {
    return;
  }
  auto estimateOf = [&](const desc::StageSchedule &schedule) {
    return std::get<PipelineEstimate>(estimatePipeline(price, schedule, microBatches));
  };
  auto most = [](const PipelineEstimate &of) { return *llvm::max_element(of.peakBytes); };
  std::string planned = spec.scheduleText();
  PipelineEstimate own =
      estimateOf(spec.order.empty() ? *scheduleOf(price, planned, microBatches) : spec.order);
  llvm::StringRef title =
      "other orders of these stages, by the times and bytes of their actions alone:\n";
  for (llvm::StringRef name : {"1f1b", "gpipe", "zbh1", "zbv"}) {
    auto schedule = scheduleOf(price, name, microBatches);
    if (name == planned || !schedule) {
      continue;
    }
    PipelineEstimate other = estimateOf(*schedule);
    double more = most(other) - most(own);
    os << std::exchange(title, "");
    os << llvm::format("  schedule=%-38s %+8.1f %%  %c%s on the rank that needs most\n",
                       name.str().c_str(), 100 * (other.seconds / own.seconds - 1),
                       more < 0 ? '-' : '+', rt::bytesText(uint64_t(std::abs(more))).c_str());
  }
}

void weft::printRivals(llvm::raw_ostream &os, const rt::Programs &programs,
                       const std::vector<Rival> &rivals, const desc::MachineSpec &machine) {
  if (rivals.empty()) {
    return;
  }
  double seconds = cost::stepSeconds(programs);
  uint64_t room = uint64_t(machine.device.memoryBytes);
  os << "known strategies on this mesh, in as many micro-batches, the rest of each as the search "
        "finds it fastest:\n";
  for (const Rival &rival : rivals) {
    os << llvm::format("  %-34s ", rival.name.c_str());
    if (!rival.illegal.empty()) {
      os << "not possible: " << rival.illegal << '\n';
      continue;
    }
    os << llvm::format("%12s %+8.1f %%  %s", secondsText(rival.seconds).c_str(),
                       100 * (rival.seconds / seconds - 1), rt::bytesText(rival.bytes).c_str());
    if (rival.bytes > room) {
      os << ", more than the " << rt::bytesText(room) << " there are";
    } else if (rival.seconds < seconds) {
      os << ", faster than the plan: pin it to have that";
    }
    os << '\n';
  }
}

llvm::Error weft::refusePlan(const PlanFacts &facts, const rt::Programs &programs,
                             const desc::MachineSpec &machine) {
  const rt::Program &program = cost::largestOf(programs);
  std::string least = rt::bytesText(program.deviceBytes());
  std::string parts = program.microBatches > 1
                          ? ", in " + std::to_string(program.microBatches) + " micro-batches,"
                          : "";
  return makeError(
      "nothing that was found fits into the " +
      rt::bytesText(uint64_t(machine.device.memoryBytes)) + " of a device '" + machine.device.name +
      "': the " +
      (facts.search.fits ? "fastest plan whose variables and saved values fit" : "smallest plan") +
      parts + " needs " + least + ", as above; split it over more ranks, " +
      (facts.plan.activations.empty() ? "make the batch smaller, or recompute activations"
                                      : "or make the batch smaller"));
}
