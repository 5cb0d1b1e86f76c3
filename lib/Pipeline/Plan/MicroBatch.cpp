//===- MicroBatch.cpp - functions of micro-batches ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroBatch.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
namespace {

/// Returns the call whose result `value` is, or null.
CallOp producerOf(Value value) { return dyn_cast_or_null<CallOp>(value.getDefiningOp()); }

Value createZeros(OpBuilder &builder, Location loc, RankedTensorType type) {
  return FillOp::create(builder, loc, type, 0.0);
}

/// Returns the type to which the step rounds the gradient `value` of a parameter, if nothing
/// else reads `value`; else null.
Type roundedTypeOf(Value value) {
  auto isObserved = [](Operation *user) {
    auto observe = dyn_cast<ObserveOp>(user);
    return observe && observe.getName().starts_with("gradient/");
  };
  auto map = value.hasOneUse() ? dyn_cast<MapOp>(*value.user_begin()) : MapOp();
  bool isRounding = map && isCast(map) && isNarrow(map.getOutputType().getElementType());
  return isRounding && llvm::any_of(map->getUsers(), isObserved)
             ? map.getOutputType().getElementType()
             : Type();
}

/// Returns the type of the sum of values like `value`: as wide as sums are computed, except where
/// the step rounds the sum.
RankedTensorType sumTypeOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Type rounded = roundedTypeOf(value);
  return type.clone(rounded ? rounded : wideTypeOf(type.getElementType()));
}

/// Creates the greater of two values; NaN if one of them is NaN.
Value createGreater(OpBuilder &builder, Location loc, Value first, Value second) {
  auto body = [](OpBuilder &inner, Location at, ValueRange in) {
    return SmallVector<Value>{arith::MaximumFOp::create(inner, at, in[0], in[1])};
  };
  return createMap(builder, loc, first.getType(), {first, second}, body).getResult(0);
}

void markMayPend(func::FuncOp function, unsigned argument) {
  function.setArgAttr(argument, kMayPendAttrName, UnitAttr::get(function.getContext()));
}
void markResultMayPend(func::FuncOp function, unsigned result) {
  function.setResultAttr(result, kMayPendAttrName, UnitAttr::get(function.getContext()));
}

} // namespace

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value createNextSum(OpBuilder &builder, Location loc, Value sum, Value value) {
  Type element = getElementTypeOrSelf(sum);
  auto body = [&](OpBuilder &inner, Location at, ValueRange in) {
    return SmallVector<Value>{castScalar(inner, at, addScalars(inner, at, in[0], in[1]), element)};
  };
  return createMap(builder, loc, sum.getType(), {sum, value}, body).getResult(0);
}

func::FuncOp SumFunctions::build(StringRef name, TypeRange arguments, RankedTensorType type,
                                 Location loc) {
  auto function =
      func::FuncOp::create(loc, name, FunctionType::get(type.getContext(), arguments, type));
  function.setPrivate();
  for (unsigned number = 0; number < arguments.size(); ++number) {
    markMayPend(function, number);
  }
  markResultMayPend(function, 0);
  Block *body = function.addEntryBlock();
  symbols.insert(function);
  auto builder = OpBuilder::atBlockBegin(body);
  Value result = arguments.empty()
                     ? createZeros(builder, loc, type)
                     : createNextSum(builder, loc, body->getArgument(0), body->getArgument(1));
  func::ReturnOp::create(builder, loc, result);
  return function;
}

const SumFunctions::Pair &SumFunctions::find(CallOp producer, OpResult value,
                                             RankedTensorType type) {
  auto [known, isNew] = pairs.try_emplace(
      {producer.getCallee().str(), value.getResultNumber(), isNarrow(type.getElementType())});
  if (isNew) {
    auto callee = symbols.lookup<func::FuncOp>(producer.getCallee());
    // Not the value's location, which is in one layer.
    Location loc = callee.getLoc();
    known->second.start = build("sum_start", {}, type, loc);
    known->second.next = build("sum_next", {type, value.getType()}, type, loc);
    markResultMayPend(callee, value.getResultNumber());
  }
  return known->second;
}

Value SumFunctions::createStart(OpBuilder &builder, Value value, RankedTensorType type) {
  CallOp producer = producerOf(value);
  if (!producer) {
    return createZeros(builder, value.getLoc(), type);
  }
  func::FuncOp start = find(producer, cast<OpResult>(value), type).start;
  return CallOp::create(builder, value.getLoc(), start.getResultTypes(), start.getSymName(),
                        producer.getLabel(), ValueRange())
      .getResult(0);
}

Value SumFunctions::createNext(OpBuilder &builder, Value sum, Value value) {
  CallOp producer = producerOf(value);
  if (!producer) {
    return createNextSum(builder, value.getLoc(), sum, value);
  }
  auto type = cast<RankedTensorType>(sum.getType());
  func::FuncOp next = find(producer, cast<OpResult>(value), type).next;
  return CallOp::create(builder, value.getLoc(), next.getResultTypes(), next.getSymName(),
                        producer.getLabel(), ValueRange{sum, value})
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// One micro-batch
//===----------------------------------------------------------------------===//

namespace {

/// Splits a root in two: ops that depend on samples, the members, and ops that run once in a step.
class MicroBatchBuilder {
public:
  MicroBatchBuilder(func::FuncOp root, const BatchRoles &roles, int64_t count, SumFunctions &sums)
      : root(root), roles(roles), count(count), sums(sums) {}

  func::FuncOp run() {
    findMembers();
    findGiven();
    findHeld();
    buildFunction();
    callFunction();
    eraseDead();
    return function;
  }

private:
  void findMembers();
  bool joinsSums(Operation *op) const;
  void findGiven();
  void findHeld();
  bool isSum(Value value) const { return roles.of(value) == BatchRole::Sum; }
  Value createStart(OpBuilder &builder, Value value, Type type);
  Value createNext(OpBuilder &builder, Value before, Value value);
  void buildFunction();
  void copyFree(Value value, OpBuilder &builder, IRMapping &copies);
  void copyRead(ReadOp read, OpBuilder &builder, IRMapping &copies);
  void callFunction();
  void eraseDead();

  func::FuncOp root, function;
  const BatchRoles &roles;
  int64_t count;
  SumFunctions &sums;
  llvm::DenseSet<Operation *> members;
  /// Results of members with users that are no members, and the types of these results over all
  /// micro-batches.
  SmallVector<Value> given;
  SmallVector<Type> types;
  /// Narrow values that do not depend on samples: the copies of weights that matmuls read. They are
  /// computed once in a step, and all micro-batches read them.
  llvm::SetVector<Value> held;
  /// The number of the micro-batch.
  Value number;
};

void MicroBatchBuilder::findMembers() {
  for (Operation &op : root.getOps()) {
    if (!isa<ReadOp>(op) && (isPerSample(&op) || joinsSums(&op))) {
      members.insert(&op);
    }
  }
}

/// Returns true if `op` joins several sums that have no other users into one sum.
bool MicroBatchBuilder::joinsSums(Operation *op) const {
  return op->getNumOperands() > 1 && op->getNumResults() == 1 && isa<ShardableOpInterface>(op) &&
         roles.of(op->getResult(0)) == BatchRole::Sum &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation *definition = operand.getDefiningOp();
           return roles.of(operand) == BatchRole::Sum && definition &&
                  members.contains(definition) &&
                  llvm::all_of(operand.getUsers(), [&](Operation *user) { return user == op; });
         });
}

void MicroBatchBuilder::findGiven() {
  for (Operation &op : root.getOps()) {
    for (Value result : op.getResults()) {
      if (members.contains(&op) && llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(user);
          })) {
        given.push_back(result);
        types.push_back(isSum(result) ? sumTypeOf(result) : result.getType());
      }
    }
  }
}

void MicroBatchBuilder::findHeld() {
  for (Operation &op : root.getOps()) {
    for (Value operand : op.getOperands()) {
      bool isFree = members.contains(&op) && !members.contains(operand.getDefiningOp());
      if (isFree && !isPerSample(operand.getType()) && isNarrow(getElementTypeOrSelf(operand))) {
        held.insert(operand);
      }
    }
  }
}

/// Creates the result of no micro-batches. Results that are no sums are maxima, or equal for all
/// micro-batches.
Value MicroBatchBuilder::createStart(OpBuilder &builder, Value value, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return isSum(value) ? sums.createStart(builder, value, tensor)
                      : FillOp::create(builder, value.getLoc(), tensor,
                                       -std::numeric_limits<double>::infinity());
}

Value MicroBatchBuilder::createNext(OpBuilder &builder, Value before, Value value) {
  return isSum(value) ? sums.createNext(builder, before, value)
                      : createGreater(builder, value.getLoc(), before, value);
}

void MicroBatchBuilder::buildFunction() {
  SmallVector<Type> arguments = {IndexType::get(root.getContext())};
  llvm::append_range(arguments, types);
  llvm::append_range(arguments, llvm::map_range(held, [](Value v) { return v.getType(); }));
  auto type = FunctionType::get(root.getContext(), arguments, types);
  std::string name = (root.getSymName() + "_micro_batch").str();
  function = func::FuncOp::create(root.getLoc(), name, type);
  function.setPrivate();
  function->setAttr(kMicroBatchAttrName, UnitAttr::get(root.getContext()));
  for (auto [place, value] : llvm::enumerate(given)) {
    if (isSum(value)) {
      markMayPend(function, unsigned(place) + 1);
      markResultMayPend(function, unsigned(place));
    }
  }
  Block *body = function.addEntryBlock();
  SymbolTable(root->getParentOp()).insert(function, root->getIterator());
  number = body->getArgument(0);

  auto builder = OpBuilder::atBlockEnd(body);
  IRMapping copies;
  copies.map(held.getArrayRef(), body->getArguments().take_back(held.size()));
  SmallVector<Value> ends(types.size());
  for (Operation &op : llvm::make_early_inc_range(root.getOps())) {
    if (!members.contains(&op)) {
      continue;
    }
    for (OpOperand &operand : op.getOpOperands()) {
      Operation *definition = operand.get().getDefiningOp();
      if (definition->getBlock() != body) {
        copyFree(operand.get(), builder, copies);
        operand.set(copies.lookupOrDefault(operand.get()));
      }
    }
    op.moveBefore(body, body->end());
    for (auto [place, value] : llvm::enumerate(given)) {
      if (value.getDefiningOp() == &op) {
        ends[place] = createNext(builder, body->getArgument(unsigned(place) + 1), value);
      }
    }
  }
  func::ReturnOp::create(builder, root.getLoc(), ends);
}

/// Copies the ops that compute `value` from inputs and values that do not depend on samples.
/// BatchRoles ensures that members use no other values, except for their shapes, such as the zero
/// gradient of a sum.
void MicroBatchBuilder::copyFree(Value value, OpBuilder &builder, IRMapping &copies) {
  Operation *definition = value.getDefiningOp();
  if (copies.contains(value) || definition->getParentOp() == function) {
    return;
  }
  if (auto read = dyn_cast<ReadOp>(definition)) {
    return copyRead(read, builder, copies);
  }
  for (Value operand : definition->getOperands()) {
    copyFree(operand, builder, copies);
  }
  builder.clone(*definition, copies);
}

/// Copies a read; of an input, it selects this micro-batch.
void MicroBatchBuilder::copyRead(ReadOp read, OpBuilder &builder, IRMapping &copies) {
  auto type = cast<RankedTensorType>(read.getOutput().getType());
  if (!isPerSample(type)) {
    builder.clone(*read, copies);
    return;
  }
  SmallVector<int64_t> shape = {count};
  llvm::append_range(shape, type.getShape());
  Value whole = ReadOp::create(builder, read.getLoc(), type.clone(shape), read.getVariable());
  copies.map(read.getOutput(), SelectOp::create(builder, read.getLoc(), type, whole, number));
}

void MicroBatchBuilder::callFunction() {
  auto builder = OpBuilder::atBlockBegin(&root.getBody().front());
  Location loc = root.getLoc();
  IRMapping copies;
  for (Value value : held) {
    copyFree(value, builder, copies);
  }
  SmallVector<Value> all;
  for (auto [value, type] : llvm::zip(given, types)) {
    all.push_back(createStart(builder, value, type));
  }
  for (int64_t part = 0; part < count; ++part) {
    SmallVector<Value> operands = {arith::ConstantIndexOp::create(builder, loc, part)};
    llvm::append_range(operands, all);
    llvm::append_range(operands,
                       llvm::map_range(held, [&](Value value) { return copies.lookup(value); }));
    auto call = CallOp::create(builder, loc, types, function.getSymName(),
                               "micro-batch " + std::to_string(part), operands);
    all.assign(call.getResults().begin(), call.getResults().end());
  }
  for (auto [value, whole] : llvm::zip(given, all)) {
    Value cast = createCast(builder, value.getLoc(), whole, getElementTypeOrSelf(value));
    value.replaceUsesWithIf(cast,
                            [&](OpOperand &use) { return use.getOwner()->getParentOp() == root; });
  }
}

/// Erases originals of copied ops that have no other users.
void MicroBatchBuilder::eraseDead() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(root.getBody().front()))) {
    if (isOpTriviallyDead(&op) || (isa<CallOp>(op) && op.use_empty())) {
      op.erase();
    }
  }
}

} // namespace

func::FuncOp buildMicroBatch(func::FuncOp root, const BatchRoles &roles, int64_t count,
                             SumFunctions &sums) {
  return MicroBatchBuilder(root, roles, count, sums).run();
}

//===----------------------------------------------------------------------===//
// Numbers of samples
//===----------------------------------------------------------------------===//

namespace {

/// Returns true if the result of `op` depends on the numbers of samples.
bool numbersSamples(Operation *op) {
  auto positional = dyn_cast<PositionOpInterface>(op);
  if (!positional) {
    return false;
  }
  FactorRule rule = cast<ShardableOpInterface>(op).getFactorRule();
  return llvm::any_of(positional.getPositionFactors(), [&](unsigned factor) {
    return ShapedType::isDynamic(rule.factors[factor].size);
  });
}

/// Micro-batches have equal sizes: sample i of micro-batch m has the number m * samples / count +
/// i.
void setPosition(PositionOpInterface op, Value number, int64_t count, int64_t samples) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  FactorRule rule = cast<ShardableOpInterface>(op.getOperation()).getFactorRule();
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
  for (unsigned factor : op.getPositionFactors()) {
    int64_t size = rule.factors[factor].size;
    bool isBatch = ShapedType::isDynamic(size);
    Value offset = arith::ConstantIndexOp::create(builder, loc, isBatch ? samples / count : 0);
    offsets.push_back(isBatch ? arith::MulIOp::create(builder, loc, number, offset).getResult()
                              : offset);
    sizes.push_back(isBatch ? samples : size);
  }
  op.setPosition(offsets, sizes);
}

/// Gives the number of the micro-batch to all functions that need it.
class SampleNumbering {
public:
  SampleNumbering(ModuleOp module, ArrayRef<func::FuncOp> microBatches)
      : module(module), symbols(module), microBatches(microBatches.begin(), microBatches.end()) {}

  void run(int64_t count, int64_t samples) {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isPrivate() && needs(function)) {
        give(function, count, samples);
      }
    }
  }

private:
  /// Returns true if ops of the function, or of functions that it calls, number samples.
  bool needs(func::FuncOp function) {
    auto [known, isNew] = needing.try_emplace(function, false);
    if (isNew) {
      bool found = llvm::any_of(function.getOps(), [&](Operation &op) {
        auto call = dyn_cast<CallOp>(op);
        return call ? needs(symbols.lookup<func::FuncOp>(call.getCallee())) : numbersSamples(&op);
      });
      needing[function] = found;
    }
    return needing[function];
  }

  void give(func::FuncOp function, int64_t count, int64_t samples) {
    unsigned place = 0;
    if (!microBatches.contains(function)) {
      place = function.getNumArguments();
      (void)function.insertArgument(place, IndexType::get(function.getContext()), {},
                                    function.getLoc());
    }
    Value number = function.getArgument(place);
    for (Operation &op : llvm::make_early_inc_range(function.getOps())) {
      auto call = dyn_cast<CallOp>(op);
      if (call && needs(symbols.lookup<func::FuncOp>(call.getCallee()))) {
        call.getOperandsMutable().append(number);
      } else if (numbersSamples(&op)) {
        setPosition(cast<PositionOpInterface>(op), number, count, samples);
      }
    }
  }

  ModuleOp module;
  SymbolTable symbols;
  llvm::DenseSet<Operation *> microBatches;
  llvm::DenseMap<Operation *, bool> needing;
};

} // namespace

void numberSamples(ModuleOp module, ArrayRef<func::FuncOp> microBatches, int64_t count,
                   int64_t samples) {
  SampleNumbering(module, microBatches).run(count, samples);
}

} // namespace weft
