//===- RunCommand.cpp - starts a compiled program ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/Launch.h"

using namespace weft;

namespace {

/// Returns true if `text` is a number of ranks.
bool isRankCount(llvm::StringRef text) {
  uint64_t count = 0;
  return !text.getAsInteger(10, count) && count > 0;
}

CommandLine declare(RunOptions &options) {
  CommandLine line(
      "weft run [-n RANKS] [--backend NAME] PROGRAM [-- ARGUMENTS]",
      "Runs PROGRAM, which 'weft compile' made, with ARGUMENTS. 'PROGRAM --help' lists\n"
      "its options.");
  Option ranks;
  ranks.name = "-n";
  ranks.valueName = "RANKS";
  ranks.help = "number of ranks, which must be the number that PROGRAM was compiled for\n"
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

} // namespace

int weft::runCommand(llvm::ArrayRef<const char *> arguments) {
  RunOptions options;
  CommandLine line = declare(options);
  return line.run("run", arguments, [&] { return launch(options); });
}
