//===- CommandLine.h - what the user typed, taken apart -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A command declares its options and the variables that receive their values.
// Parsing returns the first mistake of a command line as an error in the user's
// words. The help text is made from the same declarations. All commands of weft
// use this parser. For one thread.
//
//   CommandLine line("weft run [options] PROGRAM", "Runs a compiled program.");
//   line.addText("--name", "NAME", "what it is called", name);
//   return line.run("run", arguments, [&] { return start(name); });
//
// A value follows its option as the next argument or behind an equals sign.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_COMMANDLINE_H
#define WEFT_DRIVER_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <string>
#include <vector>

namespace weft {

/// An error that says `message`.
llvm::Error makeError(const llvm::Twine &message);
/// An error of which everything has been said already.
inline llvm::Error makeSilentError() { return makeError(""); }

/// The word of `words` that `word` is most likely a misspelling of; empty if there is none.
llvm::StringRef nearestWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words);

/// ", did you mean 'nearest'?", or nothing.
std::string suggestion(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words);

/// One option of a command.
struct Option {
  /// With its dashes.
  std::string name;
  /// What stands for its value in the help; empty for an option without a value.
  std::string valueName;
  std::string help;
  /// Takes the value, or says what is wrong with it.
  std::function<llvm::Error(llvm::StringRef)> set;
  bool mayRepeat = false;
  /// Listed apart from the others, under "for testing".
  bool forTesting = false;
  bool wasGiven = false;
};

/// The options and arguments of one command. References given to it must outlive it.
class CommandLine {
public:
  CommandLine(llvm::StringRef synopsis, llvm::StringRef description);

  void addSwitch(llvm::StringRef name, llvm::StringRef help, bool &target);
  void addText(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
               std::string &target);
  /// A whole number from `least` to `most`.
  void addNumber(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
                 int64_t least, int64_t most, int64_t &target);
  /// An option that may be given several times.
  void addList(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
               std::vector<std::string> &target);
  void add(Option option) { options.push_back(std::move(option)); }
  /// The one argument without dashes, which must be given.
  void addPositional(llvm::StringRef name, std::string &target);
  /// What stands behind `--`.
  void addRest(std::vector<std::string> &target) { rest = &target; }

  /// Reads `arguments`, then calls `body`, or prints the help if that is asked for. Prints an error
  /// of either after "weft NAME: ". Returns the exit status.
  int run(llvm::StringRef name, llvm::ArrayRef<const char *> arguments,
          llvm::function_ref<llvm::Error()> body);

  /// Fails at the first thing that is wrong. After `--help` or `-h`, looks at nothing else.
  llvm::Error parse(llvm::ArrayRef<const char *> arguments);
  bool isHelpWanted() const { return helpWanted; }

  /// Whether the option `name` stood on the command line.
  bool wasGiven(llvm::StringRef name) const;

private:
  void printHelp(llvm::raw_ostream &os) const;
  llvm::Error parseOption(llvm::ArrayRef<const char *> &arguments);
  llvm::Error parsePositional(llvm::StringRef argument);
  llvm::Error unknownOption(llvm::StringRef name) const;
  void printOptions(llvm::raw_ostream &os, bool forTesting) const;

  std::string synopsis, description;
  std::vector<Option> options;
  std::string positionalName;
  std::string *positional = nullptr;
  std::vector<std::string> *rest = nullptr;
  bool helpWanted = false;
};

} // namespace weft

#endif // WEFT_DRIVER_COMMANDLINE_H
