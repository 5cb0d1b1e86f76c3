//===- HostTarget.cpp - the processor that kernels are for ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostTarget.h"

#include "CodeGeneration.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

namespace weft {

using namespace llvm;

namespace {

/// Returns all features of the host as a feature string.
std::string hostFeatures() {
  SubtargetFeatures features;
  for (const auto &feature : sys::getHostCPUFeatures()) {
    features.AddFeature(feature.getKey(), feature.getValue());
  }
  return features.getString();
}

Expected<const Target *> findTarget(const Triple &triple) {
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    return createStringError(error);
  }
  return target;
}

/// Fails for processors and features for which LLVM would end the process or only warn.
Error checkProcessor(const Target &target, const Triple &triple, StringRef cpu,
                     StringRef features) {
  std::unique_ptr<MCSubtargetInfo> known(target.createMCSubtargetInfo(triple, "", ""));
  if (!known->isCPUStringValid(cpu)) {
    return createStringError("unknown processor '" + cpu + "' for " + triple.str());
  }
  std::unique_ptr<MCSubtargetInfo> chosen(target.createMCSubtargetInfo(triple, cpu, ""));
  if (triple.getArch() == Triple::x86_64 && !chosen->checkFeatures("+64bit")) {
    return createStringError("processor '" + cpu + "' does not run 64-bit code");
  }
  for (StringRef feature : split(features, ',')) {
    if (feature.empty()) {
      continue;
    }
    bool isKnown = any_of(known->getAllProcessorFeatures(), [&](const SubtargetFeatureKV &entry) {
      return SubtargetFeatures::StripFlag(feature) == entry.Key;
    });
    if (!isKnown || !SubtargetFeatures::hasFlag(feature)) {
      return createStringError("unknown processor feature '" + feature +
                               "', expected a name of LLVM's with + or - before it");
    }
  }
  return Error::success();
}

void addSanitizer(PassBuilder &builder, Sanitizer sanitize) {
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

} // namespace

Expected<HostTarget> resolveTarget(const EmitOptions &options) {
  InitializeNativeTarget(); // Here, where no other thread looks for targets yet.
  InitializeNativeTargetAsmPrinter();
  HostTarget host;
  host.triple = Triple(sys::getDefaultTargetTriple());
  host.optLevel = options.optLevel;
  host.sanitize = options.sanitize;
  Expected<const Target *> target = findTarget(host.triple);
  if (!target) {
    return target.takeError();
  }
  bool isNative = options.cpu == "native";
  host.cpu = isNative ? sys::getHostCPUName().str() : options.cpu;
  if (Error unknown = checkProcessor(**target, host.triple, host.cpu, options.features)) {
    return unknown;
  }
  host.features = isNative ? hostFeatures() : "";
  if (!options.features.empty()) {
    host.features += (host.features.empty() ? "" : ",") + options.features;
  }
  return host;
}

Expected<std::unique_ptr<TargetMachine>> makeTargetMachine(const HostTarget &host) {
  Expected<const Target *> target = findTarget(host.triple);
  if (!target) {
    return target.takeError();
  }
  std::unique_ptr<TargetMachine> machine(
      (*target)->createTargetMachine(host.triple, host.cpu, host.features, TargetOptions(),
                                     Reloc::PIC_, std::nullopt, codeGenLevel(host.optLevel)));
  if (!machine) {
    return createStringError("cannot generate code for " + host.triple.str());
  }
  return machine;
}

Expected<std::string> compile(llvm::Module &module, const HostTarget &target) {
  Expected<std::unique_ptr<TargetMachine>> machine = makeTargetMachine(target);
  if (!machine) {
    return machine.takeError();
  }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving =
      tuning.LoopUnrolling = target.optLevel >= 2;
  optimize(module, **machine, target.optLevel, tuning,
           [&](PassBuilder &builder) { addSanitizer(builder, target.sanitize); });
  return generate(module, **machine, CodeGenFileType::ObjectFile);
}

} // namespace weft
