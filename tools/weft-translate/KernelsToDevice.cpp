//===- KernelsToDevice.cpp - from kernels to code for devices -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "weft/InitAll.h"
#include "weft/Pipeline/Emit/DeviceCode.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace weft;

namespace {

llvm::Expected<std::string> toPtx(ModuleOp module) {
  llvm::Expected<CudaToolkit> toolkit = findCudaToolkit();
  return toolkit ? emitPtx(module, *toolkit) : toolkit.takeError();
}

/// A line for each entry on each architecture.
llvm::Expected<std::string> toResources(ModuleOp module) {
  llvm::Expected<CudaToolkit> toolkit = findCudaToolkit();
  if (!toolkit) {
    return toolkit.takeError();
  }
  llvm::Expected<DeviceImages> images = emitImages(module, *toolkit);
  if (!images) {
    return images.takeError();
  }
  std::string text;
  for (const Cubin &cubin : images->cubins) {
    for (const EntryResources &entry : cubin.entries) {
      text += llvm::formatv("sm_{0} {1}: {2} registers, {3} bytes of stack, {4} spilled, {5} "
                            "shared\n",
                            cubin.architecture, entry.name, entry.registers, entry.stackBytes,
                            entry.spillBytes, entry.sharedBytes);
    }
  }
  return text;
}

void add(StringRef name, StringRef help, llvm::Expected<std::string> (*translate)(ModuleOp)) {
  TranslateFromMLIRRegistration registration(
      name, help,
      [translate](ModuleOp module, llvm::raw_ostream &output) -> LogicalResult {
        llvm::Expected<std::string> text = translate(module);
        if (!text) {
          llvm::errs() << llvm::toString(text.takeError()) << "\n";
          return failure();
        }
        output << *text;
        return success();
      },
      registerAllWeft);
}

} // namespace

void weft::registerDeviceTranslations() {
  add("kernels-to-ptx", "module after the phase lower to PTX for CUDA devices", toPtx);
  add("kernels-to-resources",
      "module after the phase lower to what its kernels take of CUDA devices", toResources);
}
