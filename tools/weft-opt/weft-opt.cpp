//===- weft-opt.cpp - runs passes on modules, for people who work on passes ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/RuleMutation.h"
#include "weft/InitAll.h"
#include "weft/Pipeline/ModuleText.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::opt<bool>
    listShardableOps("list-shardable-ops",
                     llvm::cl::desc("Print the ops that have a factor rule, and exit"));

static llvm::cl::opt<std::string> mutateRule("mutate-rule", llvm::cl::value_desc("NAME:KIND:SITE"),
                                             llvm::cl::desc(weft::kRuleMutationHelp));

static void printShardableOps(const DialectRegistry &registry) {
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    if (op.hasInterface<weft::ShardableOpInterface>()) {
      llvm::outs() << op.getStringRef() << "\n";
    }
  }
}

/// Prints `error`; returns the exit status of a failure.
static LogicalResult fail(const llvm::Twine &error) {
  llvm::errs() << "weft-opt: " << error << "\n";
  return failure();
}

/// Does the same as MlirOptMain, but refuses text that would overflow the parser's stack.
static LogicalResult run(const std::string &input, const std::string &output,
                         DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  if (!buffer) {
    return fail(error);
  }
  if (std::optional<std::string> refusal = weft::checkModuleText(buffer->getBuffer())) {
    return fail("'" + llvm::Twine(input) + "': " + *refusal);
  }
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file) {
    return fail(error);
  }
  if (failed(MlirOptMain(file->os(), std::move(buffer), registry,
                         MlirOptMainConfig::createFromCLOptions()))) {
    return failure();
  }
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  weft::registerAllWeft(registry);
  weft::registerAllWeftPasses();
  llvm::InitLLVM initialized(argc, argv);
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "Weft's modular optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses()) {
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  }
  if (listShardableOps) {
    printShardableOps(registry);
    return 0;
  }
  if (!mutateRule.empty()) {
    std::optional<weft::RuleMutation> mutation = weft::RuleMutation::parse(mutateRule);
    if (!mutation) {
      return asMainReturnCode(
          fail("--mutate-rule: expected NAME:KIND:SITE, got '" + llvm::Twine(mutateRule) + "'"));
    }
    weft::plant(*mutation);
  }
  return asMainReturnCode(run(input, output, registry));
}
