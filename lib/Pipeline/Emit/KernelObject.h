//===- KernelObject.h - machine code of one kernel ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_KERNELOBJECT_H
#define WEFT_LIB_PIPELINE_EMIT_KERNELOBJECT_H

#include "HostTarget.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/IR/DerivedTypes.h"

namespace weft {

/// The numbers of buffers and immediates that a kernel takes.
struct KernelOperands {
  size_t buffers = 0, immediates = 0;
  bool operator==(const KernelOperands &) const = default;
};
KernelOperands operandsOf(mlir::LLVM::LLVMFuncOp kernel);

/// The type of a `weft::rt::KernelFunction`.
llvm::FunctionType *wrapperType(llvm::LLVMContext &context);

/// A kernel as LLVM IR before any pass, with its wrapper: a `weft::rt::KernelFunction` that takes
/// the kernel's arguments from arrays. Kernels with the same code have the same source, whatever
/// their numbers and programs.
struct KernelSource {
  std::string bitcode;
  /// The hash of everything that the object file is made from.
  std::string key;
  /// The wrapper in the object file, hidden from other libraries: "weft_run_kernel_norm_KEY".
  std::string wrapper;
};

/// Translates `kernel`, and the ops of `symbols` that it refers to. `machine` is for `target`.
/// Several threads may translate kernels of one module. Fails if the kernel is not in the LLVM
/// dialect.
llvm::Expected<KernelSource> makeSource(mlir::LLVM::LLVMFuncOp kernel,
                                        const mlir::SymbolTable &symbols,
                                        llvm::TargetMachine &machine, const HostTarget &target);

/// Returns the object file of `source`. May be called on any thread.
llvm::Expected<std::string> compileSource(const KernelSource &source, const HostTarget &target);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_KERNELOBJECT_H
