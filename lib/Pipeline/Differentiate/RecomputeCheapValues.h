//===- RecomputeCheapValues.h - values that backward recomputes -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer keeps the values that backward needs from forward to backward, and all layers
// keep theirs at once: most of a step's activations. Some of these values take hardly
// longer to compute than to read, such as results of an activation function or a norm.
// Backward recomputes them before their first use, from values that are kept anyway.
// A graph has no layers: its forward and backward are two parts of the step.
//
// An op is cheap to recompute if backward has its operands anyway, or if they do not grow with the
// batch. So is a chain of such ops in which each op has only one large operand. A chain ends at an
// op of several large values, as a residual sum: otherwise backward would recompute everything from
// the model's input.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H

#include "mlir/IR/Block.h"

namespace weft {

/// Copies into `backward` those ops of `forward` whose results `backward` uses, if they are cheap
/// and need no further value that grows with the batch. The copies have the attribute
/// `kRecomputedAttrName`. If the module has `kRecomputesAttrName`, it copies the ops of these names
/// instead. `backward` may use values of `forward`; the caller turns the remaining
/// ones into arguments later.
void recomputeCheapValues(mlir::Block &forward, mlir::Block &backward);

/// Does the same in one block, whose forward part ends with `end`.
void recomputeCheapValues(mlir::Operation *end);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H
