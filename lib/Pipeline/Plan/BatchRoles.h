//===- BatchRoles.h - what each value is to the samples of a step ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before the batch has a number, `?` stands for it wherever a value has a row for each sample. What
// else depends on samples was summed over them by some op, or comes from such sums:
//
//   %loss = contract "bs->"(%losses)       %losses : tensor<?x8xf64>   per sample
//   %mean = %loss * 0.03125                %loss, %mean                 sums over samples
//   %root = sqrt(%loss)                    %root                        mixed
//   %amax = amax(%losses)                  %amax                        greatest of samples
//
// A sum over samples is the sum of those of any parts of the batch, and so is what is additive in
// sums: the algebra is that of values that are pending, as if the parts were ranks. The greatest of
// samples is the greatest of those of any parts. What is mixed is known only when all samples were
// seen.
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

/// In rising order: what comes from several is at least each of them.
enum class BatchRole : uint8_t { Free, Sum, Greatest, Mixed, PerSample };

/// Whether `type` has a dimension of unknown size, which is the batch.
bool isPerSample(mlir::Type type);

/// Whether `op` takes or gives a row for each sample.
bool isPerSample(mlir::Operation *op);

/// Holds for the module as it was.
class BatchRoles {
public:
  explicit BatchRoles(mlir::ModuleOp module) : symbols(module) {}

  /// Finds the roles in `function` and all that it calls. Fails, with an error, where a row of one
  /// sample depends on what is known only when other samples were seen: then no part of the batch
  /// can be computed by itself.
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
