//===- AttentionBlocks.h - attention by blocks of threads -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code for attention that devices run if their library lacks one. The formulas are those of
// LowerAttention and LowerAttentionGrad; a block of threads takes one tile of scores at a time, and
// keeps its sums in registers.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H
#define WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

void lowerAttentionForDevice(Code &code, AttentionOp op, AttentionOp::Adaptor operands,
                             mlir::ValueRange results);
/// One block sums up each gradient, in a fixed order: first the gradients of queries, then those of
/// keys and values, for which it computes the scores again.
void lowerAttentionGradForDevice(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                                 mlir::ValueRange results);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H
