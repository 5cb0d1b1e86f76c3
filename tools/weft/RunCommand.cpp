//===- RunCommand.cpp - starts a compiled program -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"
#include "Commands.h"
#include "weft/Driver/ProfiledRun.h"
#include "weft/Driver/ProgramFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace weft;

/// How long mpirun may take to say whose it is.
static constexpr unsigned kSecondsForVersion = 30;

namespace {

struct RunOptions {
  std::string program;
  std::string ranks;
  /// "local", "mpi", or empty: what the program chooses itself.
  std::string backend;
  std::vector<std::string> arguments;
};

/// Whether `text` is a number of ranks.
bool isRankCount(llvm::StringRef text) {
  uint64_t count = 0;
  return !text.getAsInteger(10, count) && count > 0;
}

CommandLine declare(RunOptions &options) {
  CommandLine line(
      "weft run [-n RANKS] [--backend NAME] PROGRAM [-- ARGUMENTS]",
      "Runs PROGRAM, which 'weft compile' made, with ARGUMENTS. 'PROGRAM --help' lists\n"
      "what it takes.");
  Option ranks;
  ranks.name = "-n";
  ranks.valueName = "RANKS";
  ranks.help = "number of ranks, which must be what PROGRAM was compiled for\n"
               "(default: that number)";
  ranks.set = [&options](llvm::StringRef value) -> llvm::Error {
    if (!isRankCount(value)) {
      return makeError("option '-n' expects a number of ranks, got '" + value + "'");
    }
    options.ranks = value;
    return llvm::Error::success();
  };
  line.add(std::move(ranks));
  Option backend;
  backend.name = "--backend";
  backend.valueName = "NAME";
  backend.help = "local: ranks are threads of one process; mpi: ranks are processes, on this\n"
                 "machine, which Open MPI's mpirun starts (default: local)";
  backend.set = [&options](llvm::StringRef value) -> llvm::Error {
    if (value != "local" && value != "mpi") {
      return makeError("option '--backend' expects local or mpi, got '" + value + "'");
    }
    options.backend = value;
    return llvm::Error::success();
  };
  line.add(std::move(backend));
  line.addPositional("PROGRAM", options.program);
  line.addRest(options.arguments);
  return line;
}

llvm::Error check(const std::string &program) {
  if (std::error_code code = llvm::sys::fs::access(program, llvm::sys::fs::AccessMode::Exist)) {
    return makeError("cannot run '" + program + "': " + code.message());
  }
  if (llvm::sys::fs::is_directory(program)) {
    return makeError("cannot run '" + program + "': it is a folder");
  }
  if (!llvm::sys::fs::can_execute(program)) {
    return makeError("cannot run '" + program +
                     "': it is not executable; expected a program that 'weft compile' made");
  }
  return llvm::Error::success();
}

/// Path of Open MPI's mpirun.
llvm::Expected<std::string> findMpirun() {
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("mpirun");
  if (!path) {
    return makeError("--backend mpi needs Open MPI's mpirun, which is not in the search path (of "
                     "Debian: openmpi-bin)");
  }
  TemporaryFile output;
  if (llvm::Error error = output.create("text")) {
    return error;
  }
  // What it says counts, whatever its exit status.
  std::string said = output.getPath().str();
  runChild({{*path, "--version"}, said, "/dev/null", kSecondsForVersion});
  auto text = llvm::MemoryBuffer::getFile(said);
  if (!text || !(*text)->getBuffer().contains("Open MPI")) {
    return makeError("--backend mpi needs Open MPI's mpirun, '" + *path + "' is another's");
  }
  return *path;
}

/// What goes before the program and its arguments.
llvm::Expected<std::vector<std::string>> mpirunWords(const RunOptions &options,
                                                     const std::string &program) {
  std::string ranks = options.ranks;
  if (ranks.empty()) {
    llvm::Expected<rt::Program> read = readProgramOf(program);
    if (!read) {
      return read.takeError();
    }
    ranks = std::to_string(read->rankCount());
  }
  llvm::Expected<std::string> mpirun = findMpirun();
  if (!mpirun) {
    return mpirun.takeError();
  }
  // The program says itself what goes wrong. Ranks may outnumber processors, and have threads that
  // are not to share one.
  return std::vector<std::string>{*mpirun, "--quiet",         "-n",
                                  ranks,   "--oversubscribe", "--bind-to",
                                  "none",  "--mca",           "mpi_yield_when_idle",
                                  "1"};
}

/// Replaces this process by the program; returns only where that fails.
llvm::Error start(const RunOptions &options) {
  // A name without a folder is a file here, never a program of the search path.
  std::string path = options.program;
  if (path.find('/') == std::string::npos) {
    path = "./" + path;
  }
  std::vector<std::string> words;
  if (options.backend == "mpi") {
    llvm::Expected<std::vector<std::string>> before = mpirunWords(options, path);
    if (!before) {
      return before.takeError();
    }
    words = std::move(*before);
  }
  words.push_back(path);
  if (!options.backend.empty()) {
    words.insert(words.end(), {"--backend", options.backend});
  }
  if (!options.ranks.empty()) {
    words.insert(words.end(), {"--ranks", options.ranks});
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char *> pointers;
  for (std::string &word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  ::execv(words.front().c_str(), pointers.data());
  return makeError("cannot run '" + words.front() + "': " + std::strerror(errno));
}

llvm::Error run(const RunOptions &options) {
  if (llvm::Error error = check(options.program)) {
    return error;
  }
  return start(options);
}

} // namespace

int weft::runCommand(llvm::ArrayRef<const char *> arguments) {
  RunOptions options;
  CommandLine line = declare(options);
  return line.run("run", arguments, [&] { return run(options); });
}
