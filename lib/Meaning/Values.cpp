//===- Values.cpp - what each rank's tensor is of the whole one ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Values.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace weft::meaning {

uint32_t Values::numberOf(Value value) {
  SmallVector<int64_t, 64> row = {value.term,
                                  value.number,
                                  value.fault,
                                  value.isStacked,
                                  value.total,
                                  value.byMax,
                                  int64_t(value.dims.size())};
  for (const Dim &dim : value.dims) {
    row.append({dim.ofTerm, dim.start, dim.length, dim.end, dim.size,
                int64_t(reinterpret_cast<intptr_t>(dim.order.getAsOpaquePointer())),
                dim.beyond.has_value(), llvm::bit_cast<int64_t>(dim.beyond.value_or(0))});
  }
  row.push_back(int64_t(value.totalStarts.size()));
  llvm::append_range(row, value.totalStarts);
  for (const View &view : value.views) {
    row.append({int64_t(view.joining), view.regions, int64_t(view.extents.size())});
    llvm::append_range(row, view.extents);
    for (ZigzagAttr order : view.orders) {
      row.push_back(int64_t(reinterpret_cast<intptr_t>(order.getAsOpaquePointer())));
    }
  }
  uint32_t number = rows.numberOf(row);
  if (number == values.size()) {
    values.push_back(std::move(value));
  }
  return number;
}

} // namespace weft::meaning
