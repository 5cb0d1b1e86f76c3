//===- RecomputeCheapValues.h - what backward computes again --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between forward and backward a layer keeps what backward needs, and all layers
// keep theirs at once: most of a step's activations. Some of these values take
// hardly longer to compute than to read: an activation function, the result of a
// norm. These backward computes again from what is kept anyway, when it comes to
// their first use. A graph has no layers: its forward and backward are two parts of the step.
//
// An op whose operands backward has anyway, or which do not grow with the batch, is cheap to have
// again. So is a chain of such ops, as long as each has one large operand; where several large
// values come together, as in a residual sum, it ends, or all would be computed again from the
// model's input.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H

#include "mlir/IR/Block.h"

namespace weft {

/// Gives `backward` copies of the ops of `forward` whose results it uses, where these are cheap and
/// no value that grows with the batch must be kept for them. The copies bear
/// `kRecomputedAttrName`. `backward` may use values of `forward`, which have yet to become
/// its arguments.
void recomputeCheapValues(mlir::Block &forward, mlir::Block &backward);

/// The same in one block, whose forward part ends with `end`.
void recomputeCheapValues(mlir::Operation *end);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTECHEAPVALUES_H
