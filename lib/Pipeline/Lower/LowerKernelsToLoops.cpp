//===- LowerKernelsToLoops.cpp - kernel functions to loops on memrefs ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Lower/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace weft {

#define GEN_PASS_DEF_LOWERKERNELSTOLOOPSPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;
using lower::Buffer;
using lower::Code;

namespace {

/// Every buffer begins at a multiple of this, see `weft::rt::kAlignment`.
constexpr int64_t kAlignment = 64;

bool isTensor(Type type) { return isa<RankedTensorType>(type); }

bool isLocal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || (tensor.hasStaticShape() && !tensor.getEncoding());
}

MemRefType memrefOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// Builds a function on memrefs for one kernel function, and inserts it beside that.
class KernelLowering {
public:
  KernelLowering(func::FuncOp kernel, lower::Processor processor)
      : kernel(kernel), processor(processor) {}

  LogicalResult run();

private:
  LogicalResult checkSignature();
  LogicalResult checkBody();
  LogicalResult checkReuse();
  bool isReturned(Value value) { return llvm::is_contained(getReturn().getOperands(), value); }
  void makeFunction();
  void makeResults(Code &code);
  void lowerOp(Code &code, Operation &op);
  LogicalResult inlineMaps(Code &code);
  LogicalResult inlineMap(Code &code, MapOp map, Value value);
  void inlineMapAt(Code &code, MapOp map, Value value, Operation *access);

  ArrayRef<int64_t> getTied() {
    return kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName).asArrayRef();
  }
  func::ReturnOp getReturn() { return cast<func::ReturnOp>(kernel.front().getTerminator()); }
  /// Number of axes of the mesh, if the kernel reads its coordinates; else 0.
  int64_t countMeshAxes();

  func::FuncOp kernel, lowered;
  lower::Processor processor;
  /// The lowered form of each value: a memref for a tensor.
  IRMapping known;
  /// The memref of each result of the kernel.
  SmallVector<Value> results;
  /// Values that a map takes or computes elementwise, and the maps.
  llvm::MapVector<Value, MapOp> inlined;
};

LogicalResult KernelLowering::checkSignature() {
  auto tied = kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName);
  FunctionType type = kernel.getFunctionType();
  if (!tied || tied.size() != static_cast<int64_t>(type.getNumResults())) {
    return kernel.emitOpError() << "needs an attribute '" << kTiedAttrName
                                << "' with one number for each result";
  }
  if (!kernel.getBody().hasOneBlock()) {
    return kernel.emitOpError("expected a kernel with a body of one block");
  }
  for (Type argument : type.getInputs()) {
    if (!argument.isIndex() && !(isTensor(argument) && isLocal(argument))) {
      return kernel.emitOpError()
             << "expected arguments of a kernel that are indices or tensors of "
                "static shape without encoding, got "
             << argument;
    }
  }
  llvm::SmallDenseSet<int64_t> seen;
  for (auto [number, argument] : llvm::enumerate(tied.asArrayRef())) {
    if (argument == -1) {
      continue;
    }
    StringRef reason;
    if (argument < 0 || argument >= static_cast<int64_t>(type.getNumInputs())) {
      reason = "there is none";
    } else if (type.getInput(argument) != type.getResult(number)) {
      reason = "it has another type";
    } else if (!seen.insert(argument).second) {
      reason = "it is tied already";
    }
    if (!reason.empty()) {
      return kernel.emitOpError() << "result " << number << " cannot be tied to argument "
                                  << argument << ": " << reason;
    }
  }
  return success();
}

LogicalResult KernelLowering::checkBody() {
  for (Operation &op : kernel.front().without_terminator()) {
    bool hasTensors =
        llvm::any_of(op.getOperandTypes(), isTensor) || llvm::any_of(op.getResultTypes(), isTensor);
    if (hasTensors && !isa<HostLoweringOpInterface>(op)) {
      return op.emitOpError("cannot be part of a kernel for the host");
    }
    for (Value result : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!isLocal(result.getType())) {
        return op.emitOpError("must have results of static shape without encoding");
      }
      if (!type || type.getRank() == 0 || isReturned(result)) {
        continue;
      }
      Operation *map = result.hasOneUse()
                           ? findInlinedMap(cast<OpResult>(result), *result.use_begin())
                           : nullptr;
      if (map) {
        inlined[result] = cast<MapOp>(map);
        continue;
      }
      return op.emitOpError() << "would need memory for " << type
                              << ": a value inside of a kernel must be a single element, or pass "
                                 "from or to a map elementwise";
    }
  }
  return checkReuse();
}

/// Checks that no op reads an argument after a result has overwritten it, and that the op that
/// computes the result may overwrite it.
LogicalResult KernelLowering::checkReuse() {
  for (auto [number, argument] : llvm::enumerate(getTied())) {
    if (argument == -1) {
      continue;
    }
    Value operand = kernel.getArgument(argument);
    auto result = dyn_cast<OpResult>(getReturn().getOperand(number));
    if (!result) {
      if (getReturn().getOperand(number) == operand) {
        continue;
      }
      return kernel.emitOpError() << "result " << number << " is tied to argument " << argument
                                  << ", but is another argument";
    }
    Operation *writer = result.getOwner();
    for (OpOperand &use : operand.getUses()) {
      Operation *reader = use.getOwner();
      if (reader == writer) {
        auto op = cast<HostLoweringOpInterface>(writer);
        if (!op.mayReuse(use.getOperandNumber(), result.getResultNumber())) {
          return writer->emitOpError() << "cannot write result " << result.getResultNumber()
                                       << " over operand " << use.getOperandNumber();
        }
      } else if (writer->isBeforeInBlock(reader)) {
        return reader->emitOpError()
               << "reads argument " << argument << " after result " << number << " overwrote it";
      }
    }
  }
  return success();
}

int64_t KernelLowering::countMeshAxes() {
  int64_t count = 0;
  kernel.walk(
      [&](AxisIndexOp op) { count = static_cast<int64_t>(op.getMesh().getNames().size()); });
  return count;
}

void KernelLowering::makeFunction() {
  OpBuilder builder(kernel);
  FunctionType type = kernel.getFunctionType();
  SmallVector<Type> inputs = {MemRefType::get({countMeshAxes()}, builder.getI64Type())};
  for (Type argument : type.getInputs()) {
    inputs.push_back(isTensor(argument) ? memrefOf(argument) : argument);
  }
  for (auto [result, argument] : llvm::zip_equal(type.getResults(), getTied())) {
    if (argument == -1) {
      inputs.push_back(memrefOf(result));
    }
  }
  lowered = func::FuncOp::create(builder, kernel.getLoc(), kernel.getName(),
                                 builder.getFunctionType(inputs, {}));
  lowered.setPrivate();
  lowered.addEntryBlock();
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (isa<MemRefType>(input)) {
      lowered.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    }
    if (isa<MemRefType>(input) && number != 0) {
      lowered.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                         builder.getI64IntegerAttr(kAlignment));
    }
  }
}

/// Sets the memref of each result, and of each value inside of the kernel.
void KernelLowering::makeResults(Code &code) {
  known.map(kernel.getArguments(), lowered.getArguments().slice(1, kernel.getNumArguments()));
  unsigned next = kernel.getNumArguments() + 1;
  for (auto [value, argument] : llvm::zip_equal(getReturn().getOperands(), getTied())) {
    Value memref = argument == -1 ? Value(lowered.getArgument(next++))
                                  : Value(lowered.getArgument(argument + 1));
    results.push_back(memref);
    if (isa<OpResult>(value) && !known.contains(value)) {
      known.map(value, memref);
    }
  }
  for (Operation &op : kernel.front().without_terminator()) {
    for (Value result : op.getResults()) {
      if (isTensor(result.getType()) && !known.contains(result)) {
        MemRefType type = memrefOf(result.getType());
        known.map(result, Value(code.scratch(type.getElementType(), type.getShape())));
      }
    }
  }
}

void KernelLowering::lowerOp(Code &code, Operation &op) {
  code.setLoc(op.getLoc());
  auto lookUp = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return known.lookup(value); });
  };
  if (auto model = dyn_cast<HostLoweringOpInterface>(op)) {
    model.lowerToLoops(code, lookUp(op.getOperands()), lookUp(op.getResults()));
  } else if (auto place = dyn_cast<AxisIndexOp>(op)) {
    Buffer coordinates(code, lowered.getArgument(0));
    int64_t axis = place.getMesh().getIndex(place.getAxisAttr());
    known.map(place.getOutput(), Value(code.toIndex(coordinates(code.index(axis)))));
  } else {
    code.getBuilder().clone(op, known);
  }
}

/// Lets `map` compute at `access`, the load or store of an element of `value`'s memory.
void KernelLowering::inlineMapAt(Code &code, MapOp map, Value value, Operation *access) {
  code.getBuilder().setInsertionPoint(access);
  auto load = dyn_cast<memref::LoadOp>(access);
  auto store = dyn_cast<memref::StoreOp>(access);
  ArrayRef<int64_t> shape = (load ? load.getMemRefType() : store.getMemRefType()).getShape();
  lower::Nums at = llvm::map_to_vector<4>(load ? load.getIndices() : store.getIndices(),
                                          [&](Value index) { return code.num(index); });
  Block &body = map.getBody().front();
  IRMapping elements;
  for (auto [input, argument] : llvm::zip_equal(map.getInputs(), body.getArguments())) {
    if (input == value) {
      elements.map(argument, store.getValueToStore());
      continue;
    }
    Buffer buffer = code.buffer(known.lookup(input));
    elements.map(argument, Value(buffer.getRank() == 0 ? buffer.loadStored({})
                                                       : buffer.view(shape).loadStored(at)));
  }
  for (Operation &op : body.without_terminator()) {
    code.getBuilder().clone(op, elements);
  }
  auto yielded = llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value result) {
    return elements.lookupOrDefault(result);
  });
  if (load) {
    load.replaceAllUsesWith(yielded.front());
  } else {
    for (auto [result, element] : llvm::zip_equal(map->getResults(), yielded)) {
      code.buffer(known.lookup(result)).view(shape).storeStored(code.num(element), at);
    }
  }
  access->erase();
}

/// Replaces all accesses to the memory of `value`, and the memory.
LogicalResult KernelLowering::inlineMap(Code &code, MapOp map, Value value) {
  bool isLoaded = map->getResults().front() == value;
  SmallVector<Operation *> views = {known.lookup(value).getDefiningOp()};
  for (size_t number = 0; number < views.size(); ++number) {
    for (Operation *user : llvm::make_early_inc_range(views[number]->getUsers())) {
      if (isa<memref::ReinterpretCastOp>(user)) {
        views.push_back(user);
      } else if (isLoaded ? isa<memref::LoadOp>(user) : isa<memref::StoreOp>(user)) {
        inlineMapAt(code, map, value, user);
      } else {
        return map.emitOpError("internal error: elements are accessed otherwise than one by one");
      }
    }
  }
  for (Operation *view : llvm::reverse(views)) {
    view->erase();
  }
  return success();
}

LogicalResult KernelLowering::inlineMaps(Code &code) {
  for (auto [value, map] : inlined) {
    if (failed(inlineMap(code, map, value))) {
      return failure();
    }
  }
  code.getBuilder().setInsertionPointToEnd(&lowered.front());
  return success();
}

LogicalResult KernelLowering::run() {
  if (failed(checkSignature()) || failed(checkBody())) {
    return failure();
  }
  makeFunction();
  OpBuilder builder(kernel.getContext());
  Code code(lowered, builder, kernel.getLoc(), processor);
  makeResults(code);
  for (Operation &op : kernel.front().without_terminator()) {
    bool isInlined = llvm::any_of(inlined, [&](auto pair) { return pair.second == &op; });
    if (!isInlined) {
      lowerOp(code, op);
    }
  }
  if (failed(inlineMaps(code))) {
    return failure();
  }
  for (auto [value, memref] : llvm::zip_equal(getReturn().getOperands(), results)) {
    if (known.lookup(value) != memref) {
      code.copyWhole(code.buffer(known.lookup(value)), code.buffer(memref));
    }
  }
  func::ReturnOp::create(builder, kernel.getLoc());
  kernel.erase();
  return success();
}

struct LowerKernelsToLoopsPass : impl::LowerKernelsToLoopsPassBase<LowerKernelsToLoopsPass> {
  using LowerKernelsToLoopsPassBase::LowerKernelsToLoopsPassBase;

  void runOnOperation() override {
    auto processor = forDevices ? lower::Processor::Device : lower::Processor::Host;
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function->hasAttr(kTiedAttrName) && failed(KernelLowering(function, processor).run())) {
        return signalPassFailure();
      }
    }
  }
};

} // namespace

} // namespace weft
