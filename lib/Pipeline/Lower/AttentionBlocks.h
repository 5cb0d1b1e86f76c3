//===- AttentionBlocks.h - attention by blocks of threads -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What devices do that have no library for an attention. The formulas are those of LowerAttention
// and LowerAttentionGrad; a block of threads takes a tile of scores at a time, and keeps what it
// adds up in registers.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H
#define WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

void lowerAttentionForDevice(Code &code, AttentionOp op, AttentionOp::Adaptor operands,
                             mlir::ValueRange results);
/// Each gradient is added up by one block in one order: first those of queries, then, the scores
/// being made again, those of keys and values.
void lowerAttentionGradForDevice(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                                 mlir::ValueRange results);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_ATTENTIONBLOCKS_H
