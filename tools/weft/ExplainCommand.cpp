//===- ExplainCommand.cpp - what a compiled program spends its time on ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"
#include "KernelReport.h"
#include "ProgramFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

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
      "it on\nmade-up tokens, unless a profile of a run is there.");
  line.addSwitch("--kernels",
                 "list its kernels, products and collectives, the slowest first: bytes,\n"
                 "operations, measured time, share of the machine's peak, predicted time",
                 options.kernels);
  line.addText("--profile", "FILE", "do not run PROGRAM, take what it wrote by --profile",
               options.profile);
  Option steps;
  steps.name = "--steps";
  steps.valueName = "N";
  steps.help = "steps to run; the first is not counted (default: 5)";
  steps.set = [&options](llvm::StringRef value) -> llvm::Error {
    if (value.getAsInteger(10, options.steps) || options.steps < 2 || options.steps > 1000000) {
      return makeError("option '--steps' expects a number from 2 to 1000000, got '" + value + "'");
    }
    return llvm::Error::success();
  };
  line.add(std::move(steps));
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

/// A file that is gone when this is.
class TemporaryFile {
public:
  llvm::Error create(llvm::StringRef suffix) {
    std::error_code code = llvm::sys::fs::createTemporaryFile("weft-explain", suffix, path);
    remover.setFile(path);
    return code ? makeError("cannot make a temporary file: " + code.message())
                : llvm::Error::success();
  }
  llvm::StringRef getPath() const { return path; }

private:
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

/// Two bytes for each token, of a small generator; enough for one batch, which may repeat.
llvm::Error writeTokens(llvm::StringRef path, const rt::Program &program) {
  uint64_t range = std::clamp<int64_t>(program.vocabulary, 1, 1 << 16);
  uint64_t count = static_cast<uint64_t>(program.globalBatch) * program.sequenceLength + 1;
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  uint64_t state = 1;
  for (uint64_t i = 0; i < count && !code; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
    uint64_t token = (state >> 33) % range;
    stream << static_cast<char>(token) << static_cast<char>(token >> 8);
  }
  stream.close();
  code = code ? code : stream.error();
  stream.clear_error();
  return code ? makeError("cannot write '" + path + "': " + code.message())
              : llvm::Error::success();
}

/// Lets the program write a profile.
llvm::Error runProgram(const ExplainOptions &options, const rt::Program &program,
                       llvm::StringRef profile) {
  TemporaryFile tokens;
  if (llvm::Error error = tokens.create("tokens")) {
    return error;
  }
  if (llvm::Error error = writeTokens(tokens.getPath(), program)) {
    return error;
  }
  llvm::SmallString<128> path(options.program);
  if (std::error_code code = llvm::sys::fs::make_absolute(path)) {
    return makeError("cannot run '" + options.program + "': " + code.message());
  }
  std::string steps = std::to_string(options.steps);
  llvm::SmallVector<llvm::StringRef> words = {
      path,      "--quiet", "--data", tokens.getPath(), "--data-format",
      "nanogpt", "--steps", steps,    "--profile",      profile};
  if (!options.threads.empty()) {
    words.append({"--threads", options.threads});
  }
  std::string reason;
  int status = llvm::sys::ExecuteAndWait(path, words, /*Env=*/std::nullopt, /*Redirects=*/{},
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &reason);
  if (status == 0) {
    return llvm::Error::success();
  }
  return makeError("'" + options.program + "' did not run to its end: " +
                   (reason.empty() ? "exit status " + std::to_string(status) : reason));
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
    if (llvm::Error error = runProgram(options, *program, path)) {
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

llvm::Error run(llvm::ArrayRef<const char *> arguments) {
  ExplainOptions options;
  CommandLine line = declare(options);
  if (llvm::Error error = line.parse(arguments)) {
    return error;
  }
  if (line.isHelpWanted()) {
    line.printHelp(llvm::outs());
    return llvm::Error::success();
  }
  if (llvm::Error error = check(line, options)) {
    return error;
  }
  return explain(options);
}

} // namespace

int weft::explainCommand(llvm::ArrayRef<const char *> arguments) {
  if (llvm::Error error = run(arguments)) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs(), "weft explain: ");
    return 1;
  }
  return 0;
}
