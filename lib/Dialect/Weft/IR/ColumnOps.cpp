//===- ColumnOps.cpp - images as columns, for matmuls -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Windows.h"

using namespace mlir;
using namespace weft;

template <typename OpTy>
static LogicalResult verifyColumns(OpTy op, Value imageValue, Value columnsValue) {
  auto image = cast<RankedTensorType>(imageValue.getType());
  auto columns = cast<RankedTensorType>(columnsValue.getType());
  ArrayRef<int64_t> sizes = op.getSizes();
  if (!isImage(image) || static_cast<int64_t>(sizes.size()) != image.getRank() - 2) { // unfold_c1
    return op.emitOpError() << "expected an image of [samples, channels, places…] and a size for "
                               "each dimension of places, got "
                            << image << " and " << sizes.size() << " sizes";
  }
  if (failed(verifyWindowAttributes(op, sizes, op.getStrides(), op.getLow(), op.getHigh(),
                                    op.getDilations()))) {
    return failure();
  }
  int64_t rows = image.getDimSize(1), places = 1;
  for (auto [number, window] : llvm::enumerate(windowsOf(op, sizes))) {
    rows *= window.size;
    places *= window.countOutputs(image.getDimSize(number + 2));
  }
  if (columns.getShape() != ArrayRef<int64_t>{image.getDimSize(0), rows, places}) { // unfold_c2
    return op.emitOpError() << "expected columns of [" << image.getDimSize(0) << ", " << rows
                            << ", " << places << "], got " << columns;
  }
  return verifyOneElementType(op); // unfold_c3
}

LogicalResult UnfoldOp::verify() { return verifyColumns(*this, getInput(), getOutput()); }

LogicalResult FoldOp::verify() { // fold_c1
  return verifyColumns(*this, getOutput(), getInput());
}
