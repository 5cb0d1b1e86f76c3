//===- CompilerOptions.cpp - command lines of weft -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/Driver/CompileOptions.h"

#include "weft/Description/Pins.h"

using namespace weft;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::SmallVector<llvm::StringRef> lines; // Each a word.
  text.split(lines, '\n');
  std::vector<std::string> words(lines.begin(), lines.end());
  std::vector<const char *> arguments;
  for (const std::string &word : words) {
    arguments.push_back(word.c_str());
  }
  CompileOptions options;
  CommandLine line = declareCompileOptions(options);
  llvm::Error error = line.parse(arguments);
  if (!error && !line.isHelpWanted()) {
    error = checkCompileOptions(options);
  }
  if (error) {
    require(!llvm::toString(std::move(error)).empty(), "an error says something");
  }
  desc::Result<desc::PlanSpec> plan = desc::applyPins(options.pins);
  require(bool(plan) == plan.diagnostics().empty(), "what is refused is explained");
  return 0;
}
