//===- Windows.h - windows that slide over the places of an image -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_WINDOWS_H
#define WEFT_DIALECT_WEFT_IR_WINDOWS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A window in one dimension: output p sees, at k < size, input place
/// p * stride + k * dilation - low.
struct Window {
  int64_t size, stride, low, high, dilation;

  /// Places from the first to the last that an output sees.
  int64_t getExtent() const { return (size - 1) * dilation + 1; }
  /// Number of outputs over `input` places; 0 if the window does not fit.
  int64_t countOutputs(int64_t input) const {
    int64_t room = input + low + high - getExtent();
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// The windows of an op of the class Weft_WindowOp, of these sizes. REQUIRES: a verified op, or
/// attributes as long as `sizes`.
template <typename OpTy>
llvm::SmallVector<Window> windowsOf(OpTy op, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Window> windows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    windows.push_back(
        {sizes[i], op.getStrides()[i], op.getLow()[i], op.getHigh()[i], op.getDilations()[i]});
  }
  return windows;
}

/// Whether the attributes have an entry for each of `sizes` and lie in their ranges; else an error.
mlir::LogicalResult verifyWindowAttributes(mlir::Operation *op, llvm::ArrayRef<int64_t> sizes,
                                           llvm::ArrayRef<int64_t> strides,
                                           llvm::ArrayRef<int64_t> low,
                                           llvm::ArrayRef<int64_t> high,
                                           llvm::ArrayRef<int64_t> dilations);

/// Whether the output has as many places as the windows have over the input, at least one in each
/// dimension; else an error.
mlir::LogicalResult verifyPlaces(mlir::Operation *op, llvm::ArrayRef<Window> windows,
                                 mlir::RankedTensorType input, mlir::RankedTensorType output);

/// Whether `type` is that of images: [sample, channel, place…] with one to three dimensions of
/// places, of known size but for the samples (where `isKernel`, all known).
bool isImage(mlir::RankedTensorType type, bool isKernel = false);

/// Whether all operands and results that are tensors have one element type; else an error.
mlir::LogicalResult verifyOneElementType(mlir::Operation *op);
/// Whether all operands have one element type, and the result that or its wide type; else an error.
mlir::LogicalResult verifyOperandsOrWide(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_WINDOWS_H
