//===- Windows.cpp - windows that slide over an image -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Windows.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

using namespace mlir;
using namespace weft;

/// Sizes of windows and images stay far below 2^63 when they are multiplied and added.
static constexpr int64_t kLargest = int64_t(1) << 30;

LogicalResult weft::verifyWindowAttributes(Operation *op, ArrayRef<int64_t> sizes,
                                           ArrayRef<int64_t> strides, ArrayRef<int64_t> low,
                                           ArrayRef<int64_t> high, ArrayRef<int64_t> dilations) {
  auto check = [&](StringRef name, ArrayRef<int64_t> values, int64_t least) -> LogicalResult {
    if (values.size() != sizes.size()) {
      return op->emitOpError() << name << ": expected " << sizes.size()
                               << " entries, one for each dimension of places, got "
                               << values.size();
    }
    for (int64_t value : values) {
      if (value < least || value > kLargest) {
        return op->emitOpError() << name << ": expected " << least << " to " << kLargest << ", got "
                                 << value;
      }
    }
    return success();
  };
  return failure(failed(check("sizes", sizes, 1)) || failed(check("strides", strides, 1)) ||
                 failed(check("low", low, 0)) || failed(check("high", high, 0)) ||
                 failed(check("dilations", dilations, 1)));
}

LogicalResult weft::verifyPlaces(Operation *op, ArrayRef<Window> windows, RankedTensorType input,
                                 RankedTensorType output) {
  for (auto [number, window] : llvm::enumerate(windows)) {
    int64_t places = window.countOutputs(input.getDimSize(number + 2));
    if (places < 1) {
      return op->emitOpError() << "a window of " << window.getExtent() << " places does not fit "
                               << "into " << input.getDimSize(number + 2) << " with padding "
                               << window.low << " and " << window.high;
    }
    if (output.getDimSize(number + 2) != places) {
      return op->emitOpError() << "expected " << places << " output places in dimension "
                               << number + 2 << ", got " << output.getDimSize(number + 2);
    }
  }
  return success();
}

bool weft::isImage(RankedTensorType type, bool isKernel) {
  ArrayRef<int64_t> shape = type.getShape();
  return shape.size() >= 3 && shape.size() <= 5 &&
         llvm::all_of(shape.drop_front(isKernel ? 0 : 1),
                      [](int64_t size) { return size > 0 && size <= kLargest; });
}

LogicalResult weft::verifyOperandsOrWide(Operation *op) {
  Type given = getElementTypeOrSelf(op->getOperandTypes().front());
  for (Type type : op->getOperandTypes()) {
    if (getElementTypeOrSelf(type) != given) {
      return op->emitOpError() << "operands must have one element type, got " << given << " and "
                               << getElementTypeOrSelf(type);
    }
  }
  Type element = getElementTypeOrSelf(op->getResultTypes().front());
  if (element != given && element != wideTypeOf(given)) {
    return op->emitOpError() << "must have a result of the operands' element type " << given
                             << " or its wide type, got " << element;
  }
  return success();
}

LogicalResult weft::verifyOneElementType(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResultTypes().front());
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (isa<RankedTensorType>(type) && getElementTypeOrSelf(type) != element) {
      return op->emitOpError() << "operand #" << operand.getOperandNumber() << " of "
                               << getElementTypeOrSelf(type)
                               << " must have the result's element type " << element;
    }
  }
  return success();
}
