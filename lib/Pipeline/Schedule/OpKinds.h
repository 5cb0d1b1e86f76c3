//===- OpKinds.h - what becomes of an op ----------------------------------===//
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

/// Moves data between ranks: an instruction of its own.
bool isCommunication(mlir::Operation *op);

/// A matmul that a library does, of a contraction or with more: an instruction of its own.
bool isMatmul(mlir::Operation *op);

/// Computes tensors by code that the compiler generates: becomes a kernel.
bool isKernelWork(mlir::Operation *op);

/// Only puts elements of its operands in other places: a kernel that copies.
bool isRearrangement(mlir::Operation *op);

/// Erases ops without effect whose results nobody uses.
void eraseDeadOps(mlir::Block &block);
void eraseDeadOps(mlir::func::FuncOp function);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_OPKINDS_H
