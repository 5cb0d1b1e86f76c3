//===- ShapeOps.cpp - ops on the shapes of tensors ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Windows.h"

using namespace mlir;
using namespace weft;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns the type of the gradient of `value`: its shape, with the element type of the incoming
/// gradient.
static RankedTensorType typeOfGradient(Value value, Value gradient) {
  return typeOf(value).clone(typeOf(gradient).getElementType());
}

/// Returns the letters of `dims` for which `isWhole` is false.
static std::string notWhole(const std::string &dims, llvm::function_ref<bool(int64_t)> isWhole) {
  std::string others;
  for (auto [dim, letter] : llvm::enumerate(dims)) {
    if (!isWhole(dim)) {
      others.push_back(letter);
    }
  }
  return others;
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

SmallVector<SmallVector<int64_t>> ReshapeOp::getGroupLists() {
  SmallVector<SmallVector<int64_t>> lists;
  for (ArrayAttr group : getGroups().getAsRange<ArrayAttr>()) {
    lists.push_back(llvm::map_to_vector(group.getAsRange<IntegerAttr>(),
                                        [](IntegerAttr dim) { return dim.getInt(); }));
  }
  return lists;
}

namespace {
/// The two sides of a reshape.
struct Sides {
  explicit Sides(ReshapeOp op)
      : isMerge(typeOf(op.getInput()).getRank() > typeOf(op.getOutput()).getRank()),
        more(typeOf(isMerge ? op.getInput() : op.getOutput())),
        fewer(typeOf(isMerge ? op.getOutput() : op.getInput())) {}

  bool isMerge;
  RankedTensorType more, fewer;
};

/// reshape_c1.
LogicalResult verifyGroups(ReshapeOp op, const Sides &sides) {
  SmallVector<SmallVector<int64_t>> groups = op.getGroupLists();
  int64_t next = 0;
  bool inOrder = sides.more.getRank() > sides.fewer.getRank() &&
                 static_cast<int64_t>(groups.size()) == sides.fewer.getRank();
  for (ArrayRef<int64_t> group : groups) {
    inOrder &= !group.empty();
    for (int64_t dim : group) {
      inOrder &= dim == next++;
    }
  }
  if (!inOrder || next != sides.more.getRank()) {
    return op.emitOpError() << "expected " << sides.fewer.getRank() << " groups of the "
                            << sides.more.getRank() << " dimensions of " << sides.more
                            << " in order, got " << op.getGroups();
  }
  return success();
}
} // namespace

/// A merged dimension is cut as the first of its group that is longer than one. If no group has two
/// such dimensions, the reshape adds or removes dimensions of one element, and all others keep
/// their lengths.
FactorRule ReshapeOp::getFactorRule() {
  Sides sides(*this);
  if (failed(verifyGroups(*this, sides))) {
    return {};
  }
  std::string more = letters(sides.more.getRank()), fewer, whole;
  bool keepsLengths = true;
  for (ArrayRef<int64_t> group : getGroupLists()) {
    keepsLengths &=
        llvm::count_if(group, [&](int64_t dim) { return sides.more.getDimSize(dim) != 1; }) <= 1;
    const int64_t *first =
        llvm::find_if(group, [&](int64_t dim) { return sides.more.getDimSize(dim) != 1; });
    int64_t carrier = first == group.end() ? group.front() : *first;
    fewer.push_back(more[carrier]);
    for (int64_t dim : group) {
      if (dim != carrier) {
        whole.push_back(more[dim]);
      }
    }
  }
  return makeFactorRuleOfLengths(*this, {sides.isMerge ? more : fewer},
                                 {sides.isMerge ? fewer : more},
                                 keepsLengths ? StringRef() : StringRef(fewer), whole);
}

LogicalResult ReshapeOp::verify() {
  Sides sides(*this);
  for (auto [dim, group] : llvm::enumerate(getGroupLists())) { // reshape_c2
    int64_t size = sides.fewer.getDimSize(dim), product = 1;
    bool isKnown = true;
    for (int64_t member : group) {
      int64_t length = sides.more.getDimSize(member);
      isKnown &= !ShapedType::isDynamic(length);
      product *= length;
    }
    bool isUnknown = group.size() == 1 && ShapedType::isDynamic(size) && !isKnown;
    if (!isUnknown && (!isKnown || product != size)) {
      return emitOpError() << "dimension " << dim << " of " << sides.fewer
                           << " is not as long as its group in " << sides.more << " together";
    }
  }
  return verifyOneElementType(*this); // reshape_c3
}

bool ReshapeOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost ReshapeOp::getCost() { return {}; }

LogicalResult ReshapeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients[0] =
      ReshapeOp::create(builder, getLoc(), typeOfGradient(getInput(), resultGradients[0]),
                        resultGradients[0], getGroups());
  return success();
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// Checks that the sizes of `parts` along `dim` add up to that of `whole`; the names are for
/// errors.
static LogicalResult verifyLengths(Operation *op, ValueRange parts, StringRef part, Value whole,
                                   StringRef wholeName, int64_t dim) {
  int64_t total = 0;
  for (Value value : parts) {
    int64_t size = typeOf(value).getDimSize(dim);
    if (ShapedType::isDynamic(size)) {
      return op->emitOpError() << "dimension " << dim << " of " << part << " has an unknown size";
    }
    total += size;
  }
  if (typeOf(whole).getDimSize(dim) != total) {
    return op->emitOpError() << "expected " << total << " as the " << wholeName << "'s dimension "
                             << dim << ", got " << typeOf(whole).getDimSize(dim);
  }
  return success();
}

LogicalResult ConcatOp::verify() {
  return failure(
      failed(verifyLengths(*this, getInputs(), "an operand", getOutput(), "output", getDim())) ||
      failed(verifyOneElementType(*this))); // concat_c2, concat_c3
}

FactorRule ConcatOp::getFactorRule() {
  int64_t rank = typeOf(getOutput()).getRank(), dim = getDim();
  if (getInputs().empty() || dim < 0 || dim >= rank) { // concat_c1
    emitOpError() << "expected an operand and a dimension of " << typeOf(getOutput()) << ", got "
                  << getInputs().size() << " and " << dim;
    return {};
  }
  std::string dims = letters(rank), joined(1, dims[dim]);
  return makeFactorRuleOfLengths(*this, std::vector<std::string>(getInputs().size(), dims), {dims},
                                 joined, joined);
}

bool ConcatOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands.size() == getInputs().size();
}

OpCost ConcatOp::getCost() { return elementwiseCost(*this, 0); }

LogicalResult ConcatOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                      SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> offsets(typeOf(getOutput()).getRank(), 0), strides(offsets.size(), 1);
  for (auto [number, input] : llvm::enumerate(getInputs())) {
    operandGradients[number] =
        ExtractOp::create(builder, getLoc(), typeOfGradient(input, resultGradients[0]),
                          resultGradients[0], offsets, strides);
    offsets[getDim()] += typeOf(input).getDimSize(getDim());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Split
//===----------------------------------------------------------------------===//

LogicalResult SplitOp::verify() {
  if (failed(verifyLengths(*this, getOutputs(), "a result", getInput(), "input", // split_c2
                           getDim()))) {
    return failure();
  }
  Type element = getElementTypeOrSelf(getInput());
  return failure(llvm::any_of(getOutputs(), [&](Value output) { // split_c3
    return failed(verifyElementType(*this, "result", output, element));
  }));
}

FactorRule SplitOp::getFactorRule() {
  int64_t rank = typeOf(getInput()).getRank(), dim = getDim();
  if (getOutputs().empty() || dim < 0 || dim >= rank) { // split_c1
    emitOpError() << "expected a result and a dimension of " << typeOf(getInput()) << ", got "
                  << getOutputs().size() << " and " << dim;
    return {};
  }
  std::string dims = letters(rank), parted(1, dims[dim]);
  return makeFactorRuleOfLengths(*this, {dims}, std::vector<std::string>(getOutputs().size(), dims),
                                 parted, parted);
}

bool SplitOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost SplitOp::getCost() { return elementwiseCost(*this, 0); }

LogicalResult SplitOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                     SmallVectorImpl<Value> &operandGradients) {
  SmallVector<Value> parts;
  const Value &known = *llvm::find_if(resultGradients, [](Value value) { return bool(value); });
  Type element = getElementTypeOrSelf(known);
  for (auto [output, gradient] : llvm::zip_equal(getOutputs(), resultGradients)) {
    parts.push_back(createCast(builder, getLoc(),
                               gradient ? gradient : createZeroLike(builder, getLoc(), output),
                               element));
  }
  operandGradients[0] =
      ConcatOp::create(builder, getLoc(), typeOfGradient(getInput(), known), parts, getDim());
  return success();
}

//===----------------------------------------------------------------------===//
// Extract
//===----------------------------------------------------------------------===//

bool ExtractOp::isWhole(int64_t dim) {
  return getOffsets()[dim] == 0 && getStrides()[dim] == 1 &&
         typeOf(getInput()).getDimSize(dim) == typeOf(getOutput()).getDimSize(dim);
}

FactorRule ExtractOp::getFactorRule() {
  size_t rank = typeOf(getInput()).getRank();
  if (getOffsets().size() != rank || getStrides().size() != rank ||
      static_cast<size_t>(typeOf(getOutput()).getRank()) != rank) { // extract_c1
    emitOpError() << "expected offsets, strides and an output of " << rank << " dimensions, got "
                  << getOffsets().size() << ", " << getStrides().size() << " and "
                  << typeOf(getOutput()).getRank();
    return {};
  }
  std::string dims = letters(rank);
  std::string others = notWhole(dims, [&](int64_t dim) { return isWhole(dim); });
  return makeFactorRuleOfLengths(*this, {dims}, {dims}, others, others);
}

LogicalResult ExtractOp::verify() {
  for (int64_t dim = 0, rank = typeOf(getInput()).getRank(); dim < rank; ++dim) {
    int64_t offset = getOffsets()[dim], stride = getStrides()[dim];
    if (offset < 0 || stride < 1) { // extract_c1
      return emitOpError() << "expected an offset of at least 0 and a stride of at least 1, got "
                           << offset << " and " << stride;
    }
    int64_t from = typeOf(getInput()).getDimSize(dim), taken = typeOf(getOutput()).getDimSize(dim);
    if (isWhole(dim)) {
      continue;
    }
    // Divided, as the product might not fit.
    if (ShapedType::isDynamic(from) || ShapedType::isDynamic(taken) || taken < 1 ||
        offset >= from || (from - 1 - offset) / stride < taken - 1) { // extract_c2
      return emitOpError() << "takes elements outside of the input: dimension " << dim << " of "
                           << typeOf(getInput()) << " from " << offset << " by " << stride
                           << " into " << typeOf(getOutput());
    }
  }
  return verifyOneElementType(*this); // extract_c3
}

bool ExtractOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

/// It leaves out the padding of a dimension that is not extracted as a whole.
bool ExtractOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  return !getFactorRule().factors[factor].hasOneLength || isAdditiveInSome(*this, zeros);
}

OpCost ExtractOp::getCost() {
  auto output = typeOf(getOutput());
  return {BatchPolynomial{},
          elementCount(output.getShape(), 2 * output.getElementTypeBitWidth() / 8.0)};
}

LogicalResult ExtractOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> high, interior;
  for (int64_t dim = 0, rank = typeOf(getInput()).getRank(); dim < rank; ++dim) {
    int64_t stride = getStrides()[dim];
    interior.push_back(stride - 1);
    high.push_back(isWhole(dim) ? 0
                                : typeOf(getInput()).getDimSize(dim) - 1 - getOffsets()[dim] -
                                      (typeOf(getOutput()).getDimSize(dim) - 1) * stride);
  }
  operandGradients[0] =
      PadOp::create(builder, getLoc(), typeOfGradient(getInput(), resultGradients[0]),
                    resultGradients[0], APFloat(0.0), getOffsets(), high, interior);
  return success();
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

bool PadOp::isWhole(int64_t dim) {
  return getLow()[dim] == 0 && getHigh()[dim] == 0 && getInterior()[dim] == 0;
}

FactorRule PadOp::getFactorRule() {
  size_t rank = typeOf(getInput()).getRank();
  if (getLow().size() != rank || getHigh().size() != rank || getInterior().size() != rank ||
      static_cast<size_t>(typeOf(getOutput()).getRank()) != rank) { // pad_c1
    emitOpError() << "expected low, high, interior and an output of " << rank << " dimensions, got "
                  << getLow().size() << ", " << getHigh().size() << ", " << getInterior().size()
                  << " and " << typeOf(getOutput()).getRank();
    return {};
  }
  std::string dims = letters(rank);
  std::string others = notWhole(dims, [&](int64_t dim) { return isWhole(dim); });
  return makeFactorRuleOfLengths(*this, {dims}, {dims}, others, others);
}

LogicalResult PadOp::verify() {
  constexpr int64_t kLargest = int64_t(1) << 30; // No product or sum of these overflows.
  for (int64_t dim = 0, rank = typeOf(getInput()).getRank(); dim < rank; ++dim) {
    int64_t low = getLow()[dim], high = getHigh()[dim], interior = getInterior()[dim];
    for (int64_t padding : {low, high, interior}) {
      if (padding < 0 || padding > kLargest) { // pad_c1
        return emitOpError() << "expected a padding of 0 to " << kLargest << ", got " << padding;
      }
    }
    if (isWhole(dim)) {
      continue;
    }
    int64_t from = typeOf(getInput()).getDimSize(dim), to = typeOf(getOutput()).getDimSize(dim);
    bool isKnown = !ShapedType::isDynamic(from) && from >= 1 && from <= kLargest;
    if (!isKnown || to != low + from + (from - 1) * interior + high) { // pad_c2
      return emitOpError() << "dimension " << dim << " of " << typeOf(getOutput())
                           << " is not that of " << typeOf(getInput()) << " with padding " << low
                           << ", " << high << " and " << interior;
    }
  }
  return verifyOneElementType(*this); // pad_c3
}

bool PadOp::isAdditiveIn(ArrayRef<unsigned>) { return getValue().isZero(); }

/// What it adds itself may be zero; padding of another dimension stays as it is.
bool PadOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  bool isOwn = !getFactorRule().factors[factor].hasOneLength;
  return isOwn ? getValue().isZero() : isAdditiveInSome(*this, zeros);
}

OpCost PadOp::getCost() { return elementwiseCost(*this, 0); }

LogicalResult PadOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> strides;
  for (int64_t interior : getInterior()) {
    strides.push_back(interior + 1);
  }
  operandGradients[0] =
      ExtractOp::create(builder, getLoc(), typeOfGradient(getInput(), resultGradients[0]),
                        resultGradients[0], getLow(), strides);
  return success();
}

//===----------------------------------------------------------------------===//
// Select
//===----------------------------------------------------------------------===//

LogicalResult SelectOp::verify() {
  return verifyOneElementType(*this); // select_c2
}

FactorRule SelectOp::getFactorRule() {
  RankedTensorType input = typeOf(getInput()), output = typeOf(getOutput());
  if (input.getRank() < 1 || input.getShape().drop_front() != output.getShape()) { // select_c1
    emitOpError() << "expected " << output << " to be one index of the first dimension of "
                  << input;
    return {};
  }
  std::string dims = letters(input.getRank());
  return makeFactorRule(*this, {dims, ""}, {dims.substr(1)}, /*mustReplicate=*/dims.substr(0, 1));
}

bool SelectOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost SelectOp::getCost() {
  RankedTensorType output = typeOf(getOutput());
  return {BatchPolynomial{},
          elementCount(output.getShape(), 2 * output.getElementTypeBitWidth() / 8.0)};
}
