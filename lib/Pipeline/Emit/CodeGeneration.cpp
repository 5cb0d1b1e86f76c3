//===- CodeGeneration.cpp - LLVM's part of emitting -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeGeneration.h"

#include "weft/Pipeline/Lower/HostLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"

namespace weft {

using namespace llvm;

static OptimizationLevel middleEndLevel(unsigned level) {
  const OptimizationLevel levels[] = {OptimizationLevel::O0, OptimizationLevel::O1,
                                      OptimizationLevel::O2, OptimizationLevel::O3};
  return levels[std::min(level, 3u)];
}

static KernelIterations numbersOf(mlir::ModuleOp module, StringRef attribute) {
  KernelIterations numbers;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (auto counts = function->getAttrOfType<mlir::DenseI64ArrayAttr>(attribute)) {
      numbers[function.getName()] = SmallVector<int64_t>(counts.asArrayRef());
    }
  }
  return numbers;
}

KernelIterations iterationsOf(mlir::ModuleOp module) {
  return numbersOf(module, kIterationsAttrName);
}

KernelIterations threadsOf(mlir::ModuleOp module) { return numbersOf(module, kThreadsAttrName); }

mlir::ModuleOp devicesOf(mlir::ModuleOp module) {
  auto devices = module.lookupSymbol<mlir::ModuleOp>(kDevicesName);
  return devices ? devices : module;
}

Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, StringRef name,
                                                  TargetMachine &machine, LLVMContext &context) {
  std::unique_ptr<llvm::Module> code = mlir::translateModuleToLLVMIR(module, context, name);
  if (!code) {
    return createStringError("the module is not in the LLVM dialect");
  }
  code->setTargetTriple(machine.getTargetTriple());
  code->setDataLayout(machine.createDataLayout());
  return code;
}

CodeGenOptLevel codeGenLevel(unsigned level) {
  return CodeGenOpt::getLevel(static_cast<int>(level)).value_or(CodeGenOptLevel::Aggressive);
}

void optimize(llvm::Module &module, TargetMachine &machine, unsigned level,
              PipelineTuningOptions tuning, function_ref<void(PassBuilder &)> prepare) {
  PassBuilder builder(&machine, tuning);
  if (prepare) {
    prepare(builder);
  }
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  OptimizationLevel passes = middleEndLevel(level);
  ModulePassManager manager = level == 0 ? builder.buildO0DefaultPipeline(passes)
                                         : builder.buildPerModuleDefaultPipeline(passes);
  manager.run(module, modules);
}

Expected<std::string> generate(llvm::Module &module, TargetMachine &machine, CodeGenFileType type) {
  SmallString<0> bytes;
  raw_svector_ostream buffer(bytes);
  legacy::PassManager manager;
  if (machine.addPassesToEmitFile(manager, buffer, nullptr, type)) {
    return createStringError("cannot generate code for " + machine.getTargetTriple().str());
  }
  manager.run(module);
  return bytes.str().str();
}

Error forEachInParallel(mlir::MLIRContext *context, size_t count,
                        function_ref<Error(size_t)> body) {
  std::vector<std::string> messages(count);
  mlir::parallelFor(context, 0, count, [&](size_t i) {
    if (Error error = body(i)) {
      messages[i] = toString(std::move(error));
    }
  });
  for (const std::string &message : messages) {
    if (!message.empty()) {
      return createStringError(message);
    }
  }
  return Error::success();
}

} // namespace weft
