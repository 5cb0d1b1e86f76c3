//===- ProgramToText.cpp - from a scheduled module to its table -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "weft/InitAll.h"
#include "weft/Pipeline/ModuleSizes.h"
#include "weft/Pipeline/Schedule/BuildProgram.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace weft;

namespace {

/// The options beside --program-to-text.
struct ProgramOptions {
  llvm::cl::list<std::string> steps{
      "program-steps", llvm::cl::CommaSeparated,
      llvm::cl::desc("steps that --program-to-text takes after flatten: " + stepNames()),
      llvm::cl::value_desc("names")};
  llvm::cl::opt<std::string> machine{
      "machine", llvm::cl::desc("machine that the steps of --program-steps read"),
      llvm::cl::value_desc("file")};
  llvm::cl::opt<double> stepFlops{"step-flops",
                                  llvm::cl::desc("operations that the model asks for in a step"),
                                  llvm::cl::value_desc("number"), llvm::cl::init(0)};
  llvm::cl::opt<bool> times{
      "program-times", llvm::cl::desc("print the predicted times of instructions behind the table"),
      llvm::cl::init(false)};

  static const std::string &stepNames() {
    static const std::string names = llvm::join(
        llvm::map_range(programSteps(), [](const ProgramStep &step) { return step.name.str(); }),
        ", ");
    return names;
  }
};

ProgramInfo describe(ModuleOp module, const ProgramOptions &options) {
  ModuleSizes sizes = sizesOf(module);
  ProgramInfo info;
  info.modelName = module.getSymName().value_or("").str();
  info.globalBatch = sizes.batch;
  info.microBatches = sizes.microBatches;
  info.sequenceLength = sizes.sequence;
  info.vocabulary = sizes.vocabulary;
  info.stepFlops = options.stepFlops;
  if (module.lookupSymbol("document_starts")) {
    info.documentEnd = 0; // Which token it is, only the recipe says.
  }
  return info;
}

/// Runs the steps that the options name, in the order in which they stand there.
LogicalResult runSteps(rt::Program &program, ModuleOp module, const ProgramOptions &options) {
  if (options.steps.empty()) {
    return success();
  }
  if (options.machine.empty()) {
    llvm::errs() << "expected --machine=FILE beside --program-steps\n";
    return failure();
  }
  auto machine = desc::loadMachine(options.machine);
  if (!machine) {
    llvm::errs() << desc::str(machine.diagnostics());
    return failure();
  }
  if (program.rankCount() > machine->devices()) {
    llvm::errs() << "the program is for " << program.rankCount() << " ranks, but machine '"
                 << machine->name << "' has " << machine->devices() << " "
                 << (machine->devices() == 1 ? "device\n" : "devices\n");
    return failure();
  }
  for (const std::string &name : options.steps) {
    auto step =
        llvm::find_if(programSteps(), [&](const ProgramStep &known) { return known.name == name; });
    if (step == programSteps().end()) {
      llvm::errs() << "unknown step '" << name << "', expected one of "
                   << ProgramOptions::stepNames() << '\n';
      return failure();
    }
    if (failed(step->run(program, {module, *machine}))) {
      return failure();
    }
  }
  return success();
}

/// A line for each instruction of each body: "step 3: 1.250 us".
void printTimes(llvm::raw_ostream &os, const rt::Program &program) {
  os << "times:\n";
  for (const auto &[name, instructions] : program.bodies) {
    for (auto [number, instruction] : llvm::enumerate(instructions)) {
      os << "  " << name << ' ' << number << ": "
         << llvm::format("%.3f us\n", 1e6 * instruction.cost.seconds);
    }
  }
}

} // namespace

void weft::registerProgramTranslation() {
  static ProgramOptions options;
  TranslateFromMLIRRegistration registration(
      "program-to-text", "module after the phase schedule to the text of its program",
      [](ModuleOp module, llvm::raw_ostream &output) -> LogicalResult {
        FailureOr<rt::Program> flat = flatten(module, describe(module, options));
        if (failed(flat) || failed(runSteps(*flat, module, options))) {
          return failure();
        }
        rt::Programs programs = {std::move(*flat)};
        if (failed(certifyPrograms(module, programs))) {
          return failure();
        }
        output << rt::toText(programs.front());
        if (options.times) {
          printTimes(output, programs.front());
        }
        return success();
      },
      registerAllWeft);
}
