//===- EmitObject.cpp - machine code for kernels -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeGeneration.h"
#include "KernelTable.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
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

void watch(PassBuilder &builder, Sanitizer sanitize) {
  builder.registerOptimizerLastEPCallback(
      [sanitize](ModulePassManager &manager, OptimizationLevel, ThinOrFullLTOPhase) {
        if (sanitize == Sanitizer::Address) {
          manager.addPass(AddressSanitizerPass(AddressSanitizerOptions()));
        } else if (sanitize == Sanitizer::Thread) {
          manager.addPass(ModuleThreadSanitizerPass());
          manager.addPass(createModuleToFunctionPassAdaptor(ThreadSanitizerPass()));
        }
      });
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

/// Of a multiprocessor of every architecture that code is made for.
constexpr uint64_t kThreadsEach = 2048;
/// Of a thread's stack, what a context has from its start: the default of its limit.
constexpr uint64_t kContextStackBytes = 1024;

/// Of the architecture that takes most. Kernels that a library may do are left out: where it does
/// them they are not loaded.
void noteDevice(rt::Program &program, const DeviceImages &images,
                std::optional<int64_t> multiprocessors) {
  auto isLeftOut = [&](StringRef entry) {
    StringRef name = entry.take_front(entry.rfind("_phase_"));
    return any_of(program.kernels, [&](const rt::Kernel &kernel) {
      return kernel.attention && name == kernel.name;
    });
  };
  uint64_t code = 0, stack = 0;
  for (const Cubin &cubin : images.cubins) {
    code = std::max<uint64_t>(code, cubin.bytes.size() + cubin.keptBytes);
    for (const EntryResources &entry : cubin.entries) {
      if (entry.stackBytes > stack && !isLeftOut(entry.name)) {
        stack = entry.stackBytes;
      }
    }
  }
  for (rt::DeviceUse &use : program.deviceUses) {
    if (use.part == rt::DevicePart::Code) {
      use.bytes = code;
    } else if (use.part == rt::DevicePart::Stacks &&
               (multiprocessors || stack <= kContextStackBytes)) {
      use.bytes = (std::max(stack, kContextStackBytes) - kContextStackBytes) * kThreadsEach *
                  uint64_t(multiprocessors.value_or(0));
    }
  }
}

Error emit(mlir::ModuleOp module, rt::Program &program, const EmitOptions &options,
           StringRef path) {
  Expected<std::unique_ptr<TargetMachine>> machine = makeTargetMachine(options);
  if (!machine) {
    return machine.takeError();
  }
  LLVMContext context;
  Expected<std::unique_ptr<llvm::Module>> code =
      translate(module, program.modelName, **machine, context);
  if (!code) {
    return code.takeError();
  }
  prepareKernels(**code, options.sanitize);
  bool isForDevices = options.target == TargetKind::Cuda;
  mlir::ModuleOp devices = devicesOf(module);
  DeviceImages images;
  if (isForDevices) { // First: the program, which tells what they take, is part of the table.
    Expected<CudaToolkit> toolkit = findCudaToolkit();
    Expected<DeviceImages> made = toolkit ? emitImages(module, *toolkit) : toolkit.takeError();
    if (!made) {
      return made.takeError();
    }
    images = std::move(*made);
    noteDevice(program, images, options.multiprocessors);
  }
  if (Error error = addKernelTable(**code, program, iterationsOf(module),
                                   isForDevices ? iterationsOf(devices) : KernelIterations(),
                                   isForDevices ? threadsOf(devices) : KernelIterations())) {
    return error;
  }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving =
      tuning.LoopUnrolling = options.optLevel >= 2;
  if (isForDevices) {
    addImages(**code, images);
  }
  optimize(**code, **machine, options.optLevel, tuning,
           [&](PassBuilder &builder) { watch(builder, options.sanitize); });
  Expected<std::string> object = generate(**code, **machine, CodeGenFileType::ObjectFile);
  return object ? writeWhole(*object, path) : object.takeError();
}

} // namespace

void registerEmitTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

LogicalResult emitObject(mlir::ModuleOp module, rt::Program &program, const EmitOptions &options,
                         StringRef path) {
  if (Error error = emit(module, program, options, path)) {
    return module.emitError("cannot emit '") << path << "': " << toString(std::move(error));
  }
  return success();
}

} // namespace weft
