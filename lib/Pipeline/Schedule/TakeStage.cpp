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

#include "mlir/IR/IRMapping.h"
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

/// Makes the modules of stages from that of all.
class StageTaker {
public:
  explicit StageTaker(ModuleOp whole)
      : whole(whole), stages(countStages(whole)), numbers(numberTransfers(whole)), symbols(whole) {}

  OwningOpRef<ModuleOp> take(int64_t stage) {
    OwningOpRef<ModuleOp> own(cast<ModuleOp>(whole->cloneWithoutRegions()));
    Block &body = own->getBodyRegion().emplaceBlock();
    llvm::DenseMap<Operation *, Operation *> roots;
    for (auto root : whole.getOps<func::FuncOp>()) {
      if (!root.isPrivate()) {
        roots[root] = takeFrom(root, stage);
      }
    }
    const llvm::DenseSet<Operation *> used = findUsed(llvm::make_second_range(roots));
    for (Operation &op : *whole.getBody()) {
      if (Operation *root = roots.lookup(&op)) {
        body.push_back(root);
      } else if (used.contains(&op) || !isa<func::FuncOp, VariableOp>(op)) {
        Operation *copy = op.clone();
        body.push_back(copy);
        copy->removeAttr(kStageAttrName);
        copy->removeAttr(kChunkAttrName);
      }
    }
    markStage(*own, stage);
    (*own)->setAttr(kStagesAttrName, OpBuilder(whole).getI64IntegerAttr(stages));
    return own;
  }

private:
  /// Returns a function with the ops of `root` that the stage does. It is in no module.
  func::FuncOp takeFrom(func::FuncOp root, int64_t stage) const {
    auto own = cast<func::FuncOp>(root->cloneWithoutRegions());
    auto builder = OpBuilder::atBlockEnd(own.addEntryBlock());
    IRMapping mapping;
    for (Operation &op : root.getBody().front()) {
      if (auto transfer = dyn_cast<TransferOp>(op)) {
        takeHalf(transfer, stage, builder, mapping);
      } else if (markedStageOf(&op).value_or(stage) == stage) {
        builder.clone(op, mapping);
      }
    }
    // Without what only other stages use.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(own.getBody().front()))) {
      if (isOpTriviallyDead(&op) || (isa<CallOp>(op) && op.use_empty() && !markedStageOf(&op))) {
        op.erase();
      } else {
        op.removeAttr(kStageAttrName);
      }
    }
    return own;
  }

  void takeHalf(TransferOp transfer, int64_t stage, OpBuilder &builder, IRMapping &mapping) const {
    const int64_t number = numbers.at(transfer);
    auto from = static_cast<int64_t>(transfer.getFrom()),
         to = static_cast<int64_t>(transfer.getTo());
    if (from == stage) {
      SendOp::create(builder, transfer.getLoc(), mapping.lookup(transfer.getInput()), to, number);
    } else if (to == stage) {
      Type type = transfer.getOutput().getType();
      auto received = ReceiveOp::create(builder, transfer.getLoc(), type, from, number);
      mapping.map(transfer.getOutput(), received.getOutput());
    }
  }

  /// Returns the ops of the whole module whose symbols the roots use, by functions that they call,
  /// too.
  template <typename Range> llvm::DenseSet<Operation *> findUsed(Range &&roots) const {
    llvm::DenseSet<Operation *> used;
    SmallVector<Operation *> open(roots);
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

  ModuleOp whole;
  const int64_t stages;
  const llvm::DenseMap<Operation *, int64_t> numbers;
  SymbolTable symbols;
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
      OwningOpRef<ModuleOp> own = StageTaker(module).take(stage);
      module.getBody()->clear();
      module.getBody()->getOperations().splice(module.getBody()->end(),
                                               own->getBody()->getOperations());
      module->setAttrs(own->getOperation()->getAttrDictionary());
    }
  }
};

} // namespace

std::vector<OwningOpRef<ModuleOp>> takeStages(ModuleOp module) {
  StageTaker taker(module);
  std::vector<OwningOpRef<ModuleOp>> taken;
  for (int64_t stage = 0; stage < countStages(module); ++stage) {
    taken.push_back(taker.take(stage));
  }
  return taken;
}

} // namespace weft
