//===- FactorRule.h - the shardings that an op allows, as data ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// A factor is an index that an op iterates over, in the sense of an einsum: the
// matmul of x[b,s,k] and w[n,k] has the factors b, s, n, k. A dimension of an
// operand or result is one factor. Cutting a factor over a mesh axis cuts every
// dimension that carries it, and each rank computes its part of the iteration space:
//
//   factor in all results        pass-through: each rank has its shard
//   factor missing in a result   reduction: each rank has a partial value of it, joined
//                                by the result's reduction operator
//   must-replicate               the op cannot be cut along it (a norm's hidden size)
//   permutation                  every shard is needed by every rank, one at a time: cut over axes
//                                that cut its partner too, shards go from rank to rank
//
//   x[b,s,k] w[n,k] -> y[b,s,n]       b over dp: y[b{dp},s,n]
//                                     k over tp: y[b,s,n] unreduced = sum{tp}
//
// Ring attention is the example of a permutation: queries have positions s, keys and values
// positions t, and the partner of t is s. With s alone cut over cp, each rank has some queries and
// all keys. With both cut over cp, a rank has as many keys as queries, and the other ranks' keys
// are passed on to it one shard at a time. Sums over the partner or over the permuted factor are
// then complete after the last turn and not pending: the gradient of the keys, a sum over s,
// travels with the keys.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_FACTORRULE_H
#define WEFT_DIALECT_WEFT_IR_FACTORRULE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {
enum class ReductionKind : uint32_t;

enum class FactorKind : uint8_t { PassThrough, Reduction, MustReplicate, Permutation };

struct Factor {
  /// Length of the dimensions that carry the factor, or their number of groups, if no cut may go
  /// through a group; `ShapedType::kDynamic` for the batch.
  int64_t size;
  FactorKind kind;
  /// False if the dimensions that carry the factor have different lengths, as the two sides of a
  /// reshape: these are multiples of `size`, and the number of shards divides `size`. The op itself
  /// checks the lengths.
  bool hasOneLength = true;
  /// For a permutation, the number of the factor that its axes cut as well.
  unsigned partner = 0;
};

/// The factors of one op. Operands that are not tensors have no dimensions here.
struct FactorRule {
  llvm::SmallVector<Factor> factors;
  /// For each operand and result, the factor of each dimension.
  llvm::SmallVector<llvm::SmallVector<unsigned>> operands, results;
  /// For each result, the operator that joins its partial values.
  llvm::SmallVector<ReductionKind> reductions;
};

/// Builds the rule of `op` from one letter for each dimension, as in an einsum: operands and
/// results in order, "" for a scalar or an operand that is not a tensor. Letters in `mustReplicate`
/// name factors that cannot be cut. A factor missing in a result is a reduction, by the operator of
/// that result in `reductions` (sum if the list is empty).
FactorRule makeFactorRule(mlir::Operation *op, llvm::ArrayRef<std::string> operands,
                          llvm::ArrayRef<std::string> results, llvm::StringRef mustReplicate = "",
                          llvm::ArrayRef<ReductionKind> reductions = {});

/// As `makeFactorRule`, but the dimensions of the letters in `ofDifferentLengths` have different
/// lengths, the least of which is the factor's size.
FactorRule makeFactorRuleOfLengths(mlir::Operation *op, llvm::ArrayRef<std::string> operands,
                                   llvm::ArrayRef<std::string> results,
                                   llvm::StringRef ofDifferentLengths,
                                   llvm::StringRef mustReplicate = "");

/// Returns the dimensions that carry `factor` of `op`: of operands, then of results.
llvm::SmallVector<std::pair<mlir::Value, int64_t>>
carriersOf(mlir::Operation *op, const FactorRule &rule, unsigned factor);

/// Returns the axes that cut each factor of `op`; no axes if no tensor has a sharding. REQUIRES:
/// all tensors agree on the axes.
llvm::SmallVector<mlir::ArrayAttr> axesOfFactors(mlir::Operation *op, const FactorRule &rule);

/// Returns the number of the rule's permutation, if it has one. There is at most one.
std::optional<unsigned> findPermutation(const FactorRule &rule);

/// Returns true if `axis` cuts a permutation. It then cuts the partner too, and leaves no result
/// pending. `axesOf` has the axes that cut each factor.
bool isPermuted(const FactorRule &rule, llvm::ArrayRef<mlir::ArrayAttr> axesOf,
                mlir::Attribute axis);

/// Returns `rank` letters "ab...", beginning with `first`.
std::string letters(int64_t rank, char first = 'a');

/// Verifies an op with a factor rule, see ShardableOpInterface.
mlir::LogicalResult verifyFactorRule(mlir::Operation *op);
/// Returns true if `op` is additive in the operands numbered `operands` together, or in one of
/// them: then its results are zero if these operands are.
bool isAdditiveInSome(mlir::Operation *op, llvm::ArrayRef<unsigned> operands);

/// Returns true if tensors of `op` may be padded along `factor`, see PaddingOpInterface.
bool mayBePadded(mlir::Operation *op, unsigned factor);
/// The answer of ops that do not say it: dimensions of one length that may be cut may be padded.
bool mayBePaddedByRule(mlir::Operation *op, unsigned factor);
/// Returns true if padding along `factor` adds nothing to a result of `op`, see PaddingOpInterface;
/// of ops that do not say it, if the op is additive in some of `zeros`.
bool isNothingBeyond(mlir::Operation *op, unsigned factor, llvm::ArrayRef<unsigned> zeros,
                     unsigned result);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_FACTORRULE_H
