//===- Reshape.cpp - dimensions merged and split ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements keep their row-major order. So a rank's shard of a merged dimension is its shard of the
// group's first dimension that is longer than 1, times the sizes of those after it.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

using namespace mlir;

namespace weft::meaning {

/// One application of a reshape. Each step returns what is wrong, if something is.
class Reshaping {
public:
  using Wrong = std::optional<std::string>;

  Reshaping(Evaluation &in, ReshapeOp op, const Value &input)
      : in(in), op(op), input(input), type(cast<RankedTensorType>(op.getType())),
        operand{input.term, {}} {
    operand.letters.resize(
        llvm::count_if(input.dims, [](const Dim &dim) { return dim.ofTerm >= 0; }));
    value.views = input.views;
  }

  Wrong run(llvm::StringRef label) {
    std::vector<Group> groups = groupsOf();
    Term term{op->getName().getIdentifier(),
              0,
              op.getGroups(),
              type.getElementType(),
              {},
              {},
              {},
              {},
              op->getLoc(),
              ""};
    for (const Group &group : groups) {
      addToTerm(group, term);
    }
    term.operands = {operand};
    value.term = in.termOf(op, label, std::move(term));
    for (const Group &group : groups) {
      Wrong wrong = group.before.size() == 1 && group.after.size() == 1 ? keep(group)
                    : group.after.size() == 1                           ? merge(group)
                                                                        : split(group);
      if (wrong) {
        return wrong;
      }
    }
    return std::nullopt;
  }

  Value take() { return std::move(value); }

private:
  /// Dimensions of the input and those of the result that they become.
  struct Group {
    SmallVector<int64_t> before, after;
    bool isInTerm;
  };

  std::vector<Group> groupsOf() {
    bool isMerge = type.getRank() < int64_t(input.dims.size());
    std::vector<Group> groups;
    for (auto [fewer, more] : llvm::enumerate(op.getGroupLists())) {
      SmallVector<int64_t> one = {int64_t(fewer)};
      Group group{isMerge ? more : one, isMerge ? one : more, false};
      group.isInTerm =
          llvm::any_of(group.before, [&](int64_t dim) { return input.dims[dim].ofTerm >= 0; });
      groups.push_back(std::move(group));
    }
    return groups;
  }

  /// True for a dimension of one element, which elements do not depend on.
  static bool isOne(const Dim &dim) { return dim.ofTerm < 0 && dim.length == 1; }

  void addToTerm(const Group &group, Term &term) {
    int64_t size = 1;
    for (int64_t dim : group.before) {
      const Dim &part = input.dims[dim];
      if (part.ofTerm >= 0) {
        operand.letters[part.ofTerm] = dim;
      }
      size *= isOne(part) ? 1 : part.size;
    }
    for (int64_t dim : group.after) {
      if (!group.isInTerm) {
        term.numbers.push_back(dim);
        continue;
      }
      term.letters.push_back(int64_t(input.dims.size()) + dim);
      term.sizes.push_back(group.after.size() == 1 ? size : type.getDimSize(unsigned(dim)));
    }
  }

  void addDim(Dim dim, bool isInTerm) {
    dim.ofTerm = isInTerm ? used++ : -1;
    value.dims.push_back(dim);
  }

  Wrong keep(const Group &group) {
    addDim(input.dims[group.before.front()], group.isInTerm);
    return std::nullopt;
  }

  Wrong merge(const Group &group) {
    Dim merged;
    merged.length = type.getDimSize(unsigned(group.after.front()));
    if (!group.isInTerm) {
      addDim(merged, false);
      return std::nullopt;
    }
    const auto *carrier = llvm::find_if(group.before, [&](int64_t dim) {
      return input.dims[dim].size != 1 && !isOne(input.dims[dim]);
    });
    if (carrier == group.before.end()) {
      carrier = llvm::find_if(group.before, [&](int64_t dim) { return !isOne(input.dims[dim]); });
    }
    int64_t inner = 1;
    for (int64_t dim : group.before) {
      const Dim &part = input.dims[dim];
      bool isCarrier = dim == *carrier;
      if (isOne(part)) {
        continue;
      }
      if (part.start == kUnknown || part.order ||
          (!isCarrier && (in.isPadded(part) || part.length != part.size))) {
        return "merges a dimension of which a rank has a part";
      }
      inner *= isCarrier ? 1 : part.size;
    }
    // The padding of the first dimension is at the end of the merged one.
    const Dim &first = input.dims[*carrier];
    merged.start = in.ranks.multiply(first.start, in.ranks.constant(inner));
    merged.size = first.size * inner;
    merged.end = first.end * inner;
    merged.beyond = first.beyond;
    if (merged.size != in.terms[value.term].sizes[size_t(used)]) {
      return "merges a dimension of which a rank has a part";
    }
    addDim(merged, true);
    return std::nullopt;
  }

  /// Where the whole has several elements of a dimension, a rank may have one. So the term says
  /// which dimension is cut.
  Wrong split(const Group &group) {
    const Dim &merged = input.dims[group.before.front()];
    auto sizeOf = [&](size_t number) { return in.terms[value.term].sizes[size_t(used) + number]; };
    size_t carrier = 0;
    int64_t inner = 1;
    if (group.isInTerm) {
      while (carrier + 1 < group.after.size() && sizeOf(carrier) == 1) {
        ++carrier;
      }
      for (size_t number = carrier + 1; number < group.after.size(); ++number) {
        inner *= sizeOf(number);
      }
    }
    std::optional<uint32_t> start =
        merged.start == kUnknown ? std::nullopt : in.ranks.divide(merged.start, inner);
    bool isPadded = in.isPadded(merged);
    if (group.isInTerm && (!start || merged.order || (isPadded && merged.end % inner != 0))) {
      return "splits a dimension of which a rank has a part";
    }
    int64_t first = used;
    for (auto [number, dim] : llvm::enumerate(group.after)) {
      Dim part;
      part.length = type.getDimSize(unsigned(dim));
      if (group.isInTerm) {
        part.size = part.end = in.terms[value.term].sizes[size_t(first) + number];
        part.start = number == carrier ? *start : in.ranks.constant(0);
        if (number == carrier && isPadded) {
          part.end = merged.end / inner;
          part.beyond = merged.beyond;
        } else if (number != carrier && part.length != part.size) {
          return "splits a dimension of which a rank has a part";
        }
      }
      addDim(part, group.isInTerm);
    }
    return std::nullopt;
  }

  Evaluation &in;
  ReshapeOp op;
  const Value &input;
  RankedTensorType type;
  TermOperand operand;
  Value value;
  /// The number of dimensions of the term that have been added.
  int64_t used = 0;
};

uint32_t Evaluation::reshape(ReshapeOp op, ArrayRef<uint32_t> operands, llvm::StringRef label) {
  Reshaping reshaping(*this, op, values[operands[0]]);
  if (Reshaping::Wrong wrong = reshaping.run(label)) {
    return fail(op, label, *wrong);
  }
  return keep(reshaping.take());
}

} // namespace weft::meaning
