//===- Normalized.cpp - sums of exponentials, shifted by their greatest --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Let l be a logarithm of a sum of exponentials, of which each rank has a part, and m any number
// that the ranks agree on, such as the greatest part. Then
//
//   exp(l - m)       "exp-shifted": a part of a sum, times exp(-m)
//   log(exp-shifted) "log-shifted": a part of l, less m
//   m + log-shifted  a part of l
//   a / b            "share": of the sum b that the part a is
//
// and if o is a mean with weights that sum to a part of l, then o times its share of a greater part
// is "weighed": what the part contributes to the mean over the greater part.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft::meaning {

namespace {
constexpr llvm::StringLiteral kStabilizer = "stabilizer", kShifted = "shifted",
                              kExpShifted = "exp-shifted", kLogShifted = "log-shifted",
                              kShare = "share", kWeighed = "weighed";

} // namespace

bool isOfGroup(const Term &term) {
  llvm::StringRef function = term.function.getValue();
  return function == kStabilizer || function == kShifted || function == kExpShifted ||
         function == kLogShifted;
}

namespace {
bool isLogSumExp(const Value &value) {
  return value.views.size() == 1 && value.views.front().joining == Joining::LogSumExp;
}

Value withJoining(Value value, Joining joining) {
  for (View &view : value.views) {
    view.joining = joining;
  }
  return value;
}
} // namespace

/// A value with the dimensions of `value`, whose term is a function of that of `value`.
Value Evaluation::like(Operation *op, const Value &value, llvm::StringRef function,
                       ArrayRef<int64_t> numbers) {
  const Term &inner = terms[value.term];
  Term term{StringAttr::get(op->getContext(), function),
            0,
            Attribute(),
            getElementTypeOrSelf(op->getResult(0)),
            SmallVector<int64_t, 2>(numbers),
            {},
            {},
            inner.sizes,
            op->getLoc(),
            inner.label};
  TermOperand operand{value.term, {}};
  for (int64_t dim = 0; dim < int64_t(inner.letters.size()); ++dim) {
    operand.letters.push_back(dim);
    term.letters.push_back(dim);
  }
  term.operands.push_back(std::move(operand));
  Value result = value;
  result.term = terms.numberOf(std::move(term));
  return result;
}

/// A value like `value`, whose term is another function of the same operands.
Value Evaluation::withFunction(const Value &value, llvm::StringRef function) {
  Term term = terms[value.term];
  term.function = StringAttr::get(term.function.getContext(), function);
  if (function == kShare) {
    term.numbers.clear(); // The number that was subtracted cancels.
  }
  Value other = value;
  other.term = terms.numberOf(std::move(term));
  return other;
}

/// A number that only the ranks of `group` agree on; -1 for a rank alone. It is unlike all others.
uint32_t Evaluation::stabilizer(Operation *op, const Value &value, int64_t group) {
  Value made = like(op, value, kStabilizer, {group, ++stabilizers});
  made.views.clear();
  return keep(std::move(made));
}

std::optional<uint32_t> Evaluation::simplifyShifted(Operation *op, ArrayRef<uint32_t> operands,
                                                    llvm::StringRef label) {
  auto at = [&](unsigned operand) -> const Value & { return values[operands[operand]]; };
  auto isA = [&](unsigned operand, llvm::StringRef function) {
    return terms.is(at(operand).term, function);
  };
  auto innerOf = [&](unsigned operand) { return terms[at(operand).term].operands.front().term; };
  auto numbersOf = [&](unsigned operand) { return terms[at(operand).term].numbers; };
  if (isa<arith::MaximumFOp>(op) && at(0).term == at(1).term && isLogSumExp(at(0)) &&
      isLogSumExp(at(1))) {
    return stabilizer(op, at(0), -1);
  }
  if (isa<arith::SubFOp>(op) && isA(1, kStabilizer) && innerOf(1) == at(0).term) {
    return keep(like(op, at(0), kShifted, numbersOf(1)));
  }
  if (isa<math::ExpOp>(op) && isA(0, kShifted)) {
    return keep(withJoining(withFunction(at(0), kExpShifted), Joining::Sum));
  }
  if (isa<math::LogOp>(op) && isA(0, kExpShifted)) {
    return keep(withJoining(withFunction(at(0), kLogShifted), Joining::LogSumExp));
  }
  if (isa<arith::AddFOp>(op) && isA(0, kStabilizer) && isA(1, kLogShifted) &&
      innerOf(0) == innerOf(1) && numbersOf(0) == numbersOf(1)) {
    Value whole = at(1);
    whole.term = innerOf(1);
    return keep(std::move(whole));
  }
  if (isa<arith::DivFOp>(op) && isA(0, kExpShifted) && at(0).term == at(1).term) {
    return shareOf(at(0), at(1));
  }
  if (isa<arith::MulFOp>(op) && isA(1, kShare)) {
    return weigh(at(0), at(1));
  }
  if (isa<arith::AddFOp>(op) && isA(0, kWeighed) && at(0).term == at(1).term) {
    return joinMeans(op, at(0), at(1), label);
  }
  return std::nullopt;
}

/// The views of a share are that of the part, then that of the sum that it is a share of, if that
/// is not all.
std::optional<uint32_t> Evaluation::shareOf(const Value &part, const Value &all) {
  if (part.views.size() != 1 || all.views.size() > 1) {
    return std::nullopt;
  }
  Value share = withFunction(part, kShare);
  llvm::append_range(share.views, all.views);
  return keep(std::move(share));
}

/// The output of attention, times the share of its keys. Both are results of one attention.
std::optional<uint32_t> Evaluation::weigh(const Value &mean, const Value &share) {
  const Term &output = terms[mean.term];
  const Term &lse = terms[terms[share.term].operands.front().term];
  bool isOne = mean.views.size() == 1 && mean.views.front().joining == Joining::Mean &&
               output.function == lse.function && output.attribute == lse.attribute &&
               output.numbers == lse.numbers && output.result == 0 && lse.result == 1 &&
               output.operands.size() == lse.operands.size() &&
               mean.views.front().regions == share.views.front().regions &&
               mean.views.front().extents == share.views.front().extents;
  for (auto [one, other] : llvm::zip(output.operands, lse.operands)) {
    isOne = isOne && one.term == other.term && one.letters == other.letters;
  }
  // The share's [batch, position, head, query head] are the output's first four dimensions.
  int64_t expected[] = {0, 3, 1, 2};
  for (size_t dim = 0; dim < 4 && isOne; ++dim) {
    isOne = mean.dims[dim].ofTerm == int64_t(dim) && share.dims[dim].ofTerm == expected[dim] &&
            mean.dims[dim].start == share.dims[dim].start;
  }
  if (!isOne) {
    return std::nullopt;
  }
  Value weighed = mean;
  Term term = output;
  term.operands = {{mean.term, {}}};
  for (int64_t dim = 0; dim < int64_t(output.letters.size()); ++dim) {
    term.operands.front().letters.push_back(dim);
  }
  term.letters = term.operands.front().letters;
  term.function = StringAttr::get(term.function.getContext(), kWeighed);
  weighed.term = terms.numberOf(std::move(term));
  weighed.views = share.views;
  return keep(std::move(weighed));
}

/// The parts must be all of what they are shares of.
std::optional<uint32_t> Evaluation::joinMeans(Operation *op, const Value &left, const Value &right,
                                              llvm::StringRef label) {
  auto allOf = [](const Value &value) { return ArrayRef(value.views).drop_front(); };
  Value mean = left;
  mean.term = terms[left.term].operands.front().term;
  std::optional<uint32_t> joined =
      joinRegions({left.views.front().regions, right.views.front().regions}, true);
  bool isWhole = allOf(left).empty();
  View view = left.views.front();
  view.joining = Joining::Mean;
  if (joined) {
    view.regions = *joined;
  }
  bool isAll = joined && allOf(left) == allOf(right) &&
               (isWhole ? isComplete(view) : *joined == allOf(left).front().regions);
  if (!isAll) {
    return fail(op, label, "adds parts of a mean that are not all of it");
  }
  mean.views = withoutComplete({view});
  return keep(std::move(mean));
}

} // namespace weft::meaning
