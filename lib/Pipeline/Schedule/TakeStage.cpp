//===- TakeStage.cpp - the module of one pipeline stage -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/TakeStage.h"

#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_TAKESTAGEPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// What a transfer brings: a result of a function, and what becomes of it before it is sent: names
/// and attributes of ops.
using Origin = std::vector<const void *>;

/// Returns nothing for a value that does not come from one of a function.
std::optional<Origin> originOf(Value value) {
  Origin origin;
  auto result = dyn_cast<OpResult>(value);
  while (result) {
    Operation *op = result.getOwner();
    origin.push_back(reinterpret_cast<const void *>(uintptr_t(result.getResultNumber())));
    if (auto call = dyn_cast<CallOp>(op)) {
      origin.push_back(call.getCalleeAttr().getAsOpaquePointer());
      return origin;
    }
    origin.push_back(op->getName().getAsOpaquePointer());
    origin.push_back(op->getAttrDictionary().getAsOpaquePointer());
    result = op->getNumOperands() > 0 ? dyn_cast<OpResult>(op->getOperand(0)) : OpResult();
  }
  return std::nullopt;
}

/// Numbers the transfers of all stages, in the order of the module. Those of one result of one
/// function from one stage to another are the same in all micro-batches.
llvm::DenseMap<Operation *, int64_t> numberTransfers(ModuleOp module) {
  llvm::DenseMap<Operation *, int64_t> numbers;
  std::map<std::tuple<Origin, int64_t, int64_t>, int64_t> ofOrigins;
  int64_t count = 0;
  module.walk([&](TransferOp op) {
    int64_t next = count + 1;
    if (std::optional<Origin> origin = originOf(op.getInput())) {
      std::tuple key(*origin, static_cast<int64_t>(op.getFrom()), static_cast<int64_t>(op.getTo()));
      next = ofOrigins.try_emplace(key, next).first->second;
    }
    count = std::max(count, next);
    numbers[op] = next;
  });
  return numbers;
}

class StageTaker {
public:
  explicit StageTaker(int64_t stage) : stage(stage) {}

  void run(ModuleOp module) const {
    const int64_t stages = countStages(module);
    llvm::DenseMap<Operation *, int64_t> numbers = numberTransfers(module);
    for (auto root : module.getOps<func::FuncOp>()) {
      if (!root.isPrivate()) {
        takeFrom(root, numbers);
      }
    }
    eraseOthers(module);
    OpBuilder builder(module);
    markStage(module, stage);
    module->setAttr(kStagesAttrName, builder.getI64IntegerAttr(stages));
  }

private:
  void takeFrom(func::FuncOp root, const llvm::DenseMap<Operation *, int64_t> &numbers) const {
    Block &body = root.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (auto transfer = dyn_cast<TransferOp>(op)) {
        take(transfer, numbers.at(&op));
      }
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
      bool isOther = markedStageOf(&op).value_or(stage) != stage || isa<TransferOp>(op);
      if (isOther || isOpTriviallyDead(&op) ||
          (isa<CallOp>(op) && op.use_empty() && !markedStageOf(&op))) {
        op.erase();
      } else {
        op.removeAttr(kStageAttrName);
      }
    }
  }

  /// Makes a half of a transfer where it stands. The transfer itself is erased with the ops of
  /// other stages.
  void take(TransferOp transfer, int64_t number) const {
    OpBuilder builder(transfer);
    auto from = static_cast<int64_t>(transfer.getFrom()),
         to = static_cast<int64_t>(transfer.getTo());
    if (from == stage) {
      SendOp::create(builder, transfer.getLoc(), transfer.getInput(), to, number);
    } else if (to == stage) {
      Value received = ReceiveOp::create(builder, transfer.getLoc(), transfer.getOutput().getType(),
                                         from, number)
                           .getOutput();
      transfer.getOutput().replaceAllUsesWith(received);
    }
  }

  /// Erases variables and functions that no root uses.
  void eraseOthers(ModuleOp module) const {
    const llvm::DenseSet<Operation *> used = findUsed(module);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (function ? !function.isPrivate() : !isa<VariableOp>(op)) {
        continue;
      }
      if (used.contains(&op)) {
        op.removeAttr(kStageAttrName);
        op.removeAttr(kChunkAttrName);
      } else {
        op.erase();
      }
    }
  }

  /// Returns the ops of the module whose symbols roots use, by functions that they call, too.
  static llvm::DenseSet<Operation *> findUsed(ModuleOp module) {
    SymbolTable symbols(module);
    llvm::DenseSet<Operation *> used;
    SmallVector<Operation *> open;
    for (Operation &op : *module.getBody()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (function && !function.isPrivate()) {
        open.push_back(function);
      }
    }
    while (!open.empty()) {
      std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(open.pop_back_val());
      for (const SymbolTable::SymbolUse &use : *uses) {
        Operation *named = symbols.lookup(use.getSymbolRef().getRootReference());
        if (named && used.insert(named).second) {
          open.push_back(named);
        }
      }
    }
    return used;
  }

  const int64_t stage;
};

struct TakeStagePass : impl::TakeStagePassBase<TakeStagePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t stages = countStages(module);
    if (stage < 0 || stage >= stages) {
      module.emitError("take-stage: expected a stage from 0 to ")
          << stages - 1 << ", got " << static_cast<int64_t>(stage);
      return signalPassFailure();
    }
    if (stages > 1) {
      takeStage(module, stage);
    }
  }
};

} // namespace

void takeStage(ModuleOp module, int64_t stage) { StageTaker(stage).run(module); }

} // namespace weft
