//===- InferShardings.h - the shardings of one op from those of its operands ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_INFERSHARDINGS_H
#define WEFT_LIB_PIPELINE_PLAN_INFERSHARDINGS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// What an op needs and what it gives. Null where a value is no tensor.
struct OpShardings {
  llvm::SmallVector<ShardingAttr> operands, results;
};

/// A mesh axis that carries a pending sum through an op, and the operands that it does so in.
struct PendingAxis {
  mlir::StringAttr axis;
  llvm::SmallVector<unsigned> operands;
};

/// The shardings of `op` where axes cut its factors as `axesOf` says, one list for each, and carry
/// pending sums as `pending` says.
OpShardings makeShardings(ShardableOpInterface op, MeshAttr mesh, const FactorRule &rule,
                          llvm::ArrayRef<mlir::ArrayAttr> axesOf,
                          llvm::ArrayRef<PendingAxis> pending);

/// Chooses shardings for `op`, whose operands have some, so that its factor rule holds:
/// factors take the axes of the largest operand that carries them, must-replicate factors and
/// axes that are taken already none; pending sums stay where the op is additive in them and are
/// reduced elsewhere. `wanted` may say for a result how it is going to be used (or null): factors
/// that no operand carries take their axes from there.
OpShardings inferShardings(ShardableOpInterface op, MeshAttr mesh,
                           llvm::ArrayRef<ShardingAttr> wanted);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_INFERSHARDINGS_H
