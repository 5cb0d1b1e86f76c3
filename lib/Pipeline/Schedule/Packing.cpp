//===- Packing.cpp - shares of collectives as rows ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Packing.h"

#include <numeric>

using namespace mlir;
using namespace weft;

/// Returns `value`, viewed as `shape`, with its first two dimensions exchanged.
static Value exchange(OpBuilder &builder, Location loc, Value value, std::array<int64_t, 3> shape) {
  value = reshapeTo(builder, loc, value, shape);
  std::swap(shape[0], shape[1]);
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return ContractOp::create(builder, loc, type, "abc->bac", value);
}

int64_t Shares::together() const {
  ArrayRef<int64_t> inner = type.getShape().drop_front(count > 1 ? dim : 0);
  return std::accumulate(inner.begin(), inner.end(), int64_t(1), std::multiplies<>()) / count;
}

Value Shares::pack(OpBuilder &builder, Location loc, Value value) const {
  if (areScattered()) {
    value = exchange(builder, loc, value, {elements() / together(), count, together()});
  }
  return reshapeTo(builder, loc, value, {count, elements()});
}

Value Shares::unpack(OpBuilder &builder, Location loc, Value packed) const {
  if (areScattered()) {
    packed = exchange(builder, loc, packed, {count, elements() / together(), together()});
  }
  return reshapeTo(builder, loc, packed, type.getShape());
}

Value weft::reshapeTo(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto change = [&](ArrayRef<int64_t> to, int64_t longerRank) {
    auto type = cast<RankedTensorType>(value.getType()).clone(to);
    Attribute group = builder.getI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, longerRank)));
    value = ReshapeOp::create(builder, loc, type, value, builder.getArrayAttr(group));
  };
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape) {
    return value;
  }
  if (type.getRank() > 1) {
    change(type.getNumElements(), type.getRank());
  }
  if (shape.size() > 1) {
    change(shape, shape.size());
  }
  return value;
}
