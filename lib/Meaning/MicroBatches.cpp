//===- MicroBatches.cpp - totals over micro-batches ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of a micro-batch take running totals and add to each. They are evaluated once, for
// all micro-batches at once, with totals of which nothing is known; then what each rank adds in all
// micro-batches is joined.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft::meaning {

bool Evaluation::isNeutral(const Value &value, double neutral) const {
  return value.term != kUnknown && terms.asConstant(value.term) == neutral &&
         llvm::none_of(value.dims, [](const Dim &dim) { return dim.beyond.has_value(); });
}

uint32_t Evaluation::repeat(const Evaluation &other, const Value &value) {
  Value repeated = value;
  repeated.fault = value.fault ? uint32_t(faults.size()) + 1 : 0;
  if (value.fault) {
    faults.push_back(other.faultOf(value));
  }
  auto repeat = [&](uint32_t &number) {
    std::vector<int64_t> all;
    while (int64_t(all.size()) < ranks.rankCount()) {
      llvm::append_range(all, other.ranks.values(number));
    }
    number = ranks.of(all);
  };
  if (value.number != kUnknown) {
    repeat(repeated.number);
  }
  for (Dim &dim : repeated.dims) {
    dim.start == kUnknown ? void() : repeat(dim.start);
  }
  for (View &view : repeated.views) {
    repeat(view.regions);
  }
  return keep(std::move(repeated));
}

uint32_t Evaluation::startTotal(unsigned number, RankedTensorType type) {
  Value value;
  value.total = number + 1;
  for (int64_t size : type.getShape()) {
    Dim dim;
    dim.length = size;
    value.dims.push_back(dim);
  }
  return keep(std::move(value));
}

/// A rank may add to a part of its total, and get the other parts of ranks that have the same one.
bool Evaluation::takesTotal(Operation *op, const Value &total) {
  bool isSlice = isa<SliceOp>(op) && total.term == kUnknown;
  bool isGather = isa<AllGatherOp>(op) && total.term != kUnknown && !total.totalStarts.empty();
  return isa<MapOp>(op) || isSlice || isGather;
}

/// The parts of the group's ranks must follow one another. That they are parts of one total follows
/// from what each micro-batch adds: it is the same on all ranks of the group after the gather, and
/// all begin with the same neutral number.
bool Evaluation::gatherTotal(Value &value, const Groups &groups, int64_t dim) {
  uint32_t &start = value.totalStarts[size_t(dim)];
  bool isInOrder = ranks.risesIn(start, groups, value.dims[size_t(dim)].length);
  for (auto [number, other] : llvm::enumerate(value.totalStarts)) {
    isInOrder &= int64_t(number) == dim || ranks.isEqualIn(other, groups);
  }
  start = ranks.fromPlaces(start, groups, 0, [](int64_t) { return 0; });
  return isInOrder;
}

bool Evaluation::isWholeTotal(const Value &value) {
  return llvm::all_of(value.totalStarts,
                      [&](uint32_t start) { return ranks.asConstant(start) == 0; });
}

/// A narrow total is widened before each addition, and the sum is rounded.
std::optional<uint32_t> Evaluation::addToTotal(Operation *op, ArrayRef<uint32_t> operands) {
  bool isBefore = values[operands[0]].total && values[operands[0]].term == kUnknown;
  if (isa<arith::ExtFOp>(op) && isBefore) {
    return operands[0];
  }
  if (isa<arith::TruncFOp>(op) && !isBefore) {
    return round(op, values[operands[0]]);
  }
  bool isMax = isa<arith::MaximumFOp>(op);
  if (!isMax && !isa<arith::AddFOp>(op)) {
    return std::nullopt;
  }
  const Value &left = values[operands[0]], &right = values[operands[1]];
  const Value &total = left.total ? left : right, &other = left.total ? right : left;
  if (total.term != kUnknown || other.total) {
    return std::nullopt;
  }
  Value added = other;
  added.total = total.total;
  added.byMax = isMax;
  added.totalStarts = total.totalStarts;
  return keep(std::move(added));
}

std::optional<uint32_t> Evaluation::total(Evaluation &other, uint32_t start, const Value &added) {
  const int64_t count = other.ranks.rankCount() / ranks.rankCount();
  if (!isNeutral(values[start], added.byMax ? kLeast : 0)) {
    return std::nullopt;
  }
  auto ofMicroBatch = [&](uint32_t number, int64_t part) {
    return other.ranks.values(number).slice(size_t(part * ranks.rankCount()),
                                            size_t(ranks.rankCount()));
  };
  auto isSameInAll = [&](uint32_t number) {
    for (int64_t part = 1; part < count; ++part) {
      if (ofMicroBatch(number, part) != ofMicroBatch(number, 0)) {
        return false;
      }
    }
    return true;
  };
  Value sum = added;
  sum.total = 0;
  sum.byMax = false;
  sum.totalStarts.clear();
  for (Dim &dim : sum.dims) {
    if (dim.start == kUnknown) {
      continue;
    }
    if (!isSameInAll(dim.start)) {
      return std::nullopt;
    }
    dim.start = ranks.of(ofMicroBatch(dim.start, 0));
    dim.beyond = dim.beyond == 0.0 ? dim.beyond : std::nullopt;
  }
  if (sum.views.empty()) { // The greatest of equal values is each of them.
    return added.byMax ? std::optional(keep(std::move(sum))) : std::nullopt;
  }
  for (View &view : sum.views) {
    if ((view.joining == Joining::Max) != added.byMax ||
        (view.joining != Joining::Max && view.joining != Joining::Sum)) {
      return std::nullopt;
    }
    std::vector<int64_t> joined(size_t(ranks.rankCount()));
    for (int64_t rank = 0; rank < ranks.rankCount(); ++rank) {
      SmallVector<uint32_t> parts;
      for (int64_t part = 0; part < count; ++part) {
        parts.push_back(uint32_t(ofMicroBatch(view.regions, part)[size_t(rank)]));
      }
      std::optional<uint32_t> region = regions.join(parts, !added.byMax);
      if (!region) {
        return std::nullopt;
      }
      joined[size_t(rank)] = *region;
    }
    view.regions = ranks.of(joined);
  }
  sum.views = withoutComplete(sum.views);
  return keep(std::move(sum));
}

} // namespace weft::meaning
