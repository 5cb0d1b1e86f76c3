//===- RunCommand.cpp - starts a compiled program -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"

#include "llvm/Support/FileSystem.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace weft;

namespace {

struct RunOptions {
  std::string program;
  std::string ranks;
  std::vector<std::string> arguments;
};

/// Whether `text` is a number of ranks.
bool isRankCount(llvm::StringRef text) {
  uint64_t count = 0;
  return !text.getAsInteger(10, count) && count > 0;
}

CommandLine declare(RunOptions &options) {
  CommandLine line(
      "weft run [-n RANKS] PROGRAM [-- ARGUMENTS]",
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

/// Replaces this process by the program; returns only where that fails.
llvm::Error start(const RunOptions &options) {
  // A name without a folder is a file here, never a program of the search path.
  std::string path = options.program;
  if (path.find('/') == std::string::npos) {
    path = "./" + path;
  }
  std::vector<std::string> words{path};
  if (!options.ranks.empty()) {
    words.insert(words.end(), {"--ranks", options.ranks});
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char *> pointers;
  for (std::string &word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  ::execv(path.c_str(), pointers.data());
  return makeError("cannot run '" + options.program + "': " + std::strerror(errno));
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
