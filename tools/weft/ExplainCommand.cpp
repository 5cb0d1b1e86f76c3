//===- ExplainCommand.cpp - where time goes, and why values lie so --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "weft/Driver/Compilation.h"
#include "weft/Driver/KernelReport.h"
#include "weft/Driver/ProfiledRun.h"
#include "weft/Driver/ProgramFile.h"
#include "weft/Driver/Progress.h"
#include "weft/Driver/ValueReport.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace weft;

namespace {

struct ExplainOptions {
  /// A program's file, or the name of a value.
  std::string what;
  std::string profile;
  bool kernels = false, json = false;
  int64_t steps = 5;
  std::string threads;
  /// Of a value.
  CompileOptions compile;
  int64_t most = 12;
};

void declareKernelOptions(CommandLine &line, ExplainOptions &options) {
  line.addSwitch("--kernels",
                 "list PROGRAM's kernels, products and collectives, the slowest first: bytes,\n"
                 "operations, measured time, share of the machine's peak, predicted time",
                 options.kernels);
  line.addText("--profile", "FILE", "do not run PROGRAM, take what it wrote by --profile",
               options.profile);
  line.addNumber("--steps", "N", "steps to run; the first is not counted (default: 5)", 2, 1000000,
                 options.steps);
  line.addText("--threads", "N", "threads of each rank (default: as PROGRAM chooses)",
               options.threads);
  line.addSwitch("--json", "print a JSON object instead of a table", options.json);
}

void declareValueOptions(CommandLine &line, ExplainOptions &options) {
  CompileOptions &compile = options.compile;
  line.addText("--model", "FILE", "the model that VALUE belongs to", compile.input);
  declarePlanningOptions(line, compile);
  line.addNumber("--most", "N", "price at most so many other ways (default: 12)", 1, 1000000,
                 options.most);
}

CommandLine declare(ExplainOptions &options) {
  CommandLine line(
      "weft explain PROGRAM --kernels [options]\n"
      "       weft explain VALUE --model FILE --machine FILE [options]",
      "Says where the time of PROGRAM goes, which 'weft compile' made. Runs some steps of "
      "it on\nmade-up tokens or images, unless a profile of a run is there.\n\n"
      "Or says why VALUE, a parameter or the result of an op of a model, is split as it is, and "
      "what\na step would take if it were split in other ways. Names are those of plans: "
      "mlp.up.weight,\nmlp.up/contract/1; '*' stands for any characters.");
  declareKernelOptions(line, options);
  declareValueOptions(line, options);
  line.addPositional("PROGRAM or VALUE", options.what);
  return line;
}

llvm::Error refuseOthers(const CommandLine &line, llvm::StringRef with,
                         llvm::ArrayRef<llvm::StringRef> others) {
  for (llvm::StringRef name : others) {
    if (line.wasGiven(name)) {
      return makeError("option '" + name + "' has no effect with " + with);
    }
  }
  return llvm::Error::success();
}

llvm::Error checkKernels(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = refuseOthers(line, "--kernels",
                                       {"--model", "--machine", "--nodes", "--recipe", "--seq-len",
                                        "--global-batch", "--target", "--wide-products", "--mesh",
                                        "--pin", "--plan", "--most", "-v"})) {
    return error;
  }
  return options.profile.empty() ? llvm::Error::success()
                                 : refuseOthers(line, "--profile", {"--steps", "--threads"});
}

llvm::Error checkValue(const CommandLine &line, const CompileOptions &options) {
  if (llvm::Error error =
          refuseOthers(line, "--model", {"--profile", "--steps", "--threads", "--json"})) {
    return error;
  }
  return checkPlanningOptions(options);
}

/// The answer to `question` where the search leaves `reserve` bytes of a device's memory.
llvm::Expected<ValueQuestion> answer(ValueQuestion question, const CompileOptions &options,
                                     const Descriptions &descriptions, int64_t reserve) {
  Compilation compilation(options, descriptions);
  compilation.leave(reserve);
  compilation.ask(question);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    return question.names.empty() ? makeSilentError() : refuseName(question);
  }
  return question;
}

/// Answers `question` of the plan that `weft compile` ends with.
llvm::Error ask(const ValueQuestion &question, const CompileOptions &options,
                const Descriptions &descriptions) {
  // Mostly that plan is the one that is found first, and a wrong name is told of at once.
  auto answered = answer(question, options, descriptions, /*reserve=*/0);
  if (!answered) {
    return answered.takeError();
  }
  llvm::FailureOr<int64_t> reserve = findReserve(options, descriptions);
  if (failed(reserve)) {
    return makeSilentError();
  }
  if (*reserve > 0) {
    answered = answer(question, options, descriptions, *reserve);
    if (!answered) {
      return answered.takeError();
    }
  }
  printValueReport(llvm::outs(), *answered, descriptions.machine, *reserve);
  return llvm::Error::success();
}

llvm::Error explainValue(ExplainOptions &options) {
  CompileOptions &compile = options.compile;
  compile.command = "explain";
  compile.stopAfter = Phase::Plan;
  std::optional<Descriptions> descriptions = readDescriptions(compile);
  if (!descriptions) {
    return makeSilentError();
  }
  ValueQuestion question;
  question.name = options.what;
  question.most = size_t(options.most);
  if (wantsProgress(compile.verbose)) {
    question.progress = [](size_t number, size_t all) {
      llvm::errs() << "way " << number << " of " << all << '\n';
    };
  }
  return ask(question, compile, *descriptions);
}

llvm::Error explainKernels(const ExplainOptions &options) {
  auto program = readProgramOf(options.what);
  if (!program) {
    return program.takeError();
  }
  TemporaryFile written;
  std::string path = options.profile;
  if (path.empty()) {
    if (llvm::Error error = written.create("json")) {
      return error;
    }
    path = written.getPath();
    if (llvm::Error error =
            profileProgram(options.what, *program, options.steps, options.threads, path)) {
      return error;
    }
  }
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    return makeError("cannot read '" + path + "': " + file.getError().message());
  }
  auto report = readProfile((*file)->getBuffer(), path);
  if (!report) {
    return report.takeError();
  }
  if (report->planHash != program->planHash) {
    return makeError("'" + path + "' is a profile of plan " + report->planHash + ", but '" +
                     options.what + "' follows plan " + program->planHash);
  }
  (options.json ? printJson : printTable)(llvm::outs(), *report);
  return llvm::Error::success();
}

llvm::Error run(const CommandLine &line, ExplainOptions &options) {
  bool isValue = !options.compile.input.empty();
  if (!options.kernels && !isValue) {
    return makeError("expected --kernels, for what a program spends its time on, or --model FILE, "
                     "for why a value of that is split as it is");
  }
  if (llvm::Error error =
          options.kernels ? checkKernels(line, options) : checkValue(line, options.compile)) {
    return error;
  }
  return options.kernels ? explainKernels(options) : explainValue(options);
}

} // namespace

int weft::explainCommand(llvm::ArrayRef<const char *> arguments) {
  ExplainOptions options;
  CommandLine line = declare(options);
  return line.run("explain", arguments, [&] { return run(line, options); });
}
