//===- Values.h - what each rank's tensor is of the whole one -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_VALUES_H
#define WEFT_LIB_MEANING_VALUES_H

#include "RankNumbers.h"
#include "Regions.h"
#include "Terms.h"

namespace weft::meaning {

constexpr uint32_t kUnknown = ~0U;
constexpr int64_t kEndless = int64_t(1) << 60;

/// One dimension of the tensors that the ranks have. The rank's element i is the whole's element
/// `start + i`.
struct Dim {
  /// The dimension of the term, or -1 if elements do not depend on it.
  int64_t ofTerm = -1;
  /// The offset of each rank, of RankNumbers. Unknown only if `ofTerm` is -1.
  uint32_t start = kUnknown;
  /// -1 if it is that of a batch whose size is not known.
  int64_t length = -1;
  /// Elements from `end` on are padding.
  int64_t end = kEndless;
  /// Size of the whole.
  int64_t size = kEndless;
  /// Positions are counted in this order; null: by position.
  ZigzagAttr order;
  /// The value of each element of the padding, if it is known. NaN is never known.
  std::optional<double> beyond;

  /// The number of places, and the end of those that are stored: in an order, padding lies among
  /// the elements.
  int64_t places() const { return order ? order.getSize() : size; }
  int64_t lastPlace() const { return order ? order.getSize() : end; }
};

/// How the ranks' values make the whole one.
enum class Joining {
  Sum,
  Max,
  LogSumExp,
  /// Means with weights whose sums have the logarithms of the other result: attention's output.
  Mean,
};

/// A reduction of which each rank has a part: those terms whose indices are in a region.
struct View {
  Joining joining;
  /// Of each index its size, and the order in which it counts positions (null: by position).
  std::vector<int64_t> extents;
  std::vector<ZigzagAttr> orders;
  /// Each rank's region, of RankNumbers.
  uint32_t regions;

  /// True if the parts are of one reduction.
  bool isLike(const View &other) const {
    return joining == other.joining && extents == other.extents && orders == other.orders;
  }
  bool operator==(const View &other) const { return isLike(other) && regions == other.regions; }
};

/// What the ranks have: tensors (`term` and `dims`), numbers of type index (`number`), or a value
/// that has no meaning (`fault`).
struct Value {
  TermId term = kUnknown;
  llvm::SmallVector<Dim, 5> dims;
  /// Empty if each rank's elements are those of the whole. With several, the value is a sum of
  /// that many values, each of which is pending by itself.
  llvm::SmallVector<View, 1> views;
  /// Dimension 0 numbers micro-batches: the term's first dimension is both of the first two.
  bool isStacked = false;
  /// 1 + the number of a running total over micro-batches; 0 for none. The value is the total
  /// before a micro-batch, if it has no term, or what the micro-batch adds to it, `byMax` or by a
  /// sum.
  uint32_t total = 0;
  bool byMax = false;
  /// Of a total that was sliced: of each dimension, the first element that each rank has of what it
  /// had of the total. Empty: it has all of it.
  llvm::SmallVector<uint32_t, 5> totalStarts;
  uint32_t number = kUnknown;
  /// 1 + the number of a fault; 0 for none.
  uint32_t fault = 0;

  bool isPending() const { return !views.empty(); }
};

/// All values of one program; equal ones have one number. For one thread.
class Values {
public:
  uint32_t numberOf(Value value);
  const Value &operator[](uint32_t number) const { return values[number]; }

private:
  Rows rows;
  std::deque<Value> values;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_VALUES_H
