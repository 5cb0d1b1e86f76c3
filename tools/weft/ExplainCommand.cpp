//===- ExplainCommand.cpp - what a compiled program spends its time on ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"
#include "KernelReport.h"
#include "ProfiledRun.h"
#include "ProgramFile.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace weft;

namespace {

struct ExplainOptions {
  std::string program, profile;
  bool kernels = false, json = false;
  int64_t steps = 5;
  std::string threads;
};

CommandLine declare(ExplainOptions &options) {
  CommandLine line(
      "weft explain PROGRAM --kernels [options]",
      "Says where the time of PROGRAM goes, which 'weft compile' made. Runs some steps of "
      "it on\nmade-up tokens or images, unless a profile of a run is there.");
  line.addSwitch("--kernels",
                 "list its kernels, products and collectives, the slowest first: bytes,\n"
                 "operations, measured time, share of the machine's peak, predicted time",
                 options.kernels);
  line.addText("--profile", "FILE", "do not run PROGRAM, take what it wrote by --profile",
               options.profile);
  line.addNumber("--steps", "N", "steps to run; the first is not counted (default: 5)", 2, 1000000,
                 options.steps);
  line.addText("--threads", "N", "threads of each rank (default: as PROGRAM chooses)",
               options.threads);
  line.addSwitch("--json", "print a JSON object instead of a table", options.json);
  line.addPositional("PROGRAM", options.program);
  return line;
}

llvm::Error check(const CommandLine &line, const ExplainOptions &options) {
  if (!options.kernels) {
    return makeError("expected --kernels, which is the only thing to explain yet");
  }
  for (llvm::StringRef name : {"--steps", "--threads"}) {
    if (!options.profile.empty() && line.wasGiven(name)) {
      return makeError("option '" + name + "' has no effect with --profile");
    }
  }
  return llvm::Error::success();
}

llvm::Error explain(const ExplainOptions &options) {
  auto program = readProgramOf(options.program);
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
            profileProgram(options.program, *program, options.steps, options.threads, path)) {
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
                     options.program + "' follows plan " + program->planHash);
  }
  (options.json ? printJson : printTable)(llvm::outs(), *report);
  return llvm::Error::success();
}

llvm::Error run(const CommandLine &line, const ExplainOptions &options) {
  if (llvm::Error error = check(line, options)) {
    return error;
  }
  return explain(options);
}

} // namespace

int weft::explainCommand(llvm::ArrayRef<const char *> arguments) {
  ExplainOptions options;
  CommandLine line = declare(options);
  return line.run("explain", arguments, [&] { return run(line, options); });
}
