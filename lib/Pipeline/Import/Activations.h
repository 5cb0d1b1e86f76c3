//===- Activations.h - the nonlinear functions of models ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_ACTIVATIONS_H
#define WEFT_LIB_PIPELINE_IMPORT_ACTIVATIONS_H

#include "ModelBuilder.h"

namespace weft {

/// x/2 · (1 + erf(x / √2)).
mlir::Value gelu(mlir::ImplicitLocOpBuilder &scalars, mlir::Value x);

/// x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).
mlir::Value geluTanh(mlir::ImplicitLocOpBuilder &scalars, mlir::Value x);

/// x / (1 + exp(-x)) as x/2 · (1 + tanh(x/2)): the same function, but for x far below zero neither
/// it nor its derivative divides infinity by infinity.
mlir::Value silu(mlir::ImplicitLocOpBuilder &scalars, mlir::Value x);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_ACTIVATIONS_H
