//===- Collectives.cpp - values that ranks exchange ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::meaning {

/// What differs between the values of a group's ranks, but for where they are along `except`.
std::optional<std::string> Evaluation::notAlike(const Groups &groups, const Value &value,
                                                int64_t except) {
  for (auto [number, dim] : llvm::enumerate(value.dims)) {
    if (int64_t(number) != except && dim.start != kUnknown && dim.ofTerm >= 0 &&
        !ranks.isEqualIn(dim.start, groups)) {
      return "joins ranks that have other elements of dimension " + std::to_string(number);
    }
  }
  return std::nullopt;
}

static bool haveOneView(RankNumbers &ranks, const Groups &groups, const Value &value) {
  return llvm::all_of(value.views,
                      [&](const View &view) { return ranks.isEqualIn(view.regions, groups); });
}

/// The value after the ranks of each group have reduced theirs.
uint32_t Evaluation::reduced(Operation *op, const Groups &groups, ReductionKind kind, Value value,
                             llvm::StringRef label) {
  if (std::optional<std::string> wrong = notAlike(groups, value, -1)) {
    return fail(op, label, *wrong);
  }
  if (terms.isZero(value.term)) {
    return keep(std::move(value));
  }
  bool isSum = kind == ReductionKind::Sum;
  const Term &term = terms[value.term];
  if (!isSum && value.views.size() == 1 && value.views.front().joining == Joining::LogSumExp) {
    return stabilizer(op, value, groups.number);
  }
  if (!value.isPending()) {
    return isSum ? fail(op, label, "sums a value that every rank has as a whole")
                 : keep(std::move(value));
  }
  Joining expected = isSum ? Joining::Sum : Joining::Max;
  for (const View &view : value.views) {
    if (view.joining != expected) {
      return fail(op, label,
                  isSum ? "sums what is no part of a sum"
                        : "takes the maximum of what is no part of a maximum");
    }
  }
  if (isOfGroup(term) && term.numbers.front() != groups.number) {
    return fail(op, label, "sums exponentials that were shifted by other numbers");
  }
  auto views = reduceViews(value.views, groups, isSum);
  if (!views) {
    return fail(op, label, "sums terms that several ranks of a group have");
  }
  value.views = *views;
  for (Dim &dim : value.dims) {
    dim.beyond = dim.beyond == 0.0 ? dim.beyond : std::nullopt;
  }
  return keep(std::move(value));
}

uint32_t Evaluation::allGather(AllGatherOp op, const Groups &groups, Value value,
                               llvm::StringRef label) {
  auto number = int64_t(op.getDim());
  Dim &dim = value.dims[number];
  if (std::optional<std::string> wrong = notAlike(groups, value, number)) {
    return fail(op, label, *wrong);
  }
  if (!haveOneView(ranks, groups, value)) {
    return fail(op, label, "joins parts of other sums");
  }
  if (dim.start != kUnknown) {
    if (!ranks.risesIn(dim.start, groups, dim.length)) {
      if (dim.ofTerm >= 0 || isPadded(dim)) {
        return fail(op, label,
                    "joins shards that do not follow one another along dimension " +
                        llvm::Twine(number));
      }
    }
    dim.start = ranks.fromPlaces(dim.start, groups, 0, [](int64_t) { return 0; });
  }
  if (value.total && !gatherTotal(value, groups, number)) {
    return fail(op, label, "joins parts of a total over micro-batches that are not all of it");
  }
  dim.length *= groups.size();
  return keep(std::move(value));
}

uint32_t Evaluation::reduceScatter(ReduceScatterOp op, const Groups &groups, Value value,
                                   llvm::StringRef label) {
  uint32_t sum = reduced(op, groups, op.getReduction(), std::move(value), label);
  if (values[sum].fault) {
    return sum;
  }
  Value shard = values[sum];
  Dim &dim = shard.dims[op.getDim()];
  dim.length /= groups.size();
  if (dim.start != kUnknown) {
    dim.start = ranks.add(dim.start, ranks.places(groups), dim.length);
  }
  return keep(std::move(shard));
}

uint32_t Evaluation::allToAll(AllToAllOp op, const Groups &groups, Value value,
                              llvm::StringRef label) {
  auto concat = int64_t(op.getConcat());
  if (std::optional<std::string> wrong = notAlike(groups, value, concat)) {
    return fail(op, label, *wrong);
  }
  Dim &joined = value.dims[concat], &cut = value.dims[op.getSplit()];
  bool isInOrder = joined.start == kUnknown || joined.ofTerm < 0 ||
                   ranks.risesIn(joined.start, groups, joined.length);
  if (!isInOrder || !haveOneView(ranks, groups, value)) {
    return fail(op, label,
                "joins shards that do not follow one another along dimension " +
                    llvm::Twine(concat));
  }
  if (joined.start != kUnknown) {
    joined.start = ranks.fromPlaces(joined.start, groups, 0, [](int64_t) { return 0; });
  }
  joined.length *= groups.size();
  cut.length /= groups.size();
  if (cut.start != kUnknown) {
    cut.start = ranks.add(cut.start, ranks.places(groups), cut.length);
  }
  return keep(std::move(value));
}

/// Everything moves.
uint32_t Evaluation::permute(PermuteOp op, const Groups &groups, Value value) {
  ArrayRef<int32_t> sources = op.getSources();
  std::vector<int64_t> row(sources.begin(), sources.end());
  row.resize(size_t(ranks.rankCount()), -1); // A row of the table of functions, as its key.
  uint32_t key = ranks.of(row) + 1;
  auto move = [&](uint32_t &number) {
    number = ranks.fromPlaces(number, groups, key, [&](int64_t place) { return sources[place]; });
  };
  for (Dim &dim : value.dims) {
    dim.start == kUnknown ? void() : move(dim.start);
  }
  for (View &view : value.views) {
    move(view.regions);
  }
  return keep(std::move(value));
}

uint32_t Evaluation::slice(SliceOp op, const Groups &groups, Value value, uint32_t index,
                           llvm::StringRef label) {
  Dim &dim = value.dims[op.getDim()];
  if (!llvm::all_of(ranks.values(index),
                    [&](int64_t place) { return place >= 0 && place < groups.size(); })) {
    return fail(op, label, "takes a shard that there is not");
  }
  dim.length /= groups.size();
  if (value.total) {
    value.totalStarts.resize(value.dims.size(), ranks.constant(0));
    uint32_t &start = value.totalStarts[op.getDim()];
    start = ranks.add(start, index, dim.length);
  }
  if (dim.start != kUnknown) {
    dim.start = ranks.add(dim.start, index, dim.length);
  }
  return keep(std::move(value));
}

/// A sum of one term, which the rank of index 0 has.
uint32_t Evaluation::partial(Value value, uint32_t index) {
  if (terms.isZero(value.term)) {
    return keep(std::move(value));
  }
  if (value.views.empty()) { // One summand, which is the value.
    std::vector<int64_t> numbers(size_t(ranks.rankCount()), regions.box({{0, 1}}));
    value.views.push_back({Joining::Sum, {1}, {ZigzagAttr()}, ranks.of(numbers)});
  }
  for (View &view : value.views) {
    std::vector<int64_t> numbers(ranks.values(view.regions));
    for (auto [number, place] : llvm::zip_equal(numbers, ranks.values(index))) {
      number = place == 0 ? number : regions.empty(int64_t(view.extents.size()));
    }
    view.regions = ranks.of(numbers);
  }
  value.views = withoutComplete(value.views);
  return keep(std::move(value));
}

uint32_t Evaluation::collective(Operation *op, ArrayRef<uint32_t> operands, llvm::StringRef label) {
  const Value &value = values[operands[0]];
  ArrayAttr axes = op->getAttrOfType<ArrayAttr>("axes");
  const Groups *groups = ranks.groups(axes);
  if (!groups) {
    return fail(op, label, "is over axes that the mesh does not have");
  }
  bool isTerm = value.term != kUnknown; // A total before a micro-batch has none.
  if (isTerm && isOfGroup(terms[value.term]) && !isa<AllReduceOp>(op)) {
    return fail(op, label, "moves numbers that only the ranks of one group agree on");
  }
  auto index = [&] { return values[operands[1]].number; };
  return llvm::TypeSwitch<Operation *, uint32_t>(op)
      .Case(
          [&](AllReduceOp own) { return reduced(own, *groups, own.getReduction(), value, label); })
      .Case([&](AllGatherOp own) { return allGather(own, *groups, value, label); })
      .Case([&](ReduceScatterOp own) { return reduceScatter(own, *groups, value, label); })
      .Case([&](AllToAllOp own) { return allToAll(own, *groups, value, label); })
      .Case([&](PermuteOp own) { return permute(own, *groups, value); })
      .Case([&](SliceOp own) { return slice(own, *groups, value, index(), label); })
      .Case([&](PartialOp) { return partial(value, index()); });
}

} // namespace weft::meaning
