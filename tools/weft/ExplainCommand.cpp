//===- ExplainCommand.cpp - times of kernels, and reasons for shardings ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/KernelReport.h"
#include "weft/Driver/MemoryReport.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/ProfiledRun.h"
#include "weft/Driver/ProgramFile.h"
#include "weft/Driver/Progress.h"
#include "weft/Driver/ScheduleReport.h"
#include "weft/Driver/TimeLineReport.h"
#include "weft/Driver/ValueReport.h"

using namespace weft;

namespace {

struct ExplainOptions {
  /// A program's file, or the name of a value.
  std::string what;
  std::string profile, svg;
  bool kernels = false, schedule = false, memory = false, json = false;
  int64_t steps = 5;
  std::string threads;
  TimeLineRequest timeLine;
  /// Of a value.
  CompileOptions compile;
  int64_t most = 12;
};

void declareKernelOptions(CommandLine &line, ExplainOptions &options) {
  line.addSwitch("--kernels",
                 "list PROGRAM's kernels, matmuls and collectives, the slowest first: bytes,\n"
                 "operations, measured time, share of the machine's peak, predicted time",
                 options.kernels);
  line.addText("--profile", "FILE", "do not run PROGRAM, read the file of its option --profile",
               options.profile);
  line.addNumber("--steps", "N", "steps to run; the first is not counted (default: 5)", 2, 1000000,
                 options.steps);
  line.addText("--threads", "N", "threads of each rank (default: PROGRAM's own default)",
               options.threads);
  line.addSwitch("--json", "print a JSON object instead of a table", options.json);
}

void declareCourseOptions(CommandLine &line, ExplainOptions &options) {
  line.addSwitch("--schedule",
                 "draw what each pipeline stage of PROGRAM does when in a step, as predicted, and\n"
                 "how long stages wait for each other",
                 options.schedule);
  line.addSwitch(
      "--memory",
      "explain the memory of each rank of PROGRAM: where in the program its peak is, the\n"
      "largest buffers in use there, and what else the arena takes",
      options.memory);
  line.addText("--svg", "FILE",
               "also draw the schedule, or the bytes in use over a step, as an SVG file",
               options.svg);
}

void declareTimeLineOptions(CommandLine &line, TimeLineRequest &request) {
  line.addText("--timeline", "FILE",
               "write the predicted course of a step to FILE, as a trace that Perfetto\n"
               "(ui.perfetto.dev) shows; 'PROGRAM --timeline FILE' writes a measured one",
               request.file);
  line.addText("--timeline-ranks", "RANKS",
               "its ranks, such as 0,4-7 (default: the first of each pipeline stage)",
               request.ranks);
  Option detail;
  detail.name = "--timeline-detail";
  detail.valueName = "DETAIL";
  detail.help = "instructions, or only actions and where ranks wait (default: instructions)";
  detail.set = [&request](llvm::StringRef value) -> llvm::Error {
    if (value != "instructions" && value != "actions") {
      return makeError("option '--timeline-detail' expects instructions or actions, got '" + value +
                       "'");
    }
    request.detail = value;
    return llvm::Error::success();
  };
  line.add(std::move(detail));
}

void declareValueOptions(CommandLine &line, ExplainOptions &options) {
  CompileOptions &compile = options.compile;
  line.addText("--model", "FILE", "the model that VALUE belongs to", compile.input);
  declarePlanningOptions(line, compile);
  line.addNumber("--most", "N", "price at most N other ways (default: 12)", 1, 1000000,
                 options.most);
}

CommandLine declare(ExplainOptions &options) {
  CommandLine line(
      "weft explain PROGRAM --kernels [options]\n"
      "       weft explain PROGRAM --schedule [--svg FILE]\n"
      "       weft explain PROGRAM --memory [--svg FILE]\n"
      "       weft explain PROGRAM --timeline FILE [options]\n"
      "       weft explain VALUE --model FILE --machine FILE [options]",
      "Lists the times of the kernels of PROGRAM, which 'weft compile' made. Runs some steps "
      "on\nmade-up tokens or images, unless a profile of a run is given. Or draws PROGRAM's "
      "schedule,\nexplains its memory, or writes the course of a step to a file.\n\n"
      "Or explains how VALUE, a parameter or the result of an op of a model, is split, and "
      "predicts\nthe time of a step if VALUE were split in other ways. Names are those of plans: "
      "mlp.up.weight,\nmlp.up/contract/1; '*' stands for any characters.");
  declareKernelOptions(line, options);
  declareCourseOptions(line, options);
  declareTimeLineOptions(line, options.timeLine);
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

/// Options of values, and of plans.
constexpr llvm::StringRef kValueOptions[] = {
    "--model",  "--machine",      "--nodes", "--recipe", "--seq-len", "--global-batch",
    "--target", "--wide-matmuls", "--mesh",  "--pin",    "--plan",    "--most",
    "-v"};

constexpr llvm::StringRef kTimeLineOptions[] = {"--timeline", "--timeline-ranks",
                                                "--timeline-detail"};

llvm::Error checkKernels(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = refuseOthers(line, "--kernels", kValueOptions)) {
    return error;
  }
  if (llvm::Error error = refuseOthers(line, "--kernels", {"--svg"})) {
    return error;
  }
  return options.profile.empty() ? llvm::Error::success()
                                 : refuseOthers(line, "--profile", {"--steps", "--threads"});
}

/// Checks the options beside `with`, which is --schedule, --memory or --timeline.
llvm::Error checkCourse(const CommandLine &line, llvm::StringRef with) {
  if (llvm::Error error = refuseOthers(line, with, kValueOptions)) {
    return error;
  }
  if (with != "--timeline") {
    if (llvm::Error error = refuseOthers(line, with, kTimeLineOptions)) {
      return error;
    }
  }
  return refuseOthers(line, with, {"--kernels", "--profile", "--steps", "--threads", "--json"});
}

llvm::Error checkValue(const CommandLine &line, const CompileOptions &options) {
  if (llvm::Error error =
          refuseOthers(line, "--model", {"--profile", "--steps", "--threads", "--json", "--svg"})) {
    return error;
  }
  return checkPlanningOptions(options);
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
  auto explained = explainValue(question, compile, *descriptions);
  if (!explained) {
    return explained.takeError();
  }
  printValueReport(llvm::outs(), *explained, descriptions->machine);
  return llvm::Error::success();
}

llvm::Error explainKernels(const ExplainOptions &options) {
  auto reports = options.profile.empty()
                     ? reportKernels(options.what, options.steps, options.threads)
                     : readKernelReports(options.what, options.profile);
  if (!reports) {
    return reports.takeError();
  }
  (options.json ? printJson : printTable)(llvm::outs(), *reports);
  return llvm::Error::success();
}

using Printer = llvm::function_ref<void(llvm::raw_ostream &)>;

/// Prints by `print`, and draws by `draw` if a file is asked for.
llvm::Error printAndDraw(const ExplainOptions &options, Printer print, Printer draw) {
  if (!options.svg.empty()) {
    llvm::Expected<OutputFile> file = OutputFile::create(options.svg);
    if (!file) {
      return file.takeError();
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    draw(stream);
    if (llvm::Error error = file->write(text)) {
      return error;
    }
    if (llvm::Error error = file->commit()) {
      return error;
    }
  }
  print(llvm::outs());
  return llvm::Error::success();
}

llvm::Error explainSchedule(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = checkCourse(line, "--schedule")) {
    return error;
  }
  if (llvm::Error error = refuseOthers(line, "--schedule", {"--memory"})) {
    return error;
  }
  llvm::Expected<rt::Programs> programs = readProgramsOf(options.what);
  if (!programs) {
    return programs.takeError();
  }
  const ScheduleReport report(*programs);
  return printAndDraw(
      options, [&](llvm::raw_ostream &os) { report.print(os); },
      [&](llvm::raw_ostream &os) { report.draw(os); });
}

llvm::Error explainMemory(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = checkCourse(line, "--memory")) {
    return error;
  }
  llvm::Expected<rt::Programs> programs = readProgramsOf(options.what);
  if (!programs) {
    return programs.takeError();
  }
  return printAndDraw(
      options, [&](llvm::raw_ostream &os) { printMemory(os, *programs); },
      [&](llvm::raw_ostream &os) { drawMemory(os, *programs); });
}

llvm::Error explainTimeLine(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = checkCourse(line, "--timeline")) {
    return error;
  }
  if (llvm::Error error = refuseOthers(line, "--timeline", {"--svg"})) {
    return error;
  }
  llvm::Expected<rt::Programs> programs = readProgramsOf(options.what);
  return programs ? writeTimeLine(llvm::outs(), *programs, options.timeLine) : programs.takeError();
}

llvm::Error checkTimeLine(const CommandLine &line) {
  for (llvm::StringRef name : {"--timeline-ranks", "--timeline-detail"}) {
    if (line.wasGiven(name)) {
      return makeError("option '" + name + "' has no effect without --timeline");
    }
  }
  return llvm::Error::success();
}

llvm::Error run(const CommandLine &line, ExplainOptions &options) {
  if (options.schedule) {
    return explainSchedule(line, options);
  }
  if (options.memory) {
    return explainMemory(line, options);
  }
  if (!options.timeLine.file.empty()) {
    return explainTimeLine(line, options);
  }
  if (llvm::Error error = checkTimeLine(line)) {
    return error;
  }
  bool isValue = !options.compile.input.empty();
  if (!options.kernels && !isValue) {
    return makeError(
        "expected --kernels, for the times of a program's kernels, --schedule, for its "
        "course, --memory, for its peak of memory, --timeline FILE, for a file with its course, or "
        "--model FILE, for the reason of a value's sharding");
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
