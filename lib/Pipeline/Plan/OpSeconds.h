//===- OpSeconds.h - seconds of an op's options ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_OPSECONDS_H
#define WEFT_LIB_PIPELINE_PLAN_OPSECONDS_H

#include "ByteSeconds.h"
#include "OpOptions.h"

#include "weft/Cost/Predictor.h"

namespace weft {

/// Returns the precision that the op computes in: that of its narrowest floating-point operand or
/// result, except scalars, or the one that it rounds operands to.
desc::Precision precisionOf(mlir::Operation *op);

/// Returns the shape on one rank by which the rate of an op with `factors` varies, if a library
/// computes it; `partsOf` gives the number of ranks that share a factor.
std::optional<cost::AttentionShape> shapeOf(const std::optional<OpCost::RateFactors> &factors,
                                            const FactorRule &rule,
                                            llvm::function_ref<int64_t(unsigned)> partsOf);

/// Prices the options of one op. Gets the op's cost once.
class OpSeconds {
public:
  /// Without a machine, prices only order options by their operations and the bytes that they
  /// touch. Without `byteSeconds`, no matmul is an FP8 matmul.
  OpSeconds(ShardableOpInterface op, const FactorRule &rule, LayoutSpaces &spaces,
            const cost::Predictor *machine, ByteSeconds *byteSeconds);

  double of(const OpOption &option) const;

  /// Returns seconds that the option takes at least in every program that is made of it: those of
  /// its matmul's operations, in the shape and precision that Schedule gives to the library; 0 for
  /// other ops, which can become part of others, and without a machine.
  double least(const OpOption &option) const;

  /// Returns seconds that the op takes at least in every program in which axes of a mesh with these
  /// sizes cut padded factors: those of its matmul's operations, shared by all ranks. Infinity if
  /// no rank computes less for padding, 0 for other ops and without a machine.
  double leastPadded(llvm::ArrayRef<int64_t> mesh) const;
  /// Returns seconds that the op takes at least on a mesh of these sizes, however its axes cut
  /// factors.
  double leastShared(llvm::ArrayRef<int64_t> mesh) const;

private:
  llvm::SmallVector<int64_t> shardsOf(const OpOption &option) const;
  /// The matmul that a library computes for the op with `sizes` of its factors, if there is a
  /// machine with times for it.
  std::optional<rt::Matmul> matmulWith(llvm::ArrayRef<int64_t> sizes) const;
  struct Value {
    const planner::LayoutSpace *space;
    double bytes;
    /// The first operand that is the same value, if that is another one.
    std::optional<size_t> sameAs;
  };

  double touched(const OpOption &option) const;

  mlir::Operation *op;
  const cost::Predictor *machine;
  ByteSeconds *byteSeconds;
  llvm::StringRef kind;
  FactorRule rule;
  desc::Precision precision = desc::Precision::F32;
  double flops, bytesPerTouched;
  std::optional<OpCost::RateFactors> rateFactors;
  llvm::SmallVector<std::optional<Value>> operands, results;
  /// If the op is a matmul, the side of each factor: a factor is in two of the three tensors or,
  /// for batches, in all, and those that only the operands have are summed.
  enum class Side : uint8_t { Batch, M, N, K };
  std::optional<llvm::SmallVector<Side>> sides;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPSECONDS_H
