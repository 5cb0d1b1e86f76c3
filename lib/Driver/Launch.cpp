//===- Launch.cpp - starts a compiled program -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Launch.h"

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"
#include "weft/Driver/ProfiledRun.h"
#include "weft/Driver/ProgramFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace weft;

/// Time limit for mpirun to print its version.
static constexpr unsigned kSecondsForVersion = 30;

namespace {

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
  // Only its output counts, whatever its exit status.
  std::string said = output.getPath().str();
  runChild({{*path, "--version"}, said, "/dev/null", kSecondsForVersion});
  auto text = llvm::MemoryBuffer::getFile(said);
  if (!text || !(*text)->getBuffer().contains("Open MPI")) {
    return makeError("--backend mpi needs Open MPI's mpirun, '" + *path + "' is another's");
  }
  return *path;
}

/// Returns the words before the program and its arguments.
llvm::Expected<std::vector<std::string>> mpirunWords(const RunOptions &options,
                                                     const std::string &program) {
  std::string ranks = options.ranks;
  if (ranks.empty()) {
    llvm::Expected<rt::Programs> read = readProgramsOf(program);
    if (!read) {
      return read.takeError();
    }
    ranks = std::to_string(read->front().rankCount());
  }
  llvm::Expected<std::string> mpirun = findMpirun();
  if (!mpirun) {
    return mpirun.takeError();
  }
  // The program prints its own errors. Ranks may outnumber processors, and have threads that must
  // not share one.
  return std::vector<std::string>{*mpirun, "--quiet",         "-n",
                                  ranks,   "--oversubscribe", "--bind-to",
                                  "none",  "--mca",           "mpi_yield_when_idle",
                                  "1"};
}

} // namespace

llvm::Error weft::launch(const RunOptions &options) {
  if (llvm::Error error = check(options.program)) {
    return error;
  }
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
