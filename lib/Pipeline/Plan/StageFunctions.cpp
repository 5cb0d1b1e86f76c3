//===- StageFunctions.cpp - a micro-batch's function, stage by stage --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageFunctions.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
namespace {

/// What lies at one position. Values are those of the function of the whole micro-batch.
struct Part {
  SmallVector<Operation *> ops;
  /// Beside the number of the micro-batch: arguments, and values of other positions.
  SmallVector<Value> operands;
  /// Results of the whole function, then values for other positions.
  llvm::SetVector<Value> results;
  func::FuncOp function;
};

class FunctionSplitter {
public:
  FunctionSplitter(func::FuncOp whole, const StageChunks &chunks, const StagePositions &positions)
      : symbols(whole->getParentOp()), whole(whole), body(whole.getBody().front()), chunks(chunks),
        positions(positions), parts(chunks.countPositions()) {}

  void buildFunctions();
  void readIn(CallOp first);
  void replace(CallOp call) const;

private:
  Part &partOf(Value value) { return parts[*positions.of(value.getDefiningOp())]; }
  ValueRange returned() const { return body.getTerminator()->getOperands(); }
  void addUsed(Value value, int64_t position, llvm::DenseSet<Value> &used) const;
  bool isOfOtherStage(Operation &op, int64_t stage) const;
  void findOperands(int64_t position);
  void buildFunction(int64_t position);
  DictionaryAttr attributesOf(Value value);
  void copyShared(Value value, OpBuilder &builder, IRMapping &copies) const;

  SymbolTable symbols;
  func::FuncOp whole;
  Block &body;
  const StageChunks &chunks;
  const StagePositions &positions;
  SmallVector<Part> parts;
  /// Reads of variables by other stages than theirs.
  llvm::SetVector<ReadOp> otherReads;
  /// What these read, in the root.
  IRMapping inRoot;
};

void FunctionSplitter::buildFunctions() {
  for (Operation &op : body.without_terminator()) {
    if (std::optional<int64_t> position = positions.of(&op)) {
      parts[*position].ops.push_back(&op);
    }
  }
  for (Value value : returned()) {
    partOf(value).results.insert(value);
  }
  for (int64_t position = 0; position < chunks.countPositions(); ++position) {
    findOperands(position);
  }
  // Only now all results are known.
  for (int64_t position = 0; position < chunks.countPositions(); ++position) {
    if (!parts[position].ops.empty()) {
      buildFunction(position);
    }
  }
}

/// Adds `value` to the values that `position` does not compute, or what is needed to compute it
/// there.
void FunctionSplitter::addUsed(Value value, int64_t position, llvm::DenseSet<Value> &used) const {
  Operation *definition = value.getDefiningOp();
  std::optional<int64_t> from = definition ? positions.of(definition) : std::nullopt;
  if (from == position || used.contains(value)) {
    return;
  }
  used.insert(value);
  if (definition && !from) {
    for (Value operand : definition->getOperands()) {
      addUsed(operand, position, used);
    }
  }
}

/// Returns true if `op` reads a variable of another stage than `stage`.
bool FunctionSplitter::isOfOtherStage(Operation &op, int64_t stage) const {
  auto read = dyn_cast<ReadOp>(op);
  Operation *variable = read ? symbols.lookup(read.getVariable()) : nullptr;
  return variable && markedStageOf(variable).value_or(stage) != stage;
}

void FunctionSplitter::findOperands(int64_t position) {
  llvm::DenseSet<Value> used;
  for (Operation *op : parts[position].ops) {
    for (Value operand : op->getOperands()) {
      addUsed(operand, position, used);
    }
  }
  for (Value argument : body.getArguments().drop_front()) {
    if (used.contains(argument)) {
      parts[position].operands.push_back(argument);
    }
  }
  for (Operation &op : body.without_terminator()) {
    for (Value result : op.getResults()) {
      if (used.contains(result) && positions.of(&op)) {
        parts[position].operands.push_back(result);
        partOf(result).results.insert(result);
      } else if (used.contains(result) && isOfOtherStage(op, chunks.stageAt(position))) {
        parts[position].operands.push_back(result);
        otherReads.insert(cast<ReadOp>(op));
      }
    }
  }
}

void FunctionSplitter::buildFunction(int64_t position) {
  Part &part = parts[position];
  MLIRContext *context = whole.getContext();
  SmallVector<Type> arguments = {body.getArgument(0).getType()};
  llvm::append_range(arguments, ValueRange(part.operands).getTypes());
  auto results = llvm::map_to_vector(part.results, [](Value value) { return value.getType(); });
  int64_t chunk = chunks.chunkAt(position);
  StringRef name = whole.getSymName();
  name.consume_back("_micro_batch");
  StringRef direction = chunks.isForward(position) ? "_forward_" : "_backward_";
  part.function = func::FuncOp::create(whole.getLoc(), (name + direction + Twine(chunk)).str(),
                                       FunctionType::get(context, arguments, results));
  part.function.setPrivate();
  part.function->setAttr(kMicroBatchAttrName, UnitAttr::get(context));
  markChunk(part.function, chunk, chunks.stageAt(position));
  SymbolTable(whole->getParentOp()).insert(part.function, whole->getIterator());

  Block *block = part.function.addEntryBlock();
  auto builder = OpBuilder::atBlockEnd(block);
  IRMapping copies;
  copies.map(body.getArgument(0), block->getArgument(0));
  for (auto [number, value] : llvm::enumerate(part.operands)) {
    copies.map(value, block->getArgument(unsigned(number) + 1));
    if (isa<BlockArgument>(value)) {
      part.function.setArgAttrs(unsigned(number) + 1, attributesOf(value));
    }
  }
  for (Operation *op : part.ops) {
    for (Value operand : op->getOperands()) {
      copyShared(operand, builder, copies);
    }
    builder.clone(*op, copies);
  }
  auto ends = llvm::map_to_vector(part.results, [&](Value value) { return copies.lookup(value); });
  func::ReturnOp::create(builder, whole.getLoc(), ends);
  for (auto [number, value] : llvm::enumerate(part.results)) {
    part.function.setResultAttrs(unsigned(number), attributesOf(value));
  }
}

/// Returns the attributes of an argument or of a result of the whole function.
DictionaryAttr FunctionSplitter::attributesOf(Value value) {
  DictionaryAttr attributes;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    attributes = whole.getArgAttrDict(argument.getArgNumber());
  } else if (auto found = llvm::find(returned(), value); found != returned().end()) {
    attributes = whole.getResultAttrDict(unsigned(found.getIndex()));
  }
  return attributes ? attributes : DictionaryAttr::get(whole.getContext());
}

/// Copies the shared ops that compute `value`.
void FunctionSplitter::copyShared(Value value, OpBuilder &builder, IRMapping &copies) const {
  if (copies.contains(value)) {
    return;
  }
  Operation *definition = value.getDefiningOp();
  for (Value operand : definition->getOperands()) {
    copyShared(operand, builder, copies);
  }
  builder.clone(*definition, copies);
}

/// Reads variables before the first call, from where they are transferred to other stages.
void FunctionSplitter::readIn(CallOp first) {
  OpBuilder builder(first);
  for (ReadOp read : otherReads) {
    builder.clone(*read, inRoot);
  }
}

void FunctionSplitter::replace(CallOp call) const {
  OpBuilder builder(call);
  IRMapping values = inRoot;
  values.map(body.getArguments(), call.getOperands());
  llvm::DenseMap<std::pair<Value, int64_t>, Value> transferred;
  auto valueAt = [&](Value value, int64_t stage) {
    Operation *definition = value.getDefiningOp();
    std::optional<int64_t> position = definition ? positions.of(definition) : std::nullopt;
    Value here = values.lookup(value);
    // What is of the root is transferred there.
    if (!position || chunks.stageAt(*position) == stage) {
      return here;
    }
    Value &result = transferred[{value, stage}];
    if (!result) {
      result = TransferOp::create(builder, value.getLoc(), here.getType(), here,
                                  chunks.stageAt(*position), stage);
    }
    return result;
  };
  for (const auto &[position, part] : llvm::enumerate(parts)) {
    if (!part.function) {
      continue;
    }
    SmallVector<Value> operands = {call.getOperand(0)};
    for (Value value : part.operands) {
      operands.push_back(valueAt(value, chunks.stageAt(int64_t(position))));
    }
    func::FuncOp callee = part.function;
    auto own = CallOp::create(builder, call.getLoc(), callee.getResultTypes(), callee.getSymName(),
                              call.getLabel(), operands);
    values.map(part.results.getArrayRef(), own.getResults());
  }
  for (auto [result, value] : llvm::zip_equal(call.getResults(), returned())) {
    result.replaceAllUsesWith(values.lookup(value));
  }
  call.erase();
}

} // namespace

void splitMicroBatch(func::FuncOp function, ArrayRef<CallOp> calls, const StageChunks &chunks,
                     const StagePositions &positions) {
  FunctionSplitter splitter(function, chunks, positions);
  splitter.buildFunctions();
  splitter.readIn(calls.front());
  for (CallOp call : calls) {
    splitter.replace(call);
  }
  function.erase();
}

} // namespace weft
