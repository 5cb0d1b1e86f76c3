//===- StageCollectives.cpp - gathers and reductions of a chunk ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/StageCollectives.h"

#include "weft/Dialect/Weft/IR/StageMarks.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

namespace {

bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

/// Ops of a root that a function takes over, and the values that it needs for them.
struct Slice {
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;

  /// Adds what `value` is computed of, up to values that `isInput` holds for.
  void add(Value value, function_ref<bool(Value)> isInput) {
    Operation *op = value.getDefiningOp();
    if (isInput(value)) {
      inputs.insert(value);
    } else if (ops.insert(op)) {
      for (Value operand : op->getOperands()) {
        add(operand, isInput);
      }
    }
  }
};

/// Returns the ops of a slice in their order.
SmallVector<Operation *> sorted(const Slice &slice) {
  SmallVector<Operation *> ops(slice.ops.begin(), slice.ops.end());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

/// Makes a function `@ROOT_WORK_CHUNK` of the slice's ops, which returns `results`.
func::FuncOp makeFunction(func::FuncOp root, const ChunkCalls &chunk, StringRef work,
                          StringRef mark, const Slice &slice, ArrayRef<Value> results) {
  std::string name = (root.getSymName() + "_" + work + "_" + Twine(chunk.chunk)).str();
  OpBuilder builder(root);
  auto type = builder.getFunctionType(TypeRange(ValueRange(slice.inputs.getArrayRef())),
                                      TypeRange(results));
  auto function = func::FuncOp::create(builder, root.getLoc(), name, type);
  function.setPrivate();
  function->setAttr(mark, builder.getUnitAttr());
  markChunk(function, chunk.chunk, chunk.stage);
  Block *body = function.addEntryBlock();
  IRMapping mapping;
  mapping.map(slice.inputs.getArrayRef(), body->getArguments());
  builder.setInsertionPointToStart(body);
  for (Operation *op : sorted(slice)) {
    builder.clone(*op, mapping)->removeAttr(kStageAttrName);
  }
  auto returned = llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, root.getLoc(), returned);
  return function;
}

/// Knows which values of a root are computed of parameters alone.
class ParameterValues {
public:
  explicit ParameterValues(func::FuncOp root) : symbols(root->getParentOfType<ModuleOp>()) {}

  bool contains(Value value) {
    auto [known, isNew] = found.try_emplace(value, false);
    if (isNew) {
      const bool is = find(value.getDefiningOp());
      found[value] = is;
      return is;
    }
    return known->second;
  }

private:
  bool find(Operation *op) {
    if (auto read = dyn_cast_or_null<ReadOp>(op)) {
      auto variable = symbols.lookup<VariableOp>(read.getVariable());
      return variable && variable.getRole() != VariableRole::Input;
    }
    return op && isPure(op) && !isa<CallOp>(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return contains(operand); });
  }

  SymbolTable symbols;
  llvm::DenseMap<Value, bool> found;
};

} // namespace

std::optional<ChunkGather> weft::outlineGather(func::FuncOp root, const ChunkCalls &chunk) {
  ParameterValues parameters(root);
  // Scalars, as scales of FP8, take no memory; to transfer anew takes two stages.
  auto isInput = [](Value value) {
    return isScalar(value) || isa<TransferOp>(value.getDefiningOp());
  };
  Slice all;
  llvm::SetVector<Value> gathered;
  for (CallOp call : chunk.calls) {
    for (Value operand : call->getOperands()) {
      if (!parameters.contains(operand) || isInput(operand) || gathered.contains(operand)) {
        continue;
      }
      Slice own;
      own.add(operand, isInput);
      if (llvm::any_of(own.ops, llvm::IsaPred<AllGatherOp>)) {
        gathered.insert(operand);
        all.add(operand, isInput);
      }
    }
  }
  if (gathered.empty()) {
    return std::nullopt;
  }
  ChunkGather made;
  made.inputs = llvm::to_vector(all.inputs);
  made.gathered = llvm::to_vector(gathered);
  made.function = makeFunction(root, chunk, "gather", kGatherAttrName, all, made.gathered);
  return made;
}

CallOp weft::outlineReduction(func::FuncOp root, const ChunkCalls &chunk) {
  llvm::DenseSet<Operation *> own(chunk.calls.begin(), chunk.calls.end());
  auto isInput = [&](Value value) {
    return own.contains(value.getDefiningOp()) || !isPure(value.getDefiningOp()) ||
           isa<CallOp, TransferOp>(value.getDefiningOp());
  };
  Slice all;
  SmallVector<Value> reduced;
  for (Operation &op : root.getBody().front()) {
    if (!isa<AllReduceOp, ReduceScatterOp>(op) || isScalar(op.getOperand(0))) {
      continue;
    }
    Slice slice;
    slice.add(op.getResult(0), isInput);
    bool isOfChunk = !slice.inputs.empty() && llvm::all_of(slice.inputs, [&](Value input) {
      return own.contains(input.getDefiningOp());
    });
    if (isOfChunk && llvm::none_of(slice.ops, llvm::IsaPred<ReadOp>)) {
      reduced.push_back(op.getResult(0));
      all.add(op.getResult(0), isInput);
    }
  }
  llvm::erase_if(reduced, [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return all.ops.contains(user); });
  });
  if (reduced.empty()) {
    return nullptr;
  }
  func::FuncOp function = makeFunction(root, chunk, "reduce", kReduceAttrName, all, reduced);
  OpBuilder builder(root.getContext());
  builder.setInsertionPointAfter(chunk.calls.back());
  auto call =
      CallOp::create(builder, root.getLoc(), function.getResultTypes(), function.getSymName(),
                     ("chunk " + Twine(chunk.chunk) + " reduce").str(), all.inputs.getArrayRef());
  markStage(call, chunk.stage);
  for (auto [old, result] : llvm::zip_equal(reduced, call->getResults())) {
    old.replaceAllUsesWith(result);
  }
  const SmallVector<Operation *> moved = sorted(all);
  for (Operation *op : llvm::reverse(moved)) {
    if (isOpTriviallyDead(op)) {
      op->erase();
    }
  }
  return call;
}

void weft::eraseUnusedBefore(Operation *end) {
  while (Operation *op = end ? end->getPrevNode() : nullptr) {
    if (isOpTriviallyDead(op)) {
      op->erase();
    } else {
      end = op;
    }
  }
}
