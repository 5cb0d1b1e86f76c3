//===- Contraction.h - an einsum in as few dimensions as possible ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_CONTRACTION_H
#define WEFT_LIB_PIPELINE_LOWER_CONTRACTION_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft::lower {

/// A `weft.contract` without dimensions of size one, in which neighbours that always occur together
/// and in this order are merged: "bsk,nk->bsn" has three dimensions, (bs), k and n.
struct Contraction {
  using Dims = llvm::SmallVector<unsigned, 4>;

  explicit Contraction(ContractOp op);

  llvm::SmallVector<int64_t> sizes;
  /// The dimensions of each operand, in order.
  llvm::SmallVector<Dims> inputs;
  Dims output;

  bool isReduced(unsigned dim) const { return !llvm::is_contained(output, dim); }
  llvm::SmallVector<int64_t> shapeOf(const Dims &term) const;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_CONTRACTION_H
