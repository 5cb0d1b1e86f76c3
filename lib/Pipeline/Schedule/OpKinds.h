//===- OpKinds.h - kinds of ops in the schedule ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_OPKINDS_H
#define WEFT_LIB_PIPELINE_SCHEDULE_OPKINDS_H

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

inline bool isKernel(mlir::func::FuncOp function) { return function->hasAttr(kTiedAttrName); }

/// Returns true if `op` moves data between ranks: it becomes an instruction of its own.
bool isCommunication(mlir::Operation *op);

/// Returns true if a library's matmul, perhaps with an epilogue, computes `op`: it becomes an
/// instruction of its own.
bool isMatmul(mlir::Operation *op);

/// Returns true if the compiler generates code for `op`: it becomes a kernel.
bool isKernelWork(mlir::Operation *op);

/// Returns true if `op` only moves elements of its operands to other places: a kernel that copies.
bool isRearrangement(mlir::Operation *op);

/// Erases ops without effect whose results are unused.
void eraseDeadOps(mlir::Block &block);
void eraseDeadOps(mlir::func::FuncOp function);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_OPKINDS_H
