//===- MapOp.cpp - elementwise ops --------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

void MapOp::build(OpBuilder &builder, OperationState &state, TypeRange outputs, ValueRange inputs,
                  ArrayRef<AffineMap> maps,
                  function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> body) {
  state.addOperands(inputs);
  state.addTypes(outputs);
  state.getOrAddProperties<Properties>().maps = builder.getAffineMapArrayAttr(maps);
  Region *region = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(region);
  for (Value input : inputs) {
    block->addArgument(getElementTypeOrSelf(input.getType()), state.location);
  }
  SmallVector<Value> values = body(builder, state.location, block->getArguments());
  YieldOp::create(builder, state.location, values);
}

/// Builds the implicit terminator; a map without results does not verify.
void YieldOp::build(OpBuilder &, OperationState &) {}

SmallVector<unsigned> MapOp::getInputDims(unsigned number) {
  AffineMap map = cast<AffineMapAttr>(getMaps()[number]).getValue();
  SmallVector<unsigned> dims;
  for (AffineExpr expr : map.getResults()) {
    dims.push_back(cast<AffineDimExpr>(expr).getPosition());
  }
  return dims;
}

RankedTensorType MapOp::getOutputType(unsigned number) {
  return cast<RankedTensorType>(getOutputs()[number].getType());
}

/// map_c1 for one operand.
static LogicalResult verifyMap(Operation *op, unsigned number, AffineMap map, int64_t rank) {
  int64_t last = -1;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || static_cast<int64_t>(dim.getPosition()) <= last) {
      return op->emitOpError() << "map #" << number
                               << " must name distinct dimensions in rising order, got "
                               << AffineMapAttr::get(map);
    }
    last = dim.getPosition();
  }
  if (static_cast<int64_t>(map.getNumDims()) != rank || map.getNumSymbols() != 0) {
    return op->emitOpError() << "map #" << number << " must go from the " << rank
                             << " dimensions of the result, got " << AffineMapAttr::get(map);
  }
  return success();
}

/// map_c5 for one op.
static LogicalResult verifyNoNarrowArithmetic(Operation &op) {
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SelectOp, arith::ConstantOp>(op)) {
    return success();
  }
  for (Type type : llvm::concat<const Type>(llvm::to_vector<4>(op.getOperandTypes()),
                                            llvm::to_vector<4>(op.getResultTypes()))) {
    if (isNarrow(type)) {
      return op.emitOpError() << "computes in " << type << ", expected to in f32";
    }
  }
  return success();
}

/// map_c3 and map_c4.
template <typename OpTy> static LogicalResult verifyScalarCode(OpTy op) {
  Block &block = op.getBody().front();
  if (block.getNumArguments() != op->getNumOperands()) { // map_c3
    return op.emitOpError() << "region takes " << block.getNumArguments()
                            << " scalars, expected one for each operand: " << op->getNumOperands();
  }
  for (auto [argument, input] : llvm::zip(block.getArguments(), op.getInputs())) {
    if (argument.getType() != getElementTypeOrSelf(input.getType())) {
      return op.emitOpError() << "region argument #" << argument.getArgNumber() << " must be "
                              << getElementTypeOrSelf(input.getType()) << ", got "
                              << argument.getType();
    }
  }
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getNumOperands() != op->getNumResults()) {
    return op.emitOpError() << "region yields " << yield.getNumOperands()
                            << " scalars, expected one for each result: " << op->getNumResults();
  }
  for (auto [number, value] : llvm::enumerate(yield.getValues())) {
    Type element = getElementTypeOrSelf(op->getResult(number));
    if (value.getType() != element) {
      return op.emitOpError() << "region yields " << value.getType() << " for result #" << number
                              << ", expected " << element;
    }
  }
  for (Operation &scalar : block.without_terminator()) { // map_c4
    if (!isa<ScalarOpInterface>(scalar)) {
      return scalar.emitOpError("is not a scalar op that a weft.map may contain");
    }
    if (failed(verifyNoNarrowArithmetic(scalar))) {
      return failure();
    }
  }
  return success();
}

LogicalResult MapOp::verifyRegions() { return verifyScalarCode(*this); }

LogicalResult MapSumOp::verifyRegions() {
  return verifyScalarCode(*this); // map_sum_c3, map_sum_c4
}

LogicalResult MapSumOp::verify() {
  int64_t rank = static_cast<int64_t>(getSpace().size());
  if (getNumResults() == 0 || getMaps().size() != getNumOperands()) { // map_sum_c1
    return emitOpError() << "expected a result, and one map for each operand: " << getNumOperands()
                         << ", got " << getMaps().size();
  }
  for (auto [number, map] : llvm::enumerate(getMaps().getAsValueRange<AffineMapAttr>())) {
    auto type = cast<RankedTensorType>(getInputs()[number].getType());
    SmallVector<int64_t> sizes;
    if (failed(verifyMap(*this, number, map, rank))) {
      return failure();
    }
    for (AffineExpr expr : map.getResults()) {
      sizes.push_back(getSpace()[cast<AffineDimExpr>(expr).getPosition()]);
    }
    if (type.getShape() != ArrayRef(sizes)) {
      return emitOpError() << "operand #" << number
                           << " does not have the sizes of its map: " << type;
    }
  }
  SmallVector<int64_t> sizes;
  int64_t last = -1;
  for (int64_t dim : getKept()) { // map_sum_c2
    if (dim <= last || dim >= rank - 1) {
      return emitOpError() << "keeps dimension " << dim << ", expected rising numbers below "
                           << rank - 1;
    }
    sizes.push_back(getSpace()[dim]);
    last = dim;
  }
  for (Type type : getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape() != ArrayRef(sizes) || isNarrow(tensor.getElementType())) {
      return emitOpError()
             << "must result in wide tensors with the sizes of the kept dimensions, got " << type;
    }
  }
  return success();
}

LogicalResult MapOp::verify() {
  if (getNumResults() == 0) {
    return failure(); // getFactorRule has said so.
  }
  for (unsigned number = 1; number < getNumResults(); ++number) { // map_c2
    if (getOutputType(number).getShape() != getOutputType().getShape()) {
      return emitOpError() << "result #" << number << " must have the shape of result #0";
    }
  }
  return success();
}

FactorRule MapOp::getFactorRule() {
  // The interface's verifier comes first, so a malformed op must not end here in a crash.
  if (getNumResults() == 0) { // map_c2
    emitOpError("must have a result");
    return {};
  }
  if (getMaps().size() != getNumOperands()) { // map_c1
    emitOpError() << "has " << getMaps().size()
                  << " maps, expected one for each operand: " << getNumOperands();
    return {};
  }
  int64_t rank = getOutputType().getRank();
  std::string all = letters(rank);
  std::vector<std::string> operands;
  for (unsigned number = 0; number < getNumOperands(); ++number) {
    AffineMap map = cast<AffineMapAttr>(getMaps()[number]).getValue();
    if (failed(verifyMap(*this, number, map, rank))) {
      return {};
    }
    std::string dims;
    for (AffineExpr expr : map.getResults()) {
      dims.push_back(all[cast<AffineDimExpr>(expr).getPosition()]);
    }
    operands.push_back(dims);
  }
  return makeFactorRule(*this, operands, std::vector<std::string>(getNumResults(), all));
}

bool MapOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  // The interface's verifier comes before those of the region and of its ops.
  bool isSound = llvm::all_of(getBody().front().without_terminator(), [](Operation &op) {
    return isa<ScalarOpInterface>(op) && succeeded(op.getName().verifyInvariants(&op));
  });
  return isSound &&
         llvm::all_of(analyzeLinearity(getBody().front(), operands),
                      [](Linearity linearity) { return linearity == Linearity::Additive; });
}

bool MapOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned result) {
  return findZeros(getBody().front(), zeros)[result];
}

OpCost MapOp::getCost() {
  double flops = 0;
  for (Operation &op : getBody().front().without_terminator()) {
    flops += cast<ScalarOpInterface>(op).getFlops();
  }
  return elementwiseCost(*this, flops);
}

namespace {
/// Drops what the gradient map does not use: dead scalar code, then unused operands.
MapOp pruneMap(OpBuilder &builder, MapOp map) {
  Block &block = map.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (&op != block.getTerminator() && op.use_empty()) {
      op.erase();
    }
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  llvm::BitVector unused(block.getNumArguments());
  for (auto [number, input] : llvm::enumerate(map.getInputs())) {
    if (block.getArgument(number).use_empty()) {
      unused.set(number);
    } else {
      inputs.push_back(input);
      maps.push_back(cast<AffineMapAttr>(map.getMaps()[number]).getValue());
    }
  }
  // Some operand must have all dimensions of the iteration space, so that its sharding is known: a
  // gradient that is the same everywhere keeps one operand for its shape.
  AffineMap whole = builder.getMultiDimIdentityMap(map.getOutputType().getRank());
  if (!llvm::is_contained(maps, whole)) {
    for (auto [number, attribute] : llvm::enumerate(map.getMaps())) {
      if (cast<AffineMapAttr>(attribute).getValue() == whole && unused.test(number)) {
        unused.reset(number);
        inputs.push_back(map.getInputs()[number]);
        maps.push_back(whole);
        break;
      }
    }
  }
  llvm::BitVector erased = unused;
  SmallVector<Value> ordered;
  SmallVector<AffineMap> orderedMaps;
  for (auto [number, input] : llvm::enumerate(map.getInputs())) {
    if (!erased.test(number)) {
      ordered.push_back(input);
      orderedMaps.push_back(cast<AffineMapAttr>(map.getMaps()[number]).getValue());
    }
  }
  block.eraseArguments(erased);
  map.getInputsMutable().assign(ordered);
  map.setMapsAttr(builder.getAffineMapArrayAttr(orderedMaps));
  return map;
}
} // namespace

LogicalResult MapOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  Block &block = getBody().front();
  RankedTensorType space = getOutputType();
  SmallVector<Value> inputs(getInputs());
  SmallVector<AffineMap> maps(getMaps().getAsValueRange<AffineMapAttr>());
  AffineMap whole = builder.getMultiDimIdentityMap(space.getRank());
  SmallVector<int64_t> gradientArgument(getNumResults(), -1);
  for (auto [number, gradient] : llvm::enumerate(resultGradients)) {
    if (gradient) {
      gradientArgument[number] = inputs.size();
      // Gradients of narrow values are narrow, except if the map only rounds the value: the
      // gradient of a parameter keeps its precision.
      Type element = getOutputType(number).getElementType();
      inputs.push_back(isCast(*this) ? gradient : createCast(builder, getLoc(), gradient, element));
      maps.push_back(whole);
    }
  }
  // Values that the region yields, one for each operand that has a gradient, with its number.
  SmallVector<unsigned> numbers;
  SmallVector<Type> types;
  SmallVector<int64_t> forwarded;
  auto map = MapOp::create(
      builder, getLoc(), TypeRange{}, inputs, maps,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        SmallVector<Value> seeds;
        for (int64_t argument : gradientArgument) {
          seeds.push_back(argument < 0 ? Value() : arguments[argument]);
        }
        SmallVector<Value> gradients =
            buildBlockGradient(inner, block, arguments.take_front(block.getNumArguments()), seeds);
        SmallVector<Value> yielded;
        for (auto [number, gradient] : llvm::enumerate(gradients)) {
          if (!gradient) {
            continue;
          }
          numbers.push_back(number);
          auto widened = gradient.getDefiningOp<arith::ExtFOp>();
          auto argument = dyn_cast<BlockArgument>(widened ? widened.getIn() : gradient);
          forwarded.push_back(argument ? static_cast<int64_t>(argument.getArgNumber()) : -1);
          if (!argument) {
            yielded.push_back(gradient);
            types.push_back(space.clone(gradient.getType()));
          }
        }
        return yielded;
      });
  // The types of the results are known only now: make the op again with them.
  MapOp typed;
  if (!types.empty()) {
    OperationState state(getLoc(), MapOp::getOperationName());
    state.addOperands(inputs);
    state.addTypes(types);
    state.getOrAddProperties<MapOp::Properties>().maps = builder.getAffineMapArrayAttr(maps);
    state.addRegion()->takeBody(map.getBody());
    typed = pruneMap(builder, cast<MapOp>(builder.create(state)));
  }
  map.erase();
  unsigned result = 0;
  for (auto [number, argument] : llvm::zip(numbers, forwarded)) {
    Value gradient = argument >= 0 ? inputs[argument] : typed.getResult(result++);
    SmallVector<unsigned> dims = getInputDims(number);
    if (static_cast<int64_t>(dims.size()) != space.getRank()) {
      std::string all = letters(space.getRank()), kept;
      for (unsigned dim : dims) {
        kept.push_back(all[dim]);
      }
      auto shape = cast<RankedTensorType>(getInputs()[number].getType());
      Type type = shape.clone(wideTypeOf(getElementTypeOrSelf(gradient)));
      gradient = ContractOp::create(builder, getLoc(), type, all + "->" + kept, gradient);
    }
    operandGradients[number] = gradient;
  }
  return success();
}
