//===- Windows.h - windows that slide over an image --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_WINDOWS_H
#define WEFT_DIALECT_WEFT_IR_WINDOWS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A window in one dimension. At k < size, output p sees input place p * stride + k * dilation -
/// low.
struct Window {
  int64_t size, stride, low, high, dilation;

  /// Number of places from the first to the last that an output sees.
  int64_t getExtent() const { return (size - 1) * dilation + 1; }
  /// Number of outputs over `input` places; 0 if the window does not fit.
  int64_t countOutputs(int64_t input) const {
    int64_t room = input + low + high - getExtent();
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// Returns the windows of an op of the class Weft_WindowOp, of these sizes. REQUIRES: a verified
/// op, or attributes as long as `sizes`.
template <typename OpTy>
llvm::SmallVector<Window> windowsOf(OpTy op, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Window> windows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    windows.push_back(
        {sizes[i], op.getStrides()[i], op.getLow()[i], op.getHigh()[i], op.getDilations()[i]});
  }
  return windows;
}

/// Checks that the attributes have an entry for each of `sizes` and lie in their ranges; emits an
/// error if not.
mlir::LogicalResult verifyWindowAttributes(mlir::Operation *op, llvm::ArrayRef<int64_t> sizes,
                                           llvm::ArrayRef<int64_t> strides,
                                           llvm::ArrayRef<int64_t> low,
                                           llvm::ArrayRef<int64_t> high,
                                           llvm::ArrayRef<int64_t> dilations);

/// Checks that the output has one place for each position of the windows over the input, at least
/// one in each dimension; emits an error if not.
mlir::LogicalResult verifyPlaces(mlir::Operation *op, llvm::ArrayRef<Window> windows,
                                 mlir::RankedTensorType input, mlir::RankedTensorType output);

/// Returns true if `type` is a type of images: [sample, channel, place…] with one to three
/// dimensions of places. Only the number of samples may be unknown, and with `isKernel` no size.
bool isImage(mlir::RankedTensorType type, bool isKernel = false);

/// Checks that all operands and results that are tensors have one element type; emits an error if
/// not.
mlir::LogicalResult verifyOneElementType(mlir::Operation *op);
/// Checks that all operands have one element type, and the result that type or its wide type; emits
/// an error if not.
mlir::LogicalResult verifyOperandsOrWide(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_WINDOWS_H
