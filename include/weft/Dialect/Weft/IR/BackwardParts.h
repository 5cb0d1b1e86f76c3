//===- BackwardParts.h - input gradients apart from weight gradients -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Others wait for some results of a function, as a pipeline stage waits for the gradients that the
// one behind it sends, and for the rest nobody does, as for gradients of weights, which are only
// added up. The first part of a function is what the former need; what is left can be done later.
// A value of the first part that the second one needs has to be kept until then, so an op of the
// second goes back to the first if
//
//   - it does little, an amount in proportion to its largest tensor, as elementwise arithmetic, a
//     norm or a sum, and no matmul;
//   - its operands are there;
//   - at most half as many bytes have to be kept if its results are, in place of the operands that
//     nothing else in the second part reads.
//
// So the gradient of a scale, or the operand of a matmul that is recomputed of two activations, are
// of the first part; a bias's gradient is of the second, as the matmul of its weight keeps the same
// operand.
//
// A call has two parts, too: those of its function with the results that the first part needs. What
// is computed of no tensor, as a read or a table, is in each part that uses it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_BACKWARDPARTS_H
#define WEFT_DIALECT_WEFT_IR_BACKWARDPARTS_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <memory>
#include <vector>

namespace weft {

/// From split-backward on, on a function of a micro-batch: it computes gradients of weights, for
/// which no other stage waits, so a schedule may place it behind the rest of backward. Unit.
inline constexpr llvm::StringLiteral kWeightGradientsAttrName = "weft.weight_gradients";

/// How names of the two functions end that split-backward makes of one, and so names of the bodies
/// of an instruction table.
inline constexpr llvm::StringLiteral kInputGradientsSuffix = "_inputs";
inline constexpr llvm::StringLiteral kWeightGradientsSuffix = "_weights";

/// The two parts of a function with one block.
struct FunctionParts {
  mlir::func::FuncOp function;
  /// Ops of each part, in order. Calls that are in both are in `calls`, and cut as their functions
  /// are; ops on no tensor are in both if both use them.
  llvm::SetVector<mlir::Operation *> first, second;
  llvm::MapVector<mlir::Operation *, const FunctionParts *> calls;
  /// The arguments that each part uses.
  llvm::BitVector firstArguments, secondArguments;
  /// The results that the first part gives; the second gives the others.
  llvm::BitVector firstResults;
  /// Values of the first part that the second one uses, beside what calls in both keep.
  llvm::SetVector<mlir::Value> kept;
};

/// Cuts functions in two. Not for two threads at once. REQUIRES: the module does not change while
/// it is used, and no function calls itself.
class BackwardParts {
public:
  explicit BackwardParts(mlir::ModuleOp module) : symbols(module) {}

  /// Returns the parts of a function for the results that others wait for.
  const FunctionParts &of(mlir::func::FuncOp function, const llvm::BitVector &needed);

private:
  /// Returns true if all ops of `op`, which may be a call, do little.
  bool doesLittle(mlir::Operation *op);
  mlir::func::FuncOp calleeOf(mlir::Operation *call) {
    return symbols.lookup<mlir::func::FuncOp>(mlir::cast<CallOp>(call).getCallee());
  }

  class Cutter;

  mlir::SymbolTable symbols;
  /// By function and needed results.
  std::map<std::pair<mlir::Operation *, std::vector<bool>>, std::unique_ptr<FunctionParts>> known;
  llvm::DenseMap<mlir::Operation *, bool> littleFunctions;
};

/// Returns the results of a chunk's function of a micro-batch for which other chunks wait, given
/// its first call in a root: those that reach transfers, or calls of other functions of
/// micro-batches. REQUIRES: a second call of the function gets the sums of the first.
llvm::BitVector findAwaitedResults(CallOp first, const mlir::SymbolTable &symbols);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_BACKWARDPARTS_H
