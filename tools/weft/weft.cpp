//===- weft.cpp - compiles the description of a model, and runs the result ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/CommandLine.h"

#include "llvm/Config/llvm-config.h"

using namespace weft;

namespace {

struct Command {
  llvm::StringRef name;
  llvm::StringRef description;
  int (*run)(llvm::ArrayRef<const char *>);
};

constexpr Command commands[] = {
    {"compile", "turn a model, a machine and a recipe into a training program", compileCommand},
    {"plan", "find the fastest plan of a model on a machine, and predict its cost", planCommand},
    {"verify", "check that a plan gives the results of one rank, on a small model", verifyCommand},
    {"import", "turn a Hugging Face checkpoint into a model and its weights", importCommand},
    {"export", "turn trained weights into a Hugging Face checkpoint", exportCommand},
    {"run", "start a compiled training program", runCommand},
    {"explain",
     "list a program's kernels by time, draw its schedule, or explain how a value is split",
     explainCommand},
    {"calibrate", "measure this machine, and write the file that describes it", calibrateCommand},
};

void printHelp(llvm::raw_ostream &os) {
  os << "usage: weft COMMAND [options]\n\n"
        "Weft compiles the description of a model into a parallel training program.\n\n"
        "commands:\n";
  for (const Command &command : commands) {
    os << "  " << command.name << std::string(11 - command.name.size(), ' ') << command.description
       << '\n';
  }
  os << "\n'weft COMMAND --help' lists the options of a command, './train --help' those of a "
        "compiled\nprogram. 'weft --version' prints the version.\n";
}

int reportUnknown(llvm::StringRef word) {
  std::vector<llvm::StringRef> names{"--help", "--version"};
  for (const Command &command : commands) {
    names.push_back(command.name);
  }
  llvm::StringRef kind = word.starts_with("-") ? "option" : "command";
  llvm::errs() << "weft: unknown " << kind << " '" << word << "'" << suggestion(word, names)
               << '\n';
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  llvm::ArrayRef<const char *> arguments(argv + 1, argc > 0 ? argc - 1 : 0);
  if (arguments.empty()) {
    llvm::errs() << "weft: expected a command; 'weft --help' lists them\n";
    return 1;
  }
  llvm::StringRef word = arguments.front();
  if (word == "--help" || word == "-h") {
    printHelp(llvm::outs());
    return 0;
  }
  if (word == "--version") {
    llvm::outs() << "weft " WEFT_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
    return 0;
  }
  for (const Command &command : commands) {
    if (command.name == word) {
      return command.run(arguments.drop_front());
    }
  }
  return reportUnknown(word);
}
