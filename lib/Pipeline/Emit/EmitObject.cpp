//===- EmitObject.cpp - machine code for kernels -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

namespace weft {

using namespace llvm;

namespace {

Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// Everything that the host can do, as a feature string.
std::string hostFeatures() {
  SubtargetFeatures features;
  for (const auto &feature : sys::getHostCPUFeatures()) {
    features.AddFeature(feature.getKey(), feature.getValue());
  }
  return features.getString();
}

CodeGenOptLevel codeGenLevel(unsigned level) {
  return CodeGenOpt::getLevel(static_cast<int>(level)).value_or(CodeGenOptLevel::Aggressive);
}

OptimizationLevel middleEndLevel(unsigned level) {
  const OptimizationLevel levels[] = {OptimizationLevel::O0, OptimizationLevel::O1,
                                      OptimizationLevel::O2, OptimizationLevel::O3};
  return levels[std::min(level, 3u)];
}

/// Fails where LLVM would stop the compiler or only warn.
Error checkProcessor(const Target &target, const Triple &triple, StringRef cpu,
                     StringRef features) {
  std::unique_ptr<MCSubtargetInfo> known(target.createMCSubtargetInfo(triple, "", ""));
  if (!known->isCPUStringValid(cpu)) {
    return fail("unknown processor '" + cpu + "' for " + triple.str());
  }
  std::unique_ptr<MCSubtargetInfo> chosen(target.createMCSubtargetInfo(triple, cpu, ""));
  if (triple.getArch() == Triple::x86_64 && !chosen->checkFeatures("+64bit")) {
    return fail("processor '" + cpu + "' does not run 64-bit code");
  }
  for (StringRef feature : split(features, ',')) {
    if (feature.empty()) {
      continue;
    }
    bool isKnown = any_of(known->getAllProcessorFeatures(), [&](const SubtargetFeatureKV &entry) {
      return SubtargetFeatures::StripFlag(feature) == entry.Key;
    });
    if (!isKnown || !SubtargetFeatures::hasFlag(feature)) {
      return fail("unknown processor feature '" + feature +
                  "', expected a name of LLVM's with + or - before it");
    }
  }
  return Error::success();
}

Expected<std::unique_ptr<TargetMachine>> makeTargetMachine(const EmitOptions &options) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Triple triple(sys::getDefaultTargetTriple());
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    return fail(error);
  }
  bool isNative = options.cpu == "native";
  std::string cpu = isNative ? sys::getHostCPUName().str() : options.cpu;
  if (Error unknown = checkProcessor(*target, triple, cpu, options.features)) {
    return unknown;
  }
  std::string features = isNative ? hostFeatures() : "";
  if (!options.features.empty()) {
    features += (features.empty() ? "" : ",") + options.features;
  }
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, TargetOptions(), Reloc::PIC_, std::nullopt,
                                  codeGenLevel(options.optLevel)));
  if (!machine) {
    return fail("cannot generate code for " + triple.str());
  }
  return machine;
}

/// Kernels are called by their wrappers only. Kept apart from these, pointers that are known to be
/// distinct stay plain function arguments.
void prepareKernels(llvm::Module &module, Sanitizer sanitize) {
  for (Function &function : module) {
    if (function.isDeclaration()) {
      continue;
    }
    function.setLinkage(GlobalValue::InternalLinkage);
    function.addFnAttr(Attribute::NoInline);
    function.setDoesNotThrow();
    if (sanitize == Sanitizer::Address) {
      function.addFnAttr(Attribute::SanitizeAddress);
    } else if (sanitize == Sanitizer::Thread) {
      function.addFnAttr(Attribute::SanitizeThread);
    }
  }
}

void optimize(llvm::Module &module, TargetMachine &machine, const EmitOptions &options) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving =
      tuning.LoopUnrolling = options.optLevel >= 2;
  PassBuilder builder(&machine, tuning);
  builder.registerOptimizerLastEPCallback(
      [&](ModulePassManager &manager, OptimizationLevel, ThinOrFullLTOPhase) {
        if (options.sanitize == Sanitizer::Address) {
          manager.addPass(AddressSanitizerPass(AddressSanitizerOptions()));
        } else if (options.sanitize == Sanitizer::Thread) {
          manager.addPass(ModuleThreadSanitizerPass());
          manager.addPass(createModuleToFunctionPassAdaptor(ThreadSanitizerPass()));
        }
      });
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  OptimizationLevel level = middleEndLevel(options.optLevel);
  ModulePassManager manager = options.optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                                                    : builder.buildPerModuleDefaultPipeline(level);
  manager.run(module, modules);
}

/// Writes `bytes` beside `path`, then renames: the object is whole or not there.
Error writeWhole(StringRef bytes, StringRef path) {
  std::string temporary = (path + ".tmp").str();
  std::error_code code;
  {
    raw_fd_ostream stream(temporary, code);
    if (!code) {
      stream << bytes;
      stream.close();
      code = stream.error();
      stream.clear_error(); // Else the stream ends the process when it goes.
    }
  }
  if (!code) {
    code = sys::fs::rename(temporary, path);
  }
  if (code) {
    (void)sys::fs::remove(temporary);
    return fail(code.message());
  }
  return Error::success();
}

Error writeObject(llvm::Module &module, TargetMachine &machine, StringRef path) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream buffer(bytes);
  legacy::PassManager manager;
  if (machine.addPassesToEmitFile(manager, buffer, nullptr, CodeGenFileType::ObjectFile)) {
    return fail("cannot write object files for " + machine.getTargetTriple().str());
  }
  manager.run(module);
  return writeWhole(buffer.str(), path);
}

KernelIterations iterationsOf(mlir::ModuleOp module) {
  KernelIterations iterations;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (auto counts = function->getAttrOfType<mlir::DenseI64ArrayAttr>(kIterationsAttrName)) {
      iterations[function.getName()] = llvm::SmallVector<int64_t>(counts.asArrayRef());
    }
  }
  return iterations;
}

Error emit(mlir::ModuleOp module, const rt::Program &program, const EmitOptions &options,
           StringRef path) {
  Expected<std::unique_ptr<TargetMachine>> machine = makeTargetMachine(options);
  if (!machine) {
    return machine.takeError();
  }
  LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      mlir::translateModuleToLLVMIR(module, context, program.modelName);
  if (!code) {
    return fail("the module is not in the LLVM dialect");
  }
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  prepareKernels(*code, options.sanitize);
  if (Error error = addKernelTable(*code, program, iterationsOf(module))) {
    return error;
  }
  optimize(*code, **machine, options);
  return writeObject(*code, **machine, path);
}

} // namespace

void registerEmitTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

LogicalResult emitObject(mlir::ModuleOp module, const rt::Program &program,
                         const EmitOptions &options, StringRef path) {
  if (Error error = emit(module, program, options, path)) {
    return module.emitError("cannot emit '") << path << "': " << toString(std::move(error));
  }
  return success();
}

} // namespace weft
