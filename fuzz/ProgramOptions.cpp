//===- ProgramOptions.cpp - command lines of compiled programs -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "tests/Toy.h"
#include "training/Options.h"

#include <sstream>

using namespace weft::rt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Program program = makeToy(2, 2);
  std::istringstream stream(std::string(reinterpret_cast<const char *>(data), size));
  std::vector<std::string> words; // Each on a line of its own.
  for (std::string word; std::getline(stream, word);) {
    words.push_back(word);
  }
  std::vector<const char *> arguments;
  for (const std::string &word : words) {
    arguments.push_back(word.c_str());
  }
  Result<Options> options = parseOptions(program, arguments);
  if (!options) {
    require(!options.error().message.empty(), "an error says something");
    return 0;
  }
  require(options->steps >= 0 && options->timeoutSeconds > 0, "numbers lie in their ranges");
  require(options->validationSplit >= 0 && options->validationSplit < 1, "as does this one");
  require(threadsOf(program, *options, program.rankCount()) >= 1, "a rank has a thread");
  return 0;
}
