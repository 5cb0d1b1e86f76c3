//===- Fp8Ops.h - FP8 encoding and matmuls -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These ops have a header of their own because only Schedule and later phases know FP8 elements.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_FP8OPS_H
#define WEFT_DIALECT_WEFT_IR_FP8OPS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Returns tensor<f32>.
mlir::RankedTensorType scalarType(mlir::MLIRContext *context);

/// Returns the element type of tensors of `format`.
mlir::FloatType elementTypeOf(mlir::MLIRContext *context, Float8 format);

} // namespace weft

#define GET_OP_CLASSES
#include "weft/Dialect/Weft/IR/WeftFp8Ops.h.inc"

#endif // WEFT_DIALECT_WEFT_IR_FP8OPS_H
