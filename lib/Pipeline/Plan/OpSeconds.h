//===- OpSeconds.h - what an op takes under each of its options -----------===//
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

/// What the op computes in: that of its shortest floating-point operand or result, or what it
/// rounds them to; scalars do not count.
desc::Precision precisionOf(mlir::Operation *op);

/// Asks `op` for what it costs once, and then prices its options.
class OpSeconds {
public:
  /// Without a machine, options are ordered by what they compute and touch; without `byteSeconds`
  /// no matmul is one of bytes.
  OpSeconds(ShardableOpInterface op, const FactorRule &rule, LayoutSpaces &spaces,
            const cost::Predictor *machine, ByteSeconds *byteSeconds);

  double of(const OpOption &option) const;

private:
  struct Value {
    const planner::LayoutSpace *space;
    double bytes;
  };

  double touched(const OpOption &option) const;

  mlir::Operation *op;
  const cost::Predictor *machine;
  ByteSeconds *byteSeconds;
  llvm::StringRef kind;
  FactorRule rule;
  desc::Precision precision = desc::Precision::F32;
  double flops, bytesPerTouched;
  llvm::SmallVector<std::optional<Value>> operands, results;
  /// For each factor, which side of a matmul it is, where the op is one: each factor is in
  /// two of three tensors, and those in both operands alone are summed.
  enum class Side : uint8_t { Batch, M, N, K };
  std::optional<llvm::SmallVector<Side>> sides;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPSECONDS_H
