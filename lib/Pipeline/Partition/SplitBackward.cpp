//===- SplitBackward.cpp - weight gradients in functions of their own -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/BackwardParts.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Pipeline/Partition/Passes.h"

#include "mlir/IR/IRMapping.h"

#include <deque>
#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

/// The two functions that a function becomes: the second one gets, behind arguments of the whole,
/// what the first one returns behind results of the whole.
struct SplitFunction {
  func::FuncOp first, second;
  SmallVector<Type> kept;
};

template <typename Range> SmallVector<Value> chosen(Range &&values, const llvm::BitVector &which) {
  return llvm::map_to_vector(which.set_bits(),
                             [&](unsigned each) -> Value { return values[each]; });
}

/// Makes functions of the parts of functions.
class PartFunctions {
public:
  explicit PartFunctions(ModuleOp module) : symbols(module) {}

  const SplitFunction &of(const FunctionParts &parts) {
    auto found = made.find(&parts);
    if (found == made.end()) {
      SplitFunction split;
      makeFirst(parts, split);
      makeSecond(parts, split);
      found = made.try_emplace(&parts, split).first;
    }
    return found->second;
  }

  /// Replaces a call of the whole function.
  void replace(CallOp call, const FunctionParts &parts) {
    OpBuilder builder(call);
    CallOp first = callFirst(builder, call, parts, call.getOperands());
    auto kept = first->getResults().drop_front(parts.firstResults.count());
    CallOp second = callSecond(builder, call, parts, call.getOperands(), kept);
    unsigned ofFirst = 0, ofSecond = 0;
    for (OpResult result : call->getResults()) {
      bool isFirst = parts.firstResults[result.getResultNumber()];
      result.replaceAllUsesWith(isFirst ? first.getResult(ofFirst++)
                                        : second.getResult(ofSecond++));
    }
    call.erase();
  }

  /// Erases whole functions that are not called any more, callers first.
  void eraseUnused() {
    for (bool isErasing = true; isErasing;) {
      isErasing = false;
      for (auto &[parts, split] : made) {
        func::FuncOp whole = parts->function;
        if (!erased.contains(whole) &&
            SymbolTable::symbolKnownUseEmpty(whole, whole->getParentOp())) {
          erased.insert(whole);
          symbols.erase(whole);
          isErasing = true;
        }
      }
    }
  }

private:
  static CallOp makeCall(OpBuilder &builder, CallOp like, func::FuncOp callee,
                         ValueRange operands) {
    auto call = CallOp::create(builder, like.getLoc(), callee.getResultTypes(), callee.getSymName(),
                               like.getLabel(), operands);
    call->setDiscardableAttrs(like->getDiscardableAttrDictionary());
    return call;
  }

  /// `operands` are those of the whole function.
  CallOp callFirst(OpBuilder &builder, CallOp like, const FunctionParts &parts,
                   ValueRange operands) {
    return makeCall(builder, like, of(parts).first, chosen(operands, parts.firstArguments));
  }

  CallOp callSecond(OpBuilder &builder, CallOp like, const FunctionParts &parts,
                    ValueRange operands, ValueRange kept) {
    SmallVector<Value> own = chosen(operands, parts.secondArguments);
    llvm::append_range(own, kept);
    return makeCall(builder, like, of(parts).second, own);
  }

  /// Returns an empty function with some of the arguments of the whole.
  func::FuncOp begin(const FunctionParts &parts, const llvm::BitVector &arguments,
                     const Twine &suffix, IRMapping &values) {
    func::FuncOp whole = parts.function;
    auto own = chosen(whole.getArguments(), arguments);
    auto function =
        func::FuncOp::create(whole.getLoc(), (whole.getSymName() + suffix).str(),
                             FunctionType::get(whole.getContext(), TypeRange(ValueRange(own)), {}));
    function.setPrivate();
    function->setDiscardableAttrs(whole->getDiscardableAttrDictionary());
    symbols.insert(function, whole->getIterator());
    Block *block = function.addEntryBlock();
    for (auto [argument, value] : llvm::zip_equal(block->getArguments(), own)) {
      argument.setLoc(value.getLoc());
      values.map(value, argument);
    }
    return function;
  }

  static void end(func::FuncOp function, OpBuilder &builder, ValueRange results) {
    func::ReturnOp::create(builder, function.getLoc(), results);
    function.setType(FunctionType::get(
        function.getContext(), function.getBody().front().getArgumentTypes(), results.getTypes()));
  }

  SmallVector<Value> returnedBy(const FunctionParts &parts, bool isFirst) const {
    llvm::BitVector which = parts.firstResults;
    func::FuncOp whole = parts.function;
    return chosen(whole.getBody().front().getTerminator()->getOperands(),
                  isFirst ? which : which.flip());
  }

  void makeFirst(const FunctionParts &parts, SplitFunction &split) {
    IRMapping values;
    split.first = begin(parts, parts.firstArguments, kInputGradientsSuffix, values);
    auto builder = OpBuilder::atBlockEnd(&split.first.getBody().front());
    SmallVector<Value> ofCalls;
    for (Operation *op : parts.first) {
      const FunctionParts *callee = parts.calls.lookup(op);
      if (!callee) {
        builder.clone(*op, values);
        continue;
      }
      auto call = cast<CallOp>(op);
      auto operands = llvm::map_to_vector(op->getOperands(),
                                          [&](Value value) { return values.lookupOrNull(value); });
      CallOp first = callFirst(builder, call, *callee, operands);
      values.map(chosen(op->getResults(), callee->firstResults),
                 first->getResults().take_front(callee->firstResults.count()));
      llvm::append_range(ofCalls, first->getResults().drop_front(callee->firstResults.count()));
    }
    auto here = [&](Value value) { return values.lookup(value); };
    auto results = llvm::map_to_vector(returnedBy(parts, true), here);
    auto kept = llvm::map_to_vector(parts.kept, here);
    llvm::append_range(kept, ofCalls);
    llvm::append_range(results, kept);
    llvm::append_range(split.kept, ValueRange(kept).getTypes());
    end(split.first, builder, results);
  }

  void makeSecond(const FunctionParts &parts, SplitFunction &split) {
    IRMapping values;
    split.second = begin(parts, parts.secondArguments, kWeightGradientsSuffix, values);
    Block &block = split.second.getBody().front();
    SmallVector<Value> kept;
    for (Type type : split.kept) {
      kept.push_back(block.addArgument(type, split.second.getLoc()));
    }
    values.map(parts.kept.getArrayRef(), ArrayRef(kept).take_front(parts.kept.size()));
    ArrayRef<Value> ofCalls = ArrayRef(kept).drop_front(parts.kept.size());
    auto builder = OpBuilder::atBlockEnd(&block);
    for (Operation *op : parts.second) {
      const FunctionParts *callee = parts.calls.lookup(op);
      if (!callee) {
        builder.clone(*op, values);
        continue;
      }
      const size_t count = of(*callee).kept.size();
      auto operands = llvm::map_to_vector(op->getOperands(),
                                          [&](Value value) { return values.lookupOrNull(value); });
      CallOp second =
          callSecond(builder, cast<CallOp>(op), *callee, operands, ofCalls.take_front(count));
      ofCalls = ofCalls.drop_front(count);
      llvm::BitVector own = callee->firstResults;
      values.map(chosen(op->getResults(), own.flip()), second->getResults());
    }
    end(split.second, builder, llvm::map_to_vector(returnedBy(parts, false), [&](Value value) {
          return values.lookup(value);
        }));
  }

  SymbolTable symbols;
  std::map<const FunctionParts *, SplitFunction> made;
  llvm::DenseSet<Operation *> erased;
};

struct SplitBackwardPass : impl::SplitBackwardPassBase<SplitBackwardPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (chunks.empty() || !step) {
      return;
    }
    SymbolTable symbols(module);
    BackwardParts all(module);
    std::deque<std::pair<FunctionParts, SmallVector<CallOp>>> found;
    for (auto &[function, calls] : findBackward(step, symbols)) {
      const llvm::BitVector awaited = findAwaitedResults(calls.front(), symbols);
      found.emplace_back(all.of(function, awaited), calls);
    }
    // Now that all is found, the module may change.
    PartFunctions functions(module);
    for (auto &[parts, calls] : found) {
      if (parts.first.empty()) {
        // Nobody waits for any of it, so all of it may be done later.
        parts.function->setAttr(kWeightGradientsAttrName, UnitAttr::get(&getContext()));
      } else if (!parts.second.empty()) {
        split(functions, parts, calls);
      }
    }
    functions.eraseUnused();
  }

  static void split(PartFunctions &functions, FunctionParts &parts, ArrayRef<CallOp> calls) {
    // Functions of a micro-batch get its number first.
    parts.firstArguments.set(0);
    parts.secondArguments.set(0);
    func::FuncOp second = functions.of(parts).second;
    second->setAttr(kWeightGradientsAttrName, UnitAttr::get(second.getContext()));
    for (CallOp call : calls) {
      functions.replace(call, parts);
    }
  }

  /// Returns the calls of the chunks' functions; the one that is called first is forward.
  llvm::MapVector<func::FuncOp, SmallVector<CallOp>>
  findBackward(func::FuncOp step, const SymbolTable &symbols) const {
    llvm::MapVector<func::FuncOp, SmallVector<CallOp>> calls;
    llvm::DenseMap<int64_t, func::FuncOp> forward;
    for (auto call : step.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee->hasAttr(kMicroBatchAttrName) || !markedStageOf(callee)) {
        continue;
      }
      const int64_t chunk = *markedChunkOf(callee);
      bool isBackward = forward.try_emplace(chunk, callee).first->second != callee;
      if (isBackward && llvm::is_contained(chunks, chunk)) {
        calls[callee].push_back(call);
      }
    }
    return calls;
  }
};

} // namespace
} // namespace weft
