//===- Report.cpp - prints the results of a compilation -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Report.h"

#include "report/MemoryReport.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"
#include "weft/Cost/PredictProgram.h"
#include "weft/Mesh/MeshParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace weft;

std::string weft::meshText(const rt::Program &program) {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const rt::Axis &axis : program.mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  std::string stages =
      program.rankClasses > 1 ? std::to_string(program.rankClasses) + " stages" : "";
  if (names.empty()) {
    return stages;
  }
  return stages + (stages.empty() ? "mesh " : " of mesh ") +
         MeshParts(std::move(names), std::move(sizes)).text();
}

std::string weft::secondsText(double seconds) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  bool isLong = seconds >= 1;
  stream << llvm::format(isLong ? "%.3f s" : "%.3f ms", isLong ? seconds : 1e3 * seconds);
  return text;
}

std::string weft::waitingText(std::span<const rt::Program> programs, double seconds) {
  std::string text;
  if (programs.size() > 1) {
    llvm::raw_string_ostream(text)
        << llvm::format(", stages wait for others for %.1f %%",
                        100 * cost::pipelineTimes(programs, seconds).bubble());
  }
  return text;
}

ArenaReport weft::reportArena(const rt::Program &program) {
  return {rt::memoryPeak(program).use.aligned, program.arenaBytes};
}

std::string weft::arenaText(const ArenaReport &arena) {
  std::string text;
  llvm::raw_string_ostream(text) << "arena " << rt::bytesText(arena.bytes) << ", at least "
                                 << rt::bytesText(arena.bound)
                                 << llvm::format(", gap %.2f %%", 100 * arena.gap());
  return text;
}

std::string weft::ranksText(const rt::Program &program) {
  auto [first, count] = program.ranks();
  std::string stage =
      program.rankClasses > 1 ? "stage " + std::to_string(program.rankClass) + ", " : "";
  return stage + (count == 1 ? "rank " + std::to_string(first)
                             : "ranks " + std::to_string(first) + " to " +
                                   std::to_string(first + count - 1));
}

namespace {

/// "4 ranks, mesh dp=2 tp=2" or "1 rank".
void printRanks(llvm::raw_ostream &os, const rt::Program &program) {
  int64_t ranks = program.rankCount();
  os << ranks << (ranks == 1 ? " rank" : " ranks");
  std::string mesh = meshText(program);
  os << (mesh.empty() ? "" : ", ") << mesh;
}

/// Prints the memory of the buffers into which tokens are dispatched, if there are any.
void printSlots(llvm::raw_ostream &os, const rt::Program &program) {
  uint64_t bytes = 0;
  for (const rt::Instruction &instruction : rt::Expansion(program, program.step)) {
    if (instruction.opcode == rt::Opcode::Kernel &&
        program.kernels[instruction.target].kind == "dispatch") {
      bytes = std::max(bytes, program.buffers[instruction.operands.back().buffer].bytes);
    }
  }
  if (bytes == 0) {
    return;
  }
  os << "slots of experts: " << rt::bytesText(bytes) << " in a layer";
  auto bounded = llvm::find_if(program.observations,
                               [](const rt::Observation &observed) { return observed.limit > 0; });
  if (bounded != program.observations.end()) {
    os << llvm::format(", for %g tokens of a sequence at each expert, %.3g times the mean",
                       bounded->limit, bounded->limit / bounded->mean);
  }
  os << '\n';
}

/// Prints how much code came from the cache.
void printCode(llvm::raw_ostream &os, const EmitReport &emitted) {
  os << "code of " << emitted.distinct << " different kernels";
  if (emitted.reused > 0) {
    os << ", " << emitted.reused << " of them from the cache"
       << llvm::format(", which saved %.1f s", emitted.cache.savedSeconds);
  }
  os << '\n';
}

} // namespace

/// Returns the number of instructions of a step beside computation.
static int64_t countBeside(const rt::Program &program) {
  return llvm::count_if(
      rt::Expansion(program, program.step),
      [](const rt::Instruction &instruction) { return instruction.stream != rt::Stream::Compute; });
}

/// Prints the memory and the instructions of a rank of one class.
static void printRank(llvm::raw_ostream &os, const rt::Program &program) {
  os << rt::memoryReport(program);
  printSlots(os, program);
  os << arenaText(reportArena(program)) << '\n';
  auto isCollective = [](const rt::Instruction &instruction) {
    return instruction.opcode == rt::Opcode::Collective;
  };
  rt::Expansion step(program, program.step);
  if (program.rankClasses == 1) {
    os << program.kernels.size() << " kernels, ";
  }
  os << step.size() << " instructions a step, " << llvm::count_if(step, isCollective)
     << " of them collectives";
  auto beside = countBeside(program);
  os << (beside > 0 ? ", " + std::to_string(beside) + " beside computation\n" : "\n");
}

void weft::printReport(llvm::raw_ostream &os, const CompileReport &report, llvm::StringRef path) {
  const rt::Program &first = report.programs.front();
  os << path << ": " << first.modelName << " for ";
  printRanks(os, first);
  os << ", plan " << first.planHash << '\n';
  for (const rt::Program &program : report.programs) {
    printRank(os, program);
  }
  const double seconds = cost::stepSeconds(report.programs);
  os << llvm::format("predicted: %.3f ms a step", 1e3 * seconds);
  if (report.programs.size() == 1 && countBeside(first) > 0) {
    os << llvm::format(", %.3f ms one after another", 1e3 * cost::serialSeconds(first));
  }
  os << waitingText(report.programs, seconds) << '\n';
  printCode(os, report.emitted);
  os << llvm::format("compiled in %.1f s\n", report.seconds);
}
