//===- CommandLine.h - parser of command lines ----------------------------===//
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

/// Returns an error with the text `message`.
llvm::Error makeError(const llvm::Twine &message);
/// Returns an error without a message, for a failure that has been printed already.
inline llvm::Error makeSilentError() { return makeError(""); }

/// Returns the word of `words` that `word` most likely misspells; empty if none is close.
llvm::StringRef nearestWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words);

/// Returns ", did you mean 'nearest'?", or an empty text if no word is close.
std::string suggestion(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words);

/// One option of a command.
struct Option {
  /// The name with its dashes.
  std::string name;
  /// The value's placeholder in the help, as FILE; empty for an option without a value.
  std::string valueName;
  std::string help;
  /// Stores the value, or returns an error that says why it is invalid.
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
  /// The arguments after `--`.
  void addRest(std::vector<std::string> &target) { rest = &target; }

  /// Parses `arguments`, then calls `body`, or prints the help if `arguments` ask for it. Prints an
  /// error of either after "weft NAME: ". Returns the exit status.
  int run(llvm::StringRef name, llvm::ArrayRef<const char *> arguments,
          llvm::function_ref<llvm::Error()> body);

  /// Fails at the first invalid argument. Ignores all arguments after `--help` or `-h`.
  llvm::Error parse(llvm::ArrayRef<const char *> arguments);
  bool isHelpWanted() const { return helpWanted; }

  /// Returns true if the command line has option `name`.
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
