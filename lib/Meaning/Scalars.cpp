//===- Scalars.cpp - maps, op by op ------------------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each scalar op of a map is an op over the map's whole iteration space, so that it does not matter
// how ops are spread over maps. A scalar's dimensions are those of the space; its term has only
// those that it depends on.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft::meaning {

namespace {
/// The part of the iteration space that each rank has, as far as operands tell.
SmallVector<Dim> spaceOf(MapOp op, ArrayRef<const Value *> operands) {
  SmallVector<Dim> space(op.getOutputType().getRank());
  for (auto [number, operand] : llvm::enumerate(operands)) {
    for (auto [dim, at] : llvm::zip(operand->dims, op.getInputDims(unsigned(number)))) {
      if (space[at].start == kUnknown || space[at].size == kEndless) {
        space[at] = dim;
        space[at].ofTerm = -1;
        space[at].beyond.reset();
      }
    }
  }
  for (auto [dim, size] : llvm::zip(space, op.getOutputType().getShape())) {
    dim.length = ShapedType::isDynamic(size) ? dim.length : size;
  }
  return space;
}
} // namespace

Evaluation::Ids Evaluation::map(MapOp op, ArrayRef<uint32_t> operands, llvm::StringRef label) {
  SmallVector<const Value *> inputs;
  for (uint32_t operand : operands) {
    inputs.push_back(&values[operand]);
  }
  SmallVector<Dim> space = spaceOf(op, inputs);
  llvm::DenseMap<mlir::Value, uint32_t> known;
  Block &block = op.getBody().front();
  for (auto [number, argument] : llvm::enumerate(block.getArguments())) {
    bool isInOrder = llvm::equal(op.getInputDims(unsigned(number)),
                                 llvm::seq<unsigned>(0, unsigned(space.size())));
    if (inputs[number]->total && !isInOrder) {
      return failAll(op, label, "adds to a total over micro-batches in another order");
    }
    Value scalar = *inputs[number];
    scalar.dims.assign(space.begin(), space.end());
    for (auto [dim, at] : llvm::zip(inputs[number]->dims, op.getInputDims(unsigned(number)))) {
      bool isElsewhere = dim.start != kUnknown && space[at].start != dim.start;
      if ((dim.length >= 0 && dim.length != space[at].length) || isElsewhere) {
        return failAll(op, label,
                       "operand " + llvm::Twine(number) +
                           " has other elements of a dimension than another operand");
      }
      scalar.dims[at] = dim.start == kUnknown ? space[at] : dim;
    }
    known[argument] = keep(std::move(scalar));
  }
  for (Operation &scalar : block.without_terminator()) {
    Ids in;
    for (mlir::Value operand : scalar.getOperands()) {
      in.push_back(known.lookup(operand));
    }
    auto constant = dyn_cast<arith::ConstantOp>(scalar);
    uint32_t result = 0;
    if (constant) {
      Value value;
      value.term = terms.constant(cast<TypedAttr>(constant.getValue()));
      value.dims.assign(space.begin(), space.end());
      result = keep(std::move(value));
    } else {
      result = this->scalar(&scalar, in, unsigned(space.size()), label);
    }
    if (values[result].fault) {
      return Ids(op->getNumResults(), result);
    }
    known[scalar.getResult(0)] = result;
  }
  Ids results;
  for (mlir::Value yielded : block.getTerminator()->getOperands()) {
    results.push_back(known.lookup(yielded));
  }
  return results;
}

uint32_t Evaluation::scalar(Operation *op, ArrayRef<uint32_t> operands, unsigned dims,
                            llvm::StringRef label) {
  if (llvm::any_of(operands, [&](uint32_t operand) { return values[operand].total != 0; })) {
    std::optional<uint32_t> added = addToTotal(op, operands);
    return added ? *added : fail(op, label, "does not only add to a total over micro-batches");
  }
  if (std::optional<uint32_t> simple = simplify(op, operands, label)) {
    return *simple;
  }
  return apply(op, scalarMeaning(op, dims), operands, label).front();
}

/// Simplifications that hold for the numbers that training computes: zero and the least number are
/// neutral, and what was widened is rounded to what it was.
std::optional<uint32_t> Evaluation::simplify(Operation *op, ArrayRef<uint32_t> operands,
                                             llvm::StringRef label) {
  if (std::optional<uint32_t> shifted = simplifyShifted(op, operands, label)) {
    return shifted;
  }
  auto at = [&](unsigned operand) -> const Value & { return values[operands[operand]]; };
  if (isa<arith::AddFOp>(op)) {
    if (isNeutral(at(0), 0) || isNeutral(at(1), 0)) {
      return operands[isNeutral(at(0), 0) ? 1 : 0];
    }
    return addParts(op, at(0), at(1), label);
  }
  if (isa<arith::SubFOp>(op) && isNeutral(at(1), 0)) {
    return operands[0];
  }
  if (isa<arith::MaximumFOp>(op)) {
    if (isNeutral(at(0), kLeast) || isNeutral(at(1), kLeast)) {
      return operands[isNeutral(at(0), kLeast) ? 1 : 0];
    }
    if (at(0).term == at(1).term && !at(0).isPending() && operands[0] == operands[1]) {
      return operands[0];
    }
    return addParts(op, at(0), at(1), label);
  }
  if (isa<arith::SelectOp>(op)) {
    return maskPadding(at(0), at(1), at(2));
  }
  if (isa<arith::TruncFOp>(op)) {
    return round(op, at(0));
  }
  return isa<arith::ExtFOp>(op) ? widen(op, at(0)) : std::nullopt;
}

/// Two parts of one reduction are a greater part of it.
std::optional<uint32_t> Evaluation::addParts(Operation *op, const Value &left, const Value &right,
                                             llvm::StringRef label) {
  bool isOne = left.term == right.term && left.isPending() && right.isPending() &&
               left.dims.size() == right.dims.size() && left.views != right.views &&
               left.views.front().joining == right.views.front().joining;
  if (!isOne) {
    return std::nullopt;
  }
  for (auto [dim, other] : llvm::zip_equal(left.dims, right.dims)) {
    if (dim.ofTerm != other.ofTerm ||
        (dim.ofTerm >= 0 && (dim.start != other.start || dim.order != other.order))) {
      return fail(op, label, "adds parts of a sum that are of other elements");
    }
  }
  bool isSum = left.views.front().joining == Joining::Sum;
  if (isSum != isa<arith::AddFOp>(op)) {
    return std::nullopt;
  }
  auto united = uniteViews(left.views, right.views, isSum);
  if (!united) {
    return fail(op, label, "adds parts of a sum that have terms in common");
  }
  Value sum = left;
  sum.views = *united;
  for (auto [dim, other] : llvm::zip_equal(sum.dims, right.dims)) {
    dim.beyond = dim.beyond == other.beyond ? dim.beyond : std::nullopt;
    if (dim.beyond && *dim.beyond != 0.0) {
      dim.beyond.reset();
    }
  }
  return keep(std::move(sum));
}

/// `select(i < end, x, c)` only sets the padding of x, if x ends there.
std::optional<uint32_t> Evaluation::maskPadding(const Value &condition, const Value &value,
                                                const Value &otherwise) {
  const Term &compare = terms[condition.term];
  std::optional<double> beyond = terms.asConstant(otherwise.term);
  bool isLess = terms.is(condition.term, arith::CmpIOp::getOperationName()) &&
                compare.operands.size() == 2 &&
                terms.is(compare.operands[0].term, IotaOp::getOperationName()) &&
                cast<DictionaryAttr>(compare.attribute).getAs<IntegerAttr>("predicate").getInt() ==
                    int64_t(arith::CmpIPredicate::slt);
  std::optional<double> end =
      isLess ? terms.asConstant(compare.operands[1].term) : std::optional<double>();
  if (!end || !beyond) {
    return std::nullopt;
  }
  Value masked = value;
  for (auto [dim, along] : llvm::zip_equal(masked.dims, condition.dims)) {
    if (along.ofTerm < 0) {
      continue;
    }
    if (dim.ofTerm < 0 && dim.end == kEndless) { // A constant, which has no end of its own.
      dim = along;
      dim.ofTerm = -1;
      dim.size = dim.end = int64_t(*end);
    }
    bool isOfWhole =
        dim.start == along.start && dim.order == along.order && double(dim.end) == *end;
    if (!isOfWhole) {
      return std::nullopt;
    }
    dim.beyond = *beyond;
    return keep(std::move(masked));
  }
  return std::nullopt;
}

/// Rounds what was widened, which gives what it was, or a part of a sum, which rounds once more
/// than the whole program does.
std::optional<uint32_t> Evaluation::round(Operation *op, const Value &value) {
  const Term &term = terms[value.term];
  Type element = getElementTypeOrSelf(op->getResult(0));
  Value rounded = value;
  if (terms.isZero(value.term)) {
    rounded.term = terms.constant(FloatAttr::get(element, 0));
    return keep(std::move(rounded));
  }
  if (term.function.getValue() == arith::ExtFOp::getOperationName()) {
    TermId inner = term.operands.front().term;
    if (terms[inner].element == element) {
      rounded.term = inner;
      return keep(std::move(rounded));
    }
  }
  if (term.function.getValue() == AttentionOp::getOperationName()) {
    Term narrow = term; // Attention rounds its output once, at whatever place.
    narrow.element = element;
    rounded.term = terms.numberOf(std::move(narrow));
    return keep(std::move(rounded));
  }
  if (!value.isPending()) {
    return std::nullopt;
  }
  rounded = like(op, value, "rounded", {});
  return keep(std::move(rounded));
}

std::optional<uint32_t> Evaluation::widen(Operation *op, const Value &value) {
  if (terms.isZero(value.term)) {
    return round(op, value);
  }
  if (!terms.is(value.term, "rounded")) {
    return std::nullopt;
  }
  Value wide = value;
  wide.term = terms[value.term].operands.front().term;
  return keep(std::move(wide));
}

} // namespace weft::meaning
