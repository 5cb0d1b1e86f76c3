//===- VerifyCommand.cpp - is a plan the same as one rank? ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/Verification.h"

using namespace weft;

namespace {

llvm::Error run(const CompileOptions &options) {
  llvm::Expected<Descriptions> descriptions = openDescriptions(options, checkDescriptionOptions);
  if (!descriptions) {
    return descriptions.takeError();
  }
  if (descriptions->plan.mesh.empty() && descriptions->plan.accumulation == 1) {
    return makeError("expected a plan of several ranks or micro-batches, by --plan, --pin or "
                     "--mesh: one rank has nothing to be compared with");
  }
  return verifyPlan(options, *descriptions);
}

} // namespace

int weft::verifyCommand(llvm::ArrayRef<const char *> arguments) {
  CompileOptions options;
  options.command = "verify";
  CommandLine line(
      "weft verify MODEL --machine FILE --recipe FILE (--plan FILE | --pin NAME=VALUE | --mesh "
      "AXES)",
      "Makes MODEL smaller, compiles it for the ranks of the plan and for one, trains both for\n"
      "some steps in float64, here, and compares every loss, gradient and weight. Where they "
      "differ\n"
      "it names the op at fault. Exit status: 0 if all are the same, else 1.");
  declareDescriptionOptions(line, options);
  declareTargetOptions(line, options);
  declarePlanOptions(line, options);
  declareCacheOption(line, options);
  declareMutationOptions(line, options);
  return line.run("verify", arguments, [&] { return run(options); });
}
