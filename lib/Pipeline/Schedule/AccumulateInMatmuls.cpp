//===- AccumulateInMatmuls.cpp - lets matmuls add to earlier values -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of micro-batches are added outside of the functions that compute them, by functions
// that only add. A matmul can add only values of its own function, so this pass moves the addition
// there.
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ACCUMULATEINMATMULSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Returns true if `map` only adds two tensors of its result's type.
bool isSumOfTwo(MapOp map) {
  if (!map || map.getNumOperands() != 2 || map.getNumResults() != 1) {
    return false;
  }
  for (auto [operand, attribute] : llvm::zip_equal(map.getInputs(), map.getMaps())) {
    if (operand.getType() != map.getOutputType() ||
        !cast<AffineMapAttr>(attribute).getValue().isIdentity()) {
      return false;
    }
  }
  Block &body = map.getBody().front();
  auto sum = dyn_cast<arith::AddFOp>(body.front());
  return sum && sum->getNextNode() == body.getTerminator() &&
         body.getTerminator()->getOperand(0) == sum.getResult() && sum.getLhs() != sum.getRhs() &&
         isa<BlockArgument>(sum.getLhs()) && isa<BlockArgument>(sum.getRhs());
}

/// Returns true if `function` only adds its two arguments.
bool isSumOfTwo(func::FuncOp function) {
  if (!function || function.isExternal() || function.getNumArguments() != 2) {
    return false;
  }
  Block &body = function.front();
  auto map = dyn_cast<MapOp>(body.front());
  return isSumOfTwo(map) && map->getNextNode() == body.getTerminator() &&
         map.getInputs()[0] != map.getInputs()[1] &&
         body.getTerminator()->getOperand(0) == map->getResult(0);
}

/// Returns true if `value` is the wide result of one matmul, or of a batch that is not summed, and
/// has one reader, in the same block.
bool isMatmulToAddTo(Value value) {
  auto contract = value.getDefiningOp<ContractOp>();
  std::optional<MatmulForm> form = contract ? classifyMatmul(contract) : std::nullopt;
  return form && !form->matmul.isSum() && value.hasOneUse() &&
         !isNarrow(getElementTypeOrSelf(value)) &&
         (*value.user_begin())->getBlock() == contract->getBlock();
}

/// An op that only adds `addend` to a value, which has no other reader.
struct Addition {
  Operation *op;
  Value addend;
};

struct AccumulateInMatmulsPass : impl::AccumulateInMatmulsPassBase<AccumulateInMatmulsPass> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(kTargetAttrName)) {
      return;
    }
    SymbolTable symbols(getOperation());
    llvm::MapVector<Operation *, SmallVector<CallOp>> calls;
    getOperation().walk(
        [&](CallOp call) { calls[symbols.lookup(call.getCallee())].push_back(call); });
    for (auto &[function, uses] : calls) {
      takeAdditions(cast<func::FuncOp>(function), uses, symbols);
    }
    SmallVector<func::FuncOp> sums;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (isSumOfTwo(function)) {
        sums.push_back(function);
      }
    }
    // Listed first, since inlineAddition erases ops behind the current one.
    SmallVector<ContractOp> matmuls;
    getOperation().walk([&](ContractOp contract) { matmuls.push_back(contract); });
    for (ContractOp contract : matmuls) {
      inlineAddition(contract, symbols);
    }
    llvm::DenseSet<StringAttr> called;
    getOperation().walk([&](CallOp call) { called.insert(call.getCalleeAttr().getAttr()); });
    for (func::FuncOp function : sums) {
      if (function.isPrivate() && !called.contains(function.getSymNameAttr())) {
        symbols.erase(function);
      }
    }
  }

  /// Returns the addition to `value` of an addend that is computed before `op`, if there is one.
  static std::optional<Addition> additionTo(Value value, Operation *op, const SymbolTable &symbols);
  void takeAdditions(func::FuncOp function, SmallVector<CallOp> &uses, const SymbolTable &symbols);
  void inlineAddition(ContractOp contract, const SymbolTable &symbols);
};

std::optional<Addition> AccumulateInMatmulsPass::additionTo(Value value, Operation *op,
                                                            const SymbolTable &symbols) {
  Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
  if (!user || user->getBlock() != op->getBlock()) {
    return std::nullopt;
  }
  auto call = dyn_cast<CallOp>(user);
  bool isSum = call ? isSumOfTwo(symbols.lookup<func::FuncOp>(call.getCallee()))
                    : isSumOfTwo(dyn_cast<MapOp>(user));
  if (!isSum) {
    return std::nullopt;
  }
  Value addend = user->getOperand(user->getOperand(0) == value ? 1 : 0);
  Operation *def = addend.getDefiningOp();
  bool isThere = !def || def->getBlock() != op->getBlock() || def->isBeforeInBlock(op);
  return isThere ? std::optional(Addition{user, addend}) : std::nullopt;
}

/// If all calls of `function` add a value to the result of a matmul in it, makes that value an
/// argument.
void AccumulateInMatmulsPass::takeAdditions(func::FuncOp function, SmallVector<CallOp> &uses,
                                            const SymbolTable &symbols) {
  if (!function.isPrivate() || function.isExternal()) {
    return;
  }
  Operation *end = function.front().getTerminator();
  SmallVector<unsigned> taken;
  for (auto [number, value] : llvm::enumerate(end->getOperands())) {
    auto isAdded = [&](CallOp call) {
      return additionTo(call.getOutputs()[number], call, symbols).has_value();
    };
    if (isMatmulToAddTo(value) && llvm::all_of(uses, isAdded)) {
      taken.push_back(number);
    }
  }
  if (taken.empty()) {
    return;
  }
  for (unsigned number : taken) {
    Value matmul = end->getOperand(number);
    unsigned argument = function.getNumArguments();
    // It has as many arguments as its type says, and none has attributes.
    (void)function.insertArgument(argument, matmul.getType(), {}, matmul.getLoc());
    OpBuilder builder(end);
    Value operands[] = {function.getArgument(argument), matmul};
    end->setOperand(number, createSum(builder, matmul.getLoc(), operands));
    ++moved;
  }
  for (CallOp &call : uses) {
    // Found again: an addend may be the result of an addition that was erased for the previous
    // call.
    SmallVector<Value> operands(call.getOperands());
    SmallVector<Addition> additions;
    for (unsigned number : taken) {
      additions.push_back(*additionTo(call.getOutputs()[number], call, symbols));
      operands.push_back(additions.back().addend);
    }
    OpBuilder builder(call);
    auto made = CallOp::create(builder, call.getLoc(), call.getResultTypes(), call.getCallee(),
                               call.getLabel(), operands);
    for (auto [number, addition] : llvm::zip_equal(taken, additions)) {
      addition.op->getResult(0).replaceAllUsesWith(made.getOutputs()[number]);
      addition.op->erase();
    }
    call->replaceAllUsesWith(made);
    call->erase();
    call = made;
  }
}

/// Inlines the call of a function that adds to a matmul of the same block.
void AccumulateInMatmulsPass::inlineAddition(ContractOp contract, const SymbolTable &symbols) {
  std::optional<Addition> addition = isMatmulToAddTo(contract.getOutput())
                                         ? additionTo(contract.getOutput(), contract, symbols)
                                         : std::nullopt;
  if (addition && isa<CallOp>(addition->op)) {
    OpBuilder builder(addition->op);
    Value operands[] = {addition->addend, contract.getOutput()};
    Value sum = createSum(builder, addition->op->getLoc(), operands);
    addition->op->getResult(0).replaceAllUsesWith(sum);
    addition->op->erase();
    ++moved;
  }
}

} // namespace
} // namespace weft
