//===- BatchRoles.h - how values depend on samples ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before the size of the batch is known, a value with a row for each sample has a dimension `?`.
// All other values that depend on samples come from an op that sums or maximizes over samples:
//
//   %loss = contract "bs->"(%losses)       %losses : tensor<?x8xf64>   per sample
//   %mean = %loss * 0.03125                %loss, %mean                 sums over samples
//   %root = sqrt(%loss)                    %root                        mixed
//   %amax = amax(%losses)                  %amax                        greatest of samples
//
// A sum over samples is the sum of the sums over any parts of the batch, and so is every additive
// function of sums: the same algebra holds for pending values, with ranks in place of parts. The
// greatest of samples is the greatest of the greatest of any parts. A mixed value can be computed
// only from all samples.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_BATCHROLES_H
#define WEFT_LIB_PIPELINE_PLAN_BATCHROLES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace weft {

/// The roles of values, in rising order: a value's role is at least that of each value that it is
/// computed from, but for ops over samples.
enum class BatchRole : uint8_t { Free, Sum, Greatest, Mixed, PerSample };

/// Returns true if `type` has a dimension of unknown size, which is the batch.
bool isPerSample(mlir::Type type);

/// Returns true if an operand or a result of `op` has a row for each sample.
bool isPerSample(mlir::Operation *op);

/// The roles of a module's values. The module must not change afterwards.
class BatchRoles {
public:
  explicit BatchRoles(mlir::ModuleOp module) : symbols(module) {}

  /// Finds the roles in `function` and all functions that it calls. Fails, with an error, if the
  /// row of a sample depends on other samples: then no part of the batch can be computed by itself.
  mlir::LogicalResult compute(mlir::func::FuncOp function);

  BatchRole of(mlir::Value value) const { return roles.lookup(value); }

private:
  mlir::LogicalResult visit(mlir::Operation &op);
  mlir::LogicalResult visitCall(CallOp call);
  mlir::LogicalResult visitPerSample(ShardableOpInterface op);
  void visitOther(mlir::Operation &op);

  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Value, BatchRole> roles;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<BatchRole>> resultsOf;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_BATCHROLES_H
