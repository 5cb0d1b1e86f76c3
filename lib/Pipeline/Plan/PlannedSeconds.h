//===- PlannedSeconds.h - what ops of a planned module take ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_PLANNEDSECONDS_H
#define WEFT_LIB_PIPELINE_PLAN_PLANNEDSECONDS_H

#include "OpSeconds.h"

#include "weft/Cost/Predictor.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Planner/Prices.h"

#include "llvm/ADT/MapVector.h"

#include <string>
#include <vector>

namespace weft {

/// Returns the bytes of the whole tensor; 0 if the type is no tensor.
double wholeBytes(mlir::Type type);
/// Returns the bytes of one rank's shard.
double localBytes(mlir::Type type);

/// What an op takes on one rank.
struct PlannedOp {
  double computing = 0;
  /// The axes of the mesh that values go over ("dp,tp" for both at once), with the seconds.
  std::vector<std::pair<std::string, double>> sending;

  double seconds() const;
};

/// Prices the ops of one module whose types have shardings, each by itself. Not for two threads at
/// once.
class PlannedSeconds {
public:
  /// Without a machine, prices operations and bytes. Without `byteSeconds`, no matmul is an FP8
  /// matmul. Both must outlive the object.
  PlannedSeconds(mlir::ModuleOp module, const cost::Predictor *machine, ByteSeconds *byteSeconds);

  /// Returns nothing but zeros for ops that take no time: calls, and ops without a rule.
  PlannedOp of(mlir::Operation *op);

private:
  /// The sizes of a matmul on one rank.
  struct Matmul {
    int64_t batch = 1, m = 1, n = 1, k = 1;
  };

  void send(const planner::Axes &axes, double seconds, PlannedOp &price) const;
  const PlannedOp &ofReshard(mlir::RankedTensorType type, mlir::RankedTensorType to);
  void addRounds(ShardableOpInterface op, const FactorRule &rule,
                 llvm::ArrayRef<mlir::ArrayAttr> axesOf, PlannedOp &price);
  double computing(ShardableOpInterface op, const FactorRule &rule,
                   llvm::ArrayRef<mlir::ArrayAttr> axesOf);
  std::optional<Matmul> asMatmul(ShardableOpInterface op, const FactorRule &rule,
                                 llvm::ArrayRef<mlir::ArrayAttr> axesOf) const;

  const MeshAttr mesh;
  const cost::Predictor *machine;
  ByteSeconds *byteSeconds;
  planner::Prices prices;
  llvm::DenseMap<std::pair<mlir::Type, mlir::Type>, PlannedOp> reshards;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_PLANNEDSECONDS_H
