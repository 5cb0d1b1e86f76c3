//===- PlanCommand.cpp - finds the fastest plan of a model ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/OutputFile.h"
#include "weft/Driver/PlanReport.h"

using namespace weft;

namespace {

struct PlanOptions {
  CompileOptions compile;
  bool alone = false;
};

CommandLine declare(PlanOptions &options) {
  CompileOptions &compile = options.compile;
  CommandLine line(
      "weft plan MODEL --machine FILE [options]",
      "Finds the fastest plan of MODEL on a machine that you need not have. Prints the "
      "plan's\nstrategies, the predicted time of a step and memory of a rank, and how "
      "much slower known\nstrategies are. The exit status is 1 if no plan fits into "
      "memory.");
  line.addPositional("MODEL", compile.input);
  declarePlanningOptions(line, compile);
  line.addSwitch("--alone", "do not compare with known strategies", options.alone);
  line.addText("--output", "FILE", "write the plan into FILE, for 'weft compile --plan'",
               compile.output);
  return line;
}

llvm::Error plan(PlanOptions &options) {
  CompileOptions &compile = options.compile;
  if (llvm::Error error = checkPlanningOptions(compile)) {
    return error;
  }
  compile.command = "plan";
  compile.isPlanning = true;
  compile.stopAfter = Phase::Schedule;
  std::optional<OutputFile> file;
  if (!compile.output.empty()) {
    auto created = OutputFile::create(compile.output);
    if (!created) {
      return created.takeError();
    }
    file.emplace(std::move(*created));
  }
  std::optional<Descriptions> descriptions = readDescriptions(compile);
  if (!descriptions) {
    return makeSilentError();
  }
  Compilation compilation(compile, *descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    return makeSilentError();
  }
  const PlanFacts &facts = compilation.getPlanFacts();
  const rt::Programs &programs = compilation.getPrograms();
  printPlanReport(llvm::outs(), facts, programs, *descriptions);
  // Flushed, so that the user sees the plan before comparisons or errors that take a while.
  llvm::outs().flush();
  if (!options.alone) {
    std::vector<Rival> rivals;
    for (const desc::Strategy &strategy : desc::knownStrategies(facts.plan)) {
      rivals.push_back(priceRival(compile, *descriptions, strategy));
    }
    printRivals(llvm::outs(), programs, rivals, descriptions->machine);
    printSchedules(llvm::outs(), facts);
    llvm::outs().flush();
  }
  if (!compilation.fits()) {
    return refusePlan(facts, programs, descriptions->machine);
  }
  if (!file) {
    return llvm::Error::success();
  }
  if (llvm::Error error = file->write(programs.front().planText)) {
    return error;
  }
  return file->commit();
}

} // namespace

int weft::planCommand(llvm::ArrayRef<const char *> arguments) {
  PlanOptions options;
  CommandLine line = declare(options);
  return line.run("plan", arguments, [&] { return plan(options); });
}
