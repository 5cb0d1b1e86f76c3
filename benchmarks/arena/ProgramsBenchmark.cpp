//===- ProgramsBenchmark.cpp - arenas of real programs, and the time to pack them ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans models for 8 to 1,024 devices, and prints for each program how much its arenas are larger
// than what is in use at the peak, and the processor time to pack the tables of one class.
// Exits with 1 if one is above the target.
//
//===----------------------------------------------------------------------===//

#include "report/MemoryReport.h"
#include "support/Text.h"
#include "weft/Driver/Compilation.h"
#include "weft/Driver/Descriptions.h"
#include "weft/Driver/Report.h"
#include "weft/Schedule/Lifetimes.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>
#include <string_view>

using namespace weft;

namespace {

/// Targets for a rank class.
constexpr double kMostGap = 0.01, kMostSeconds = 0.15;

struct Case {
  /// A folder of the source with a model and its recipe.
  const char *folder;
  int64_t nodes;
  const char *pins;
};

/// From GPT-2 to 405B, in 1 to 256 micro-batches.
constexpr Case kCases[] = {
    {"examples/gpt2-124m", 1, "dp=8"},
    {"examples/gpt2-124m", 1, "pp=2,dp=4,accumulation=8"},
    {"examples/gpt2-124m", 1, "pp=4,dp=2,accumulation=16,schedule=gpipe"},
    {"examples/llama-160m", 1, "dp=8,accumulation=4"},
    {"examples/llama-160m", 1, "pp=4,dp=2,accumulation=16"},
    {"examples/llama-160m", 1, "pp=4,chunks=2,dp=2,accumulation=8"},
    {"benchmarks/llama-1b", 1, "pp=4,chunks=2,dp=2,accumulation=2"},
    {"examples/llama3-8b", 1, "dp=8,zero=3,accumulation=64"},
    {"examples/llama3-8b", 1, "tp=8,sp=true,accumulation=16"},
    {"examples/llama3-8b", 1, "pp=2,tp=2,sp=true,dp=2,zero=1,accumulation=16"},
    {"examples/llama3-8b", 1, "pp=4,chunks=2,dp=2,zero=1,accumulation=32"},
    {"examples/llama3-8b", 1, "pp=4,dp=2,zero=1,accumulation=32,recompute=full"},
    {"examples/llama3-8b", 1, "pp=8,accumulation=64,recompute=full"},
    {"examples/mixtral-8x7b", 4, "pp=4,ep=8,accumulation=16,recompute=full"},
    {"examples/llama3-70b", 8, "pp=8,tp=8,sp=true,accumulation=64,recompute=full"},
    {"benchmarks/llama3-405b", 128,
     "pp=16,chunks=2,tp=8,sp=true,dp=8,zero=1,accumulation=256,recompute=none"},
};

double processorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// The least time of three: the same work takes longer while others use the processor's caches.
double measurePacking(const rt::Program &program) {
  double least = 0;
  for (int times = 0; times < 3; ++times) {
    rt::Program packed = program;
    const double begin = processorSeconds();
    schedule::packArena(packed);
    const double seconds = processorSeconds() - begin;
    least = times == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

/// What is worst in a program, and its class with the largest gap.
struct Result {
  ArenaReport arena;
  uint32_t rankClass = 0;
  double seconds = 0;
};

Result measure(const rt::Programs &programs) {
  Result result;
  for (const rt::Program &program : programs) {
    const ArenaReport arena = reportArena(program);
    if (program.rankClass == 0 || arena.gap() > result.arena.gap()) {
      result.arena = arena;
      result.rankClass = program.rankClass;
    }
    result.seconds = std::max(result.seconds, measurePacking(program));
  }
  return result;
}

/// Returns nothing after an error, which is then printed.
std::optional<rt::Programs> plan(const Case &one) {
  const std::string root = WEFT_SOURCE, folder = root + "/" + one.folder + "/";
  CompileOptions options;
  options.input = folder + "model.textproto";
  options.recipe = folder + "recipe.textproto";
  options.machine = root + "/machines/h100-8.textproto";
  options.nodes = one.nodes;
  options.pins = {one.pins};
  options.target = TargetKind::Cuda;
  options.stopAfter = Phase::Schedule;
  options.isPlanning = true;
  std::optional<Descriptions> descriptions = readDescriptions(options);
  if (!descriptions) {
    return std::nullopt;
  }
  descriptions->machine.device.memoryBytes = int64_t(1) << 50; // No plan is refused.
  Compilation compilation(options, *descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    return std::nullopt;
  }
  return compilation.getPrograms();
}

/// Returns false if the program misses a target.
bool report(const Case &one) {
  std::optional<rt::Programs> programs = plan(one);
  if (!programs) {
    return false;
  }
  const auto [arena, rankClass, seconds] = measure(*programs);
  const bool isGood = arena.gap() <= kMostGap && seconds <= kMostSeconds;
  llvm::outs() << "| " << llvm::StringRef(one.folder).rsplit('/').second << " | " << one.pins
               << " | " << programs->size() << " | " << rt::bytesText(arena.bytes) << " | "
               << llvm::format("%.2f", 100 * arena.gap()) << " | " << rankClass << " | "
               << llvm::format("%.0f", 1e3 * seconds) << " | " << (isGood ? "pass" : "fail")
               << " |\n";
  llvm::outs().flush();
  return isGood;
}

} // namespace

/// With an argument: only the cases whose folder and pins contain it.
int main(int count, char **words) {
  const std::string_view wanted = count > 1 ? words[1] : "";
  llvm::outs() << "| model | pins | classes | arena | gap, % | of class | packing, ms | |\n"
               << "|---|---|---|---|---|---|---|---|\n";
  bool areGood = true;
  for (const Case &one : kCases) {
    const std::string name = std::string(one.folder) + " " + one.pins;
    areGood &= name.find(wanted) == std::string::npos || report(one);
  }
  return areGood ? 0 : 1;
}
