//===- KernelWork.h - what a kernel computes ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel function holds arithmetic on numbers and one op on tensors; or that op and maps of its
// operands and results; or several ops that are alike.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_KERNELWORK_H
#define WEFT_LIB_PIPELINE_SCHEDULE_KERNELWORK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace weft {

/// Returns the ops on tensors of a kernel, in order; none for a kernel that returns its arguments.
llvm::SmallVector<mlir::Operation *> findWork(mlir::func::FuncOp kernel);

/// Returns the last of these ops that is no map, else the last; null if there is none.
mlir::Operation *findMainWork(mlir::func::FuncOp kernel);

/// Erases the kernels that no launch runs.
void eraseUnusedKernels(mlir::ModuleOp module);

/// Returns the ops in the regions of `op`, in order: "mulf addf tanh".
std::string scalarOps(mlir::Operation &op);

/// Returns the name that a location carries, or "".
llvm::StringRef findName(mlir::Location loc);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_KERNELWORK_H
