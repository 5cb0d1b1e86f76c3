//===- MatmulRows.h - alignment of the rows of matmuls --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries of devices multiply at a fraction of their rate if the rows of a matrix do not begin at
// multiples of 16 bytes, as those of logits for 50257 words:
//
//   contract "bsk,nk->bsn"(%x, %table)    rows of n elements, 100514 bytes in bf16
//
// The length of rows is that of the dimension that is contiguous in memory, or a multiple of it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_MATMULROWS_H
#define WEFT_LIB_PIPELINE_PLAN_MATMULROWS_H

#include "weft/Cost/Predictor.h"
#include "weft/Pipeline/Dimensions.h"

#include "llvm/ADT/MapVector.h"

namespace weft {

/// Returns the alignment of the rows of `op` on a rank that has `sizes` of the factors of `rule`;
/// of an op that becomes no matmul of a library, aligned.
cost::Rows rowsOf(mlir::Operation *op, const FactorRule &rule, llvm::ArrayRef<int64_t> sizes);

/// Returns the matmul that a library computes for `op` on a rank that has `sizes` of the factors of
/// `rule`; none for an op that no library computes.
std::optional<rt::Matmul> matmulOf(ContractOp op, const FactorRule &rule,
                                   llvm::ArrayRef<int64_t> sizes);

/// A class of dimensions that unaligned matmuls have contiguous in memory.
struct UnalignedClass {
  /// A shard with a multiple of these elements has aligned rows.
  int64_t unit = 1;
  /// The operations of these matmuls, and of all ops with such a dimension, in all functions, as
  /// often as they are called.
  double unalignedFlops = 0, flops = 0;
};

/// Returns these classes of a module without shardings, in which `shardsOf` says how many shards a
/// class will have.
llvm::MapVector<uint32_t, UnalignedClass>
findUnalignedClasses(mlir::ModuleOp module, Dimensions &dimensions,
                     llvm::function_ref<int64_t(uint32_t)> shardsOf);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_MATMULROWS_H
