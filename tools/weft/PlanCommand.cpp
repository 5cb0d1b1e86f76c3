//===- PlanCommand.cpp - how a model is best split on a machine -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "weft/Driver/Compilation.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/PlanReport.h"

#include "core/Text.h"
#include "weft/Cost/PredictProgram.h"
#include "weft/Planner/ReviewPlan.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

using namespace weft;

namespace {

struct PlanOptions {
  CompileOptions compile;
  bool alone = false;
};

CommandLine declare(PlanOptions &options) {
  CompileOptions &compile = options.compile;
  CommandLine line("weft plan MODEL --machine FILE [options]",
                   "Says how MODEL is best split on a machine that need not be there: what that is "
                   "called, the\npredicted time of a step and the memory of a rank, and what known "
                   "strategies lose to it.\nIf nothing that was found fits into memory, the exit "
                   "status is 1.");
  line.addPositional("MODEL", compile.input);
  declarePlanningOptions(line, compile);
  line.addSwitch("--alone", "do not search for what known strategies take", options.alone);
  line.addText("--output", "FILE", "write the plan into FILE, for 'weft compile --plan'",
               compile.output);
  return line;
}

/// The same machine with the most memory that a description may have.
desc::MachineSpec withoutMemoryLimit(const desc::MachineSpec &machine) {
  std::string text =
      llvm::Regex("memory_bytes: *[0-9]+").sub("memory_bytes: 1125899906842624", machine.text);
  desc::Result<desc::MachineSpec> roomy = desc::parseMachine(text);
  return roomy ? *roomy : machine;
}

/// Where a strategy does not fit, what it would take is told as well: so it is looked for without a
/// limit.
Rival priceRival(const CompileOptions &options, Descriptions descriptions,
                 const desc::Strategy &strategy) {
  Rival rival{strategy.name, "", {}};
  descriptions.plan = strategy.plan;
  planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                   descriptions.machine, descriptions.plan);
  if (!review.errors.empty()) {
    rival.illegal = review.errors.front().message;
    return rival;
  }
  double room = double(descriptions.machine.device.memoryBytes);
  descriptions.machine = withoutMemoryLimit(descriptions.machine);
  CompileOptions shorter = options;
  shorter.stopAfter = Phase::Plan;
  Compilation compilation(shorter, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    rival.illegal = "see above";
    return rival;
  }
  rival.search = compilation.getPlanFacts().search;
  rival.search.fits = rival.search.bytes <= room;
  return rival;
}

/// Two, four, ... times as many micro-batches, until what is found fits: "; --pin accumulation=4
/// takes 60 GiB and 1.200 s a step". Empty where that does not help.
std::string adviseAccumulation(const CompileOptions &options, Descriptions descriptions) {
  for (int64_t &count = descriptions.plan.accumulation *= 2;
       count <= descriptions.recipe.globalBatch; count *= 2) {
    planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                     descriptions.machine, descriptions.plan);
    if (!review.errors.empty()) {
      return "";
    }
    Compilation compilation(options, descriptions);
    if (failed(compilation.begin()) || failed(compilation.runPhases())) {
      return "";
    }
    const rt::Program &program = compilation.getProgram();
    if (compilation.fits()) {
      return llvm::formatv("; with --pin accumulation={0} it takes {1} and {2:F3} s a step", count,
                           rt::bytesText(program.deviceBytes()), cost::stepSeconds(program));
    }
  }
  return "";
}

/// What needs the memory of the smallest plan that was found.
llvm::Error refuse(const PlanFacts &facts, const rt::Program &program,
                   const desc::MachineSpec &machine, const std::string &advice) {
  std::string least = rt::bytesText(program.deviceBytes());
  return makeError(
      "nothing that was found fits into the " +
      rt::bytesText(uint64_t(machine.device.memoryBytes)) + " of a device '" + machine.device.name +
      "': the " +
      (facts.search.fits ? "fastest plan whose variables and saved values fit" : "smallest plan") +
      " needs " + least +
      ", as above; split it over more ranks, or make the batch "
      "smaller" +
      advice);
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
  const rt::Program &program = compilation.getProgram();
  printPlanReport(llvm::outs(), facts, program, *descriptions);
  // What is told first is seen first, also where others take a while or errors follow.
  llvm::outs().flush();
  if (!options.alone) {
    std::vector<Rival> rivals;
    for (const desc::Strategy &strategy : desc::knownStrategies(facts.plan)) {
      rivals.push_back(priceRival(compile, *descriptions, strategy));
    }
    printRivals(llvm::outs(), facts, rivals, descriptions->machine);
    llvm::outs().flush();
  }
  if (!compilation.fits()) {
    std::string advice = options.alone ? "" : adviseAccumulation(compile, *descriptions);
    return refuse(facts, program, descriptions->machine, advice);
  }
  if (!file) {
    return llvm::Error::success();
  }
  if (llvm::Error error = file->write(program.planText)) {
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
