//===- CompileCommand.cpp - descriptions to an executable -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/CompileToFile.h"

using namespace weft;

namespace {

llvm::Error run(const CompileOptions &options) {
  llvm::Expected<Descriptions> descriptions = openDescriptions(options, checkCompileOptions);
  if (!descriptions) {
    return descriptions.takeError();
  }
  if (!options.makesExecutable()) {
    return compileToModule(options, *descriptions);
  }
  llvm::Expected<CompileReport> report = compileToProgram(options, *descriptions);
  if (!report) {
    return report.takeError();
  }
  printReport(llvm::outs(), *report, options.output);
  return llvm::Error::success();
}

} // namespace

int weft::compileCommand(llvm::ArrayRef<const char *> arguments) {
  CompileOptions options;
  CommandLine line = declareCompileOptions(options);
  return line.run("compile", arguments, [&] { return run(options); });
}
