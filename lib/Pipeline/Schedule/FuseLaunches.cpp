//===- FuseLaunches.cpp - maps beside other ops in one kernel -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWork.h"
#include "Linearize.h"
#include "OpKinds.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FUSELAUNCHESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Two launches, the second of which reads a result of the first that nothing else reads.
struct Pair {
  LaunchOp first, second;
  OpResult value;
  /// The operand of `second` that reads it.
  unsigned operand;
};

struct FuseLaunchesPass : impl::FuseLaunchesPassBase<FuseLaunchesPass> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(kTargetAttrName)) {
      return;
    }
    ModuleSymbols all(getOperation());
    symbols = &all;
    calls.clear(); // Of another stage's module.
    fusedKernels.clear();
    getOperation().walk([&](CallOp call) {
      calls[symbols->functions.lookup(call.getCalleeAttr().getAttr())].push_back(call);
    });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(function)) {
        fuseIn(function.front());
      }
    }
    eraseUnusedKernels(getOperation());
  }

  void fuseIn(Block &block);
  std::optional<Pair> findPair(LaunchOp second);
  bool mayFuse(Pair pair);
  bool mayBeSame(Value a, Value b);
  LaunchOp fuse(Pair pair);
  func::FuncOp findOrMakeKernel(Pair pair, ArrayRef<Value> operands, ArrayRef<int64_t> tied,
                                TypeRange results);
  SmallVector<int64_t> tiedOf(Pair pair, ArrayRef<Value> operands);

  /// Returns the launch that not only runs a map.
  LaunchOp main(Pair pair) const {
    return isa<MapOp>(findMainWork(kernelOf(pair.second))) ? pair.first : pair.second;
  }
  func::FuncOp kernelOf(LaunchOp launch) const {
    return symbols->functions.lookup(launch.getKernelAttr().getAttr());
  }

  ModuleSymbols *symbols = nullptr;
  /// The calls of each function.
  llvm::DenseMap<Operation *, SmallVector<CallOp>> calls;
  /// Fused kernels by their members, the operands of these, and ties.
  llvm::StringMap<func::FuncOp> fusedKernels;
};

void FuseLaunchesPass::fuseIn(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto launch = dyn_cast<LaunchOp>(op);
    while (launch) {
      std::optional<Pair> pair = findPair(launch);
      launch = pair ? fuse(*pair) : LaunchOp();
      fused += pair.has_value();
    }
  }
}

/// Returns the last launch before `second`, if it may become one with it: only reads of variables
/// and reshapes of other values stand between them.
std::optional<Pair> FuseLaunchesPass::findPair(LaunchOp second) {
  Operation *before = second->getPrevNode();
  while (before && isa<ReadOp, ReshapeOp, arith::ConstantOp>(before)) {
    before = before->getPrevNode();
  }
  auto first = dyn_cast_or_null<LaunchOp>(before);
  for (OpOperand &operand : second->getOpOperands()) {
    auto value = dyn_cast<OpResult>(operand.get());
    if (first && value && value.getOwner() == first && value.hasOneUse()) {
      Pair pair = {first, second, value, operand.getOperandNumber()};
      if (mayFuse(pair)) {
        return pair;
      }
    }
  }
  return std::nullopt;
}

/// Returns true if two values are one, up to reshapes, or a call passes one value for both.
bool FuseLaunchesPass::mayBeSame(Value a, Value b) {
  for (Value *value : {&a, &b}) {
    while (auto reshape = value->getDefiningOp<ReshapeOp>()) {
      *value = reshape.getInput();
    }
  }
  auto first = dyn_cast<BlockArgument>(a), second = dyn_cast<BlockArgument>(b);
  if (a == b || !first || !second) {
    return a == b;
  }
  return llvm::any_of(calls.lookup(first.getOwner()->getParentOp()), [&](CallOp call) {
    return mayBeSame(call->getOperand(first.getArgNumber()),
                     call->getOperand(second.getArgNumber()));
  });
}

/// Returns true if a map takes the value where the first kernel's op stores it, or computes it
/// where the second kernel's op loads it; and no op between the launches reads other results of the
/// first.
bool FuseLaunchesPass::mayFuse(Pair pair) {
  Block &first = kernelOf(pair.first).front(), &second = kernelOf(pair.second).front();
  auto stored = dyn_cast<OpResult>(first.getTerminator()->getOperand(pair.value.getResultNumber()));
  BlockArgument loaded = second.getArgument(pair.operand);
  if (!stored || !stored.hasOneUse() || !loaded.hasOneUse()) {
    return false;
  }
  Operation *map = findInlinedMap(stored, *loaded.use_begin());
  bool isAlone = map && findWork(map->getParentOfType<func::FuncOp>()).size() == 1;
  // What the second overwrites, the first may still read.
  bool overwrites = llvm::any_of(pair.second.getTied(), [&](int64_t operand) {
    return operand >= 0 && operand != pair.operand &&
           llvm::any_of(pair.first->getOperands(), [&](Value read) {
             return mayBeSame(read, pair.second->getOperand(operand));
           });
  });
  bool isReadBetween = llvm::any_of(pair.first->getUsers(), [&](Operation *user) {
    return user->getBlock() == pair.second->getBlock() && user->isBeforeInBlock(pair.second);
  });
  return isAlone && !overwrites && !isReadBetween;
}

/// The results of the fused kernel are those of the first without the value, then the second's.
/// A result that took over the value takes over what the value had taken over.
SmallVector<int64_t> FuseLaunchesPass::tiedOf(Pair pair, ArrayRef<Value> operands) {
  SmallVector<int64_t> tied;
  auto add = [&](LaunchOp launch, int64_t operand, Type result) {
    Value value = operand < 0 ? Value() : launch->getOperand(operand);
    if (value == pair.value) {
      int64_t before = pair.first.getTied()[pair.value.getResultNumber()];
      value = before < 0 ? Value() : pair.first->getOperand(before);
    }
    bool isSame = value && value.getType() == result;
    tied.push_back(isSame ? llvm::find(operands, value) - operands.begin() : -1);
  };
  for (auto [number, operand] : llvm::enumerate(pair.first.getTied())) {
    if (number != pair.value.getResultNumber()) {
      add(pair.first, operand, pair.first->getResult(number).getType());
    }
  }
  for (auto [number, operand] : llvm::enumerate(pair.second.getTied())) {
    add(pair.second, operand, pair.second->getResult(number).getType());
  }
  return tied;
}

func::FuncOp FuseLaunchesPass::findOrMakeKernel(Pair pair, ArrayRef<Value> operands,
                                                ArrayRef<int64_t> tied, TypeRange results) {
  std::string key = std::to_string(pair.value.getResultNumber());
  auto addKey = [&](StringRef text) { key += (";" + text).str(); };
  for (LaunchOp launch : {pair.first, pair.second}) {
    addKey(launch.getKernel());
    for (Value operand : launch->getOperands()) {
      addKey(std::to_string(llvm::find(operands, operand) - operands.begin()));
    }
  }
  for (int64_t operand : tied) {
    addKey(std::to_string(operand));
  }
  func::FuncOp &kernel = fusedKernels[key];
  if (kernel) {
    return kernel;
  }
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  auto type = builder.getFunctionType(TypeRange(ValueRange(operands)), results);
  Block &first = kernelOf(pair.first).front(), &second = kernelOf(pair.second).front();
  StringRef kind = findMainWork(kernelOf(main(pair)))->getName().stripDialect();
  std::string name = ("kernel_fused_" + kind + "_" + Twine(fusedKernels.size() - 1)).str();
  kernel = func::FuncOp::create(builder, pair.second.getLoc(), name, type);
  kernel.setPrivate();
  kernel->setAttr(kTiedAttrName, builder.getDenseI64ArrayAttr(tied));
  symbols->functions[kernel.getSymNameAttr()] = kernel;
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping outside, mapping;
  outside.map(operands, body->getArguments());
  SmallVector<Value> values;
  auto copy = [&](LaunchOp launch, Block &code) {
    for (auto [argument, operand] : llvm::zip_equal(code.getArguments(), launch->getOperands())) {
      mapping.map(argument, outside.lookup(operand));
    }
    for (Operation &op : code.without_terminator()) {
      builder.clone(op, mapping);
    }
    for (auto [result, value] :
         llvm::zip_equal(launch->getResults(), code.getTerminator()->getOperands())) {
      if (result == pair.value) {
        outside.map(pair.value, mapping.lookup(value));
      } else {
        values.push_back(mapping.lookup(value));
      }
    }
  };
  copy(pair.first, first);
  copy(pair.second, second);
  func::ReturnOp::create(builder, kernel.getLoc(), values);
  return kernel;
}

/// Replaces both launches by one in the place of the second.
LaunchOp FuseLaunchesPass::fuse(Pair pair) {
  SmallVector<Value> numbers;
  llvm::SetVector<Value> tensors;
  SmallVector<Type> types;
  SmallVector<Value> replaced;
  for (LaunchOp launch : {pair.first, pair.second}) {
    for (Value operand : launch->getOperands()) {
      if (operand.getType().isIndex()) {
        numbers.push_back(operand);
      } else if (operand != pair.value) {
        tensors.insert(operand);
      }
    }
    for (Value result : launch->getResults()) {
      if (result != pair.value) {
        types.push_back(result.getType());
        replaced.push_back(result);
      }
    }
  }
  SmallVector<Value> operands(numbers);
  operands.append(tensors.begin(), tensors.end());
  SmallVector<int64_t> tied = tiedOf(pair, operands);
  func::FuncOp kernel = findOrMakeKernel(pair, operands, tied, types);
  OpBuilder builder(pair.second);
  auto launch =
      LaunchOp::create(builder, main(pair)->getLoc(), types, kernel.getSymName(), operands, tied);
  for (auto [before, after] : llvm::zip_equal(replaced, launch->getResults())) {
    before.replaceAllUsesWith(after);
  }
  pair.second->erase();
  pair.first->erase();
  return launch;
}

} // namespace
} // namespace weft
