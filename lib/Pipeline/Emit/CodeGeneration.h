//===- CodeGeneration.h - LLVM's part of emitting -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_CODEGENERATION_H
#define WEFT_LIB_PIPELINE_EMIT_CODEGENERATION_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <string>

namespace weft {

/// The number of a kernel's last arguments: the phase, and the first and the end of its iterations.
inline constexpr unsigned kPartArguments = 3;

/// For each kernel by name, one number for each phase, such as its number of iterations.
using KernelIterations = llvm::StringMap<llvm::SmallVector<int64_t>>;

/// Returns the iterations of the kernels of `module`, the result of the Lower phase.
KernelIterations iterationsOf(mlir::ModuleOp module);

/// Returns how many threads of a device take an iteration together, 0 for single threads; has no
/// entry for kernels with single threads only.
KernelIterations threadsOf(mlir::ModuleOp module);

/// Returns the module of the kernels that devices run: the one for devices inside of `module`, else
/// `module` itself.
mlir::ModuleOp devicesOf(mlir::ModuleOp module);

/// Translates `module` to LLVM IR for `machine`. Fails if an op is not in the LLVM dialect.
llvm::Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::StringRef name,
                                                        llvm::TargetMachine &machine,
                                                        llvm::LLVMContext &context);

/// Converts a level of 0 to 3, as in C compilers.
llvm::CodeGenOptLevel codeGenLevel(unsigned level);

/// Runs LLVM's passes of `level`. `prepare` may add passes.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level,
              llvm::PipelineTuningOptions tuning,
              llvm::function_ref<void(llvm::PassBuilder &)> prepare = {});

/// Runs `body` for each number below `count`, on as many threads as the context has. Fails with the
/// error of the lowest number.
llvm::Error forEachInParallel(mlir::MLIRContext *context, size_t count,
                              llvm::function_ref<llvm::Error(size_t)> body);

/// Returns assembly or machine code of `module`.
llvm::Expected<std::string> generate(llvm::Module &module, llvm::TargetMachine &machine,
                                     llvm::CodeGenFileType type);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_CODEGENERATION_H
