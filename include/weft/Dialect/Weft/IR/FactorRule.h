//===- FactorRule.h - how an op may be sharded, as data -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// A factor is an index that an op iterates over, in the sense of an einsum: the
// matmul of x[b,s,k] and w[n,k] has the factors b, s, n, k. A dimension of an
// operand or result is one factor. Cutting a factor over a mesh axis cuts every
// dimension that carries it, and each rank computes its part of the iteration:
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
// Attention of queries at positions s with keys and values at positions t is the example of a
// permutation: its partner is s. With s alone cut over cp each rank has some queries and all keys.
// With both cut over cp a rank has as many keys as queries, and sees the others' as they come by.
// A sum over the partner or over the permuted factor is then made on the way, and nothing of it is
// left pending: the gradient of the keys, a sum over s, travels with the keys.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_FACTORRULE_H
#define WEFT_DIALECT_WEFT_IR_FACTORRULE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {
class ZigzagAttr;
enum class ReductionKind : uint32_t;

enum class FactorKind : uint8_t { PassThrough, Reduction, MustReplicate, Permutation };

struct Factor {
  /// Length of the dimensions that carry it, or the groups in it that no cut may go through;
  /// `ShapedType::kDynamic` for the batch.
  int64_t size;
  FactorKind kind;
  /// False where dimensions that carry it are of different lengths, as the two sides of a reshape
  /// are: multiples of `size`, and the number of shards divides that. The op itself checks them.
  bool hasOneLength = true;
  /// Of a permutation, the factor that its axes cut as well.
  unsigned partner = 0;
};

/// The factors of one op. Operands that are no tensors have no dimensions here.
struct FactorRule {
  llvm::SmallVector<Factor> factors;
  /// For each operand and result, the factor of each dimension.
  llvm::SmallVector<llvm::SmallVector<unsigned>> operands, results;
  /// For each result, the operator that joins its partial values.
  llvm::SmallVector<ReductionKind> reductions;
};

/// Builds the rule of `op` from one letter for each dimension, as an einsum writes
/// it: operands and results in order, "" for a scalar or an operand that is no tensor.
/// Letters in `mustReplicate` name factors that cannot be cut. A factor missing in some
/// result is a reduction, by the operator of that result in `reductions` (sum where the
/// list is empty).
FactorRule makeFactorRule(mlir::Operation *op, llvm::ArrayRef<std::string> operands,
                          llvm::ArrayRef<std::string> results, llvm::StringRef mustReplicate = "",
                          llvm::ArrayRef<ReductionKind> reductions = {});

/// As `makeFactorRule`, with letters whose dimensions are of different lengths, the least of which
/// is the factor's size.
FactorRule makeFactorRuleOfLengths(mlir::Operation *op, llvm::ArrayRef<std::string> operands,
                                   llvm::ArrayRef<std::string> results,
                                   llvm::StringRef ofDifferentLengths,
                                   llvm::StringRef mustReplicate = "");

/// The dimensions that carry `factor` of `op`: of operands, then of results.
llvm::SmallVector<std::pair<mlir::Value, int64_t>>
carriersOf(mlir::Operation *op, const FactorRule &rule, unsigned factor);

/// The axes that cut each factor of `op`, whose tensors agree on them; none where none has a
/// sharding.
llvm::SmallVector<mlir::ArrayAttr> axesOfFactors(mlir::Operation *op, const FactorRule &rule);

/// The number of the rule's permutation, if it has one. There is at most one.
std::optional<unsigned> findPermutation(const FactorRule &rule);

/// Whether `axis`, of those that cut each factor, cuts a permutation: then it cuts the partner too,
/// and leaves no result pending.
bool isPermuted(const FactorRule &rule, llvm::ArrayRef<mlir::ArrayAttr> axesOf,
                mlir::Attribute axis);

/// Letters "ab..." for a tensor of `rank` dimensions, beginning with `first`.
std::string letters(int64_t rank, char first = 'a');

/// Where a shard lies in the whole tensor: the offset of each position factor, of type `index`, and
/// the factor's size in the whole, empty for ops that need none. Nothing at all: it is the whole.
struct Position {
  mlir::ValueRange offsets;
  llvm::ArrayRef<int64_t> globalSizes;
};

/// constant + perSample * batch.
struct BatchPolynomial {
  double constant = 0, perSample = 0;
  BatchPolynomial &operator+=(const BatchPolynomial &other) {
    constant += other.constant;
    perSample += other.perSample;
    return *this;
  }
  double at(double batch) const { return constant + perSample * batch; }
};

/// What an op costs on the whole (global) tensors.
struct OpCost {
  /// Floating-point operations; a multiply-add counts two.
  BatchPolynomial flops;
  /// Bytes read and written, each operand and result once.
  BatchPolynomial bytes;
  /// Those of matmuls that the model asks for, of which a share of peak is told: what
  /// an op computes again is in `flops` alone.
  BatchPolynomial modelFlops = {};
};

/// Matmul of `shape`, linear in the batch where a dimension is unknown.
BatchPolynomial elementCount(llvm::ArrayRef<int64_t> shape, double scale = 1);

/// Bytes of all operands and results, and `flopsPerElement` for each element of the
/// largest of them.
OpCost elementwiseCost(mlir::Operation *op, double flopsPerElement);
/// Bytes of all operands and results, and `flopsPerPoint` for each point of the op's
/// iteration space, all factors together.
OpCost iterationCost(mlir::Operation *op, double flopsPerPoint);
/// The verifier of every op with a factor rule, see ShardableOpInterface.
mlir::LogicalResult verifyFactorRule(mlir::Operation *op);
/// Whether `op` is additive in the operands numbered `operands` together, or in one of them: then
/// it gives nothing where these are zero.
bool isAdditiveInSome(mlir::Operation *op, llvm::ArrayRef<unsigned> operands);
/// Whether `order` is one of the positions of a whole of `unpadded` of them, of which an op has
/// `stored`: all, with their padding, or a shard, which does not know how long the padding is.
bool isOrderOf(ZigzagAttr order, int64_t stored, bool isWhole, int64_t unpadded);
/// Whether `offsets` and `globalSizes` are as ShardableOpInterface::setPosition gives them: one
/// for each position factor, or neither where the op works on the whole; sizes alone where that is
/// padded.
mlir::LogicalResult verifyPosition(mlir::Operation *op, mlir::ValueRange offsets,
                                   std::optional<llvm::ArrayRef<int64_t>> globalSizes);
/// Whether `columns`, if it is there, is one number from 1 to `most`: the elements of a row that
/// are no padding.
mlir::LogicalResult verifyUnpaddedColumns(mlir::Operation *op,
                                          std::optional<llvm::ArrayRef<int64_t>> columns,
                                          int64_t most);
} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_FACTORRULE_H
