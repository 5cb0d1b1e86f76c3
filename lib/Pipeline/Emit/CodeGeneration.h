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

/// A kernel's last arguments: the phase, and the first and the end of its iterations.
inline constexpr unsigned kPartArguments = 3;

/// For each kernel by name, a number for each phase, as how many iterations it has.
using KernelIterations = llvm::StringMap<llvm::SmallVector<int64_t>>;

/// What `module`, which the Lower phase has made, says of its kernels.
KernelIterations iterationsOf(mlir::ModuleOp module);

/// How many threads of a device take an iteration together, 0 where one does; without the kernels
/// where one always does.
KernelIterations threadsOf(mlir::ModuleOp module);

/// The kernels that devices are to run: those of the module inside of `module` that is for them,
/// else those of the host.
mlir::ModuleOp devicesOf(mlir::ModuleOp module);

/// `module` as LLVM IR for `machine`. Fails if it is not all in the LLVM dialect.
llvm::Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::StringRef name,
                                                        llvm::TargetMachine &machine,
                                                        llvm::LLVMContext &context);

/// 0 to 3, as compilers count.
llvm::CodeGenOptLevel codeGenLevel(unsigned level);

/// Runs LLVM's passes of `level`. `prepare` may add passes of its own.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level,
              llvm::PipelineTuningOptions tuning,
              llvm::function_ref<void(llvm::PassBuilder &)> prepare = {});

/// Assembly or machine code of `module`.
llvm::Expected<std::string> generate(llvm::Module &module, llvm::TargetMachine &machine,
                                     llvm::CodeGenFileType type);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_CODEGENERATION_H
