//===- StagePositions.h - where in a pipeline each op lies ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layers of a model are cut into chunks, each of which lies in a stage. A micro-batch passes
// through the chunks forward, and then through them backward. Of three chunks there are six
// positions in this order:
//
//   position   0          1          2          3           4           5
//   chunk      0          1          2          2           1           0
//              forward    forward    forward    backward    backward    backward
//
// An op has one of three kinds:
//
//   placed     It lies at one position: a layer's call at that of its layer, any other op at the
//              first at which its operands are there and that is one of the chunk of the variables
//              that it uses; what uses the last layer's results, at the last forward. So the loss,
//              and backward of the head, belong to the last forward. The first and the last chunk
//              may have no layers: then they have the embedding, or the head and the loss, alone.
//   shared     It needs no samples but inputs, or no inputs but variables: a mask, a table, a
//              select of an input, a read, a cast of weights. Each position that uses it gets a
//              copy.
//
// A variable belongs to the chunk of the first op that uses it, and to its stage. Ops of other
// stages may use it, too: it is transferred to them, see StageFunctions.h.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_STAGEPOSITIONS_H
#define WEFT_LIB_PIPELINE_PLAN_STAGEPOSITIONS_H

#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

namespace weft {

/// A run of layers of the model.
struct StageChunk {
  int64_t layers = 0;
  /// The stage that it lies in.
  int64_t stage = 0;
};

/// The chunks of all stages in the order of the model, from which positions follow.
class StageChunks {
public:
  explicit StageChunks(llvm::ArrayRef<StageChunk> chunks) : chunks(chunks) {}

  int64_t countPositions() const { return 2 * int64_t(chunks.size()); }
  int64_t countLayers() const;

  /// Returns the chunk of layer `number`. REQUIRES: number < countLayers().
  int64_t chunkOfLayer(int64_t number) const;

  int64_t forwardOf(int64_t chunk) const { return chunk; }
  int64_t lastForward() const { return int64_t(chunks.size()) - 1; }
  int64_t backwardOf(int64_t chunk) const { return countPositions() - 1 - chunk; }
  bool isForward(int64_t position) const { return position < int64_t(chunks.size()); }
  int64_t chunkAt(int64_t position) const { return std::min(position, backwardOf(position)); }
  int64_t stageAt(int64_t position) const { return chunks[chunkAt(position)].stage; }
  /// Returns the stage of the last chunk, which computes the loss.
  int64_t lastStage() const { return chunks.back().stage; }

private:
  llvm::SmallVector<StageChunk> chunks;
};

/// A call of a layer, or of its derivative.
struct LayerUse {
  int64_t layer;
  bool isBackward;
};
std::optional<LayerUse> layerUseOf(mlir::Operation *op);

/// The positions of ops of functions of one micro-batch.
class StagePositions {
public:
  StagePositions(mlir::ModuleOp module, const StageChunks &chunks)
      : symbols(module), chunks(chunks) {}

  /// Places the ops of `function`, and marks the variables that it uses with their chunks. `call`
  /// is one of its calls. Fails, with an error, if layers do not use values in their order.
  mlir::LogicalResult compute(mlir::func::FuncOp function, CallOp call);

  /// Returns the position of a placed op; nothing for shared ones.
  std::optional<int64_t> of(mlir::Operation *op) const;

private:
  /// What a value that is not placed is computed from.
  struct Origin {
    llvm::SmallSetVector<VariableOp, 2> variables;
    bool ofInput = false;
    /// It is a sum over micro-batches, and lies where it is continued.
    bool isSum = false;
  };

  void addArguments(mlir::func::FuncOp function, CallOp call);
  void addVariablesOf(mlir::Value value, Origin &origin);
  VariableOp variableOf(ReadOp read) const;
  mlir::LogicalResult place(mlir::Operation &op);
  mlir::FailureOr<int64_t> positionOf(mlir::Operation &op, int64_t earliest, const Origin &origin);
  bool usesLastLayer(mlir::Operation &op) const;
  int64_t firstOfChunk(int64_t earliest, VariableOp variable) const;

  mlir::SymbolTable symbols;
  const StageChunks &chunks;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  llvm::DenseMap<mlir::Value, Origin> origins;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_STAGEPOSITIONS_H
