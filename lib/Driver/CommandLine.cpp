//===- CommandLine.cpp - parser of command lines --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/CommandLine.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace weft;

llvm::Error weft::makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::StringRef weft::nearestWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words) {
  llvm::StringRef nearest;
  // A word that differs in more than a third of its letters is no misspelling.
  unsigned best = static_cast<unsigned>(word.size()) / 3 + 1;
  for (llvm::StringRef candidate : words) {
    unsigned distance = word.edit_distance(candidate, /*AllowReplacements=*/true, best);
    if (distance < best || (nearest.empty() && distance == best)) {
      nearest = candidate;
      best = distance;
    }
  }
  return nearest;
}

std::string weft::suggestion(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> words) {
  llvm::StringRef nearest = nearestWord(word, words);
  return nearest.empty() ? "" : (", did you mean '" + nearest + "'?").str();
}

CommandLine::CommandLine(llvm::StringRef synopsis, llvm::StringRef description)
    : synopsis(synopsis), description(description) {
  Option help;
  help.name = "--help";
  help.help = "print this text";
  help.set = [](llvm::StringRef) { return llvm::Error::success(); };
  options.push_back(std::move(help));
}

void CommandLine::addSwitch(llvm::StringRef name, llvm::StringRef help, bool &target) {
  Option option;
  option.name = name;
  option.help = help;
  option.set = [&target](llvm::StringRef) {
    target = true;
    return llvm::Error::success();
  };
  add(std::move(option));
}

void CommandLine::addNumber(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
                            int64_t least, int64_t most, int64_t &target) {
  Option option;
  option.name = name;
  option.valueName = valueName;
  option.help = help;
  option.set = [=, &target](llvm::StringRef value) -> llvm::Error {
    if (value.getAsInteger(10, target) || target < least || target > most) {
      return makeError("option '" + name + "' expects a number from " + llvm::Twine(least) +
                       " to " + llvm::Twine(most) + ", got '" + value + "'");
    }
    return llvm::Error::success();
  };
  add(std::move(option));
}

void CommandLine::addText(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
                          std::string &target) {
  Option option;
  option.name = name;
  option.valueName = valueName;
  option.help = help;
  option.set = [&target](llvm::StringRef value) {
    target = value;
    return llvm::Error::success();
  };
  add(std::move(option));
}

void CommandLine::addList(llvm::StringRef name, llvm::StringRef valueName, llvm::StringRef help,
                          std::vector<std::string> &target) {
  Option option;
  option.name = name;
  option.valueName = valueName;
  option.help = help;
  option.mayRepeat = true;
  option.set = [&target](llvm::StringRef value) {
    target.push_back(value.str());
    return llvm::Error::success();
  };
  add(std::move(option));
}

void CommandLine::addPositional(llvm::StringRef name, std::string &target) {
  positionalName = name;
  positional = &target;
}

llvm::Error CommandLine::parse(llvm::ArrayRef<const char *> arguments) {
  while (!arguments.empty() && !helpWanted) {
    llvm::StringRef argument = arguments.front();
    if (argument == "--" && rest) {
      for (const char *other : arguments.drop_front()) {
        rest->push_back(other);
      }
      break;
    }
    bool isOption = argument.size() > 1 && argument.front() == '-';
    llvm::Error error = isOption ? parseOption(arguments) : parsePositional(argument);
    if (error) {
      return error;
    }
    arguments = arguments.drop_front();
  }
  if (positional && positional->empty() && !helpWanted) {
    return makeError("expected " + positionalName);
  }
  return llvm::Error::success();
}

bool CommandLine::wasGiven(llvm::StringRef name) const {
  return llvm::any_of(options,
                      [&](const Option &option) { return option.name == name && option.wasGiven; });
}

/// Parses an option. Leaves `arguments` at its last argument.
llvm::Error CommandLine::parseOption(llvm::ArrayRef<const char *> &arguments) {
  llvm::StringRef argument = arguments.front();
  auto [name, value] = argument.split('=');
  if (argument == "--help" || argument == "-h") {
    helpWanted = true;
    return llvm::Error::success();
  }
  auto found = llvm::find_if(options, [&](const Option &option) { return option.name == name; });
  if (found == options.end()) {
    return unknownOption(name);
  }
  bool hasValue = argument.contains('=');
  if (found->valueName.empty() && hasValue) {
    return makeError("option '" + name + "' takes no value");
  }
  if (!found->valueName.empty() && !hasValue) {
    if (arguments.size() == 1) {
      return makeError("option '" + name + "' expects " + found->valueName);
    }
    arguments = arguments.drop_front();
    value = arguments.front();
  }
  if (!found->valueName.empty() && value.empty()) {
    return makeError("option '" + name + "' expects " + found->valueName);
  }
  if (found->wasGiven && !found->mayRepeat) {
    return makeError("option '" + name + "' is given twice");
  }
  found->wasGiven = true;
  return found->set(value);
}

llvm::Error CommandLine::unknownOption(llvm::StringRef name) const {
  auto names = llvm::map_to_vector(
      options, [](const Option &option) -> llvm::StringRef { return option.name; });
  return makeError("unknown option '" + name + "'" + suggestion(name, names));
}

llvm::Error CommandLine::parsePositional(llvm::StringRef argument) {
  if (!positional) {
    return makeError("unexpected argument '" + argument + "'");
  }
  if (!positional->empty()) {
    return makeError("unexpected argument '" + argument + "': " + positionalName + " is '" +
                     *positional + "' already");
  }
  if (argument.empty()) {
    return makeError("expected " + positionalName + ", got an empty argument");
  }
  *positional = argument;
  return llvm::Error::success();
}

void CommandLine::printOptions(llvm::raw_ostream &os, bool forTesting) const {
  constexpr unsigned column = 26;
  for (const Option &option : options) {
    if (option.forTesting != forTesting) {
      continue;
    }
    std::string name = option.name;
    if (!option.valueName.empty()) {
      name += (name.size() == 2 ? " " : "=") + option.valueName;
    }
    // The lines of a longer help stand below each other.
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(option.help).split(lines, '\n');
    bool fits = name.size() + 2 < column;
    os << "  " << llvm::left_justify(name, fits ? column - 2 : 0);
    if (!fits) {
      os << '\n' << std::string(column, ' ');
    }
    os << llvm::join(lines, "\n" + std::string(column, ' ')) << '\n';
  }
}

void CommandLine::printHelp(llvm::raw_ostream &os) const {
  os << "usage: " << synopsis << "\n\n" << description << "\n\noptions:\n";
  printOptions(os, /*forTesting=*/false);
  if (llvm::any_of(options, [](const Option &option) { return option.forTesting; })) {
    os << "\nfor testing:\n";
    printOptions(os, /*forTesting=*/true);
  }
}

int CommandLine::run(llvm::StringRef name, llvm::ArrayRef<const char *> arguments,
                     llvm::function_ref<llvm::Error()> body) {
  llvm::Error error = parse(arguments);
  if (!error && helpWanted) {
    printHelp(llvm::outs());
  } else if (!error) {
    error = body();
  }
  if (!error) {
    return 0;
  }
  std::string message = llvm::toString(std::move(error));
  if (!message.empty()) {
    llvm::errs() << "weft " << name << ": " << message << '\n';
  }
  return 1;
}
