//===- StagePositions.cpp - where in a pipeline each op lies ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StagePositions.h"

#include "weft/Pipeline/LayerLabels.h"

using namespace mlir;

namespace weft {

int64_t StageChunks::countLayers() const {
  int64_t count = 0;
  for (const StageChunk &chunk : chunks) {
    count += chunk.layers;
  }
  return count;
}

int64_t StageChunks::chunkOfLayer(int64_t number) const {
  int64_t chunk = 0;
  int64_t end = chunks[0].layers;
  while (end <= number) {
    end += chunks[++chunk].layers;
  }
  return chunk;
}

std::optional<LayerUse> layerUseOf(Operation *op) {
  auto call = dyn_cast<CallOp>(op);
  if (!call) {
    return std::nullopt;
  }
  StringRef label = call.getLabel();
  bool isBackward = label.consume_back(kBackwardSuffix);
  std::optional<int64_t> layer = layerOfLabel(label);
  return layer ? std::optional<LayerUse>({*layer, isBackward}) : std::nullopt;
}

LogicalResult StagePositions::compute(func::FuncOp function, CallOp call) {
  addArguments(function, call);
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (failed(place(op))) {
      return failure();
    }
  }
  return success();
}

std::optional<int64_t> StagePositions::of(Operation *op) const {
  auto found = positions.find(op);
  return found == positions.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

/// The arguments are the number of the micro-batch, a sum for each result, and values that do not
/// depend on samples.
void StagePositions::addArguments(func::FuncOp function, CallOp call) {
  for (BlockArgument argument : function.getArguments()) {
    Origin &origin = origins[argument];
    unsigned number = argument.getArgNumber();
    origin.ofInput = number == 0;
    origin.isSum = number > 0 && number <= function.getNumResults();
    if (number > function.getNumResults()) {
      addVariablesOf(call.getOperand(number), origin);
    }
  }
}

/// Adds the variables that a value of a root is computed from.
void StagePositions::addVariablesOf(Value value, Origin &origin) {
  Operation *definition = value.getDefiningOp();
  if (auto read = dyn_cast<ReadOp>(definition)) {
    if (VariableOp variable = variableOf(read); variable.getRole() != VariableRole::Input) {
      origin.variables.insert(variable);
    }
    return;
  }
  for (Value operand : definition->getOperands()) {
    addVariablesOf(operand, origin);
  }
}

VariableOp StagePositions::variableOf(ReadOp read) const {
  return symbols.lookup<VariableOp>(read.getVariable());
}

LogicalResult StagePositions::place(Operation &op) {
  Origin origin;
  if (auto read = dyn_cast<ReadOp>(op)) {
    VariableOp variable = variableOf(read);
    origin.ofInput = variable.getRole() == VariableRole::Input;
    if (!origin.ofInput) {
      origin.variables.insert(variable);
    }
    origins[read.getOutput()] = std::move(origin);
    return success();
  }
  std::optional<int64_t> earliest;
  for (Value operand : op.getOperands()) {
    Operation *definition = operand.getDefiningOp();
    if (std::optional<int64_t> position = definition ? of(definition) : std::nullopt) {
      earliest = std::max(earliest.value_or(0), *position);
      continue;
    }
    const Origin &other = origins[operand];
    origin.variables.insert(other.variables.begin(), other.variables.end());
    origin.ofInput |= other.ofInput;
    origin.isSum |= other.isSum;
  }
  bool isOfOneKind = origin.variables.empty() || !origin.ofInput;
  if (!earliest && !origin.isSum && isOfOneKind && !layerUseOf(&op) && op.getNumResults() > 0) {
    for (Value result : op.getResults()) {
      origins[result] = origin;
    }
    return success();
  }
  FailureOr<int64_t> position = positionOf(op, earliest.value_or(0), origin);
  if (failed(position)) {
    return failure();
  }
  positions[&op] = *position;
  return success();
}

/// Returns the position of an op whose operands are there from position `earliest` on.
FailureOr<int64_t> StagePositions::positionOf(Operation &op, int64_t earliest,
                                              const Origin &origin) {
  int64_t position = earliest;
  if (std::optional<LayerUse> use = layerUseOf(&op)) {
    int64_t chunk = chunks.chunkOfLayer(use->layer);
    position = use->isBackward ? chunks.backwardOf(chunk) : chunks.forwardOf(chunk);
    if (position < earliest) {
      return op.emitError("split-stages: uses a value that stage ")
             << chunks.stageAt(earliest) << " computes later, expected layers in their order";
    }
  } else {
    position = usesLastLayer(op) ? std::max(position, chunks.lastForward()) : position;
    for (VariableOp variable : origin.variables) {
      position = firstOfChunk(position, variable);
    }
  }
  for (VariableOp variable : origin.variables) {
    if (!markedStageOf(variable)) {
      markChunk(variable, chunks.chunkAt(position), chunks.stageAt(position));
    }
  }
  return position;
}

/// Returns true if the op gets a result of the last layer: it may lie in a chunk behind that.
bool StagePositions::usesLastLayer(Operation &op) const {
  return llvm::any_of(op.getOperands(), [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    std::optional<LayerUse> use = definition ? layerUseOf(definition) : std::nullopt;
    return use && !use->isBackward && use->layer + 1 == chunks.countLayers();
  });
}

/// Returns the first position from `earliest` on that is one of the variable's chunk. If an op of
/// forward is behind that of the chunk, then another chunk uses the variable, too, such as an
/// embedding that is the head: returns `earliest`.
int64_t StagePositions::firstOfChunk(int64_t earliest, VariableOp variable) const {
  std::optional<int64_t> chunk = markedChunkOf(variable);
  if (!chunk) {
    return earliest;
  }
  if (earliest <= chunks.forwardOf(*chunk)) {
    return chunks.forwardOf(*chunk);
  }
  bool isBackward = !chunks.isForward(earliest) && earliest <= chunks.backwardOf(*chunk);
  return isBackward ? chunks.backwardOf(*chunk) : earliest;
}

} // namespace weft
