//===- LocalConvolutions.cpp - convolutions as matmuls --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution of one group is a matmul of its kernel [output, channel and place of the window]
// and of the columns [sample, channel and place of the window, output place] of its image. The
// image of a window of one place that moves by one is its columns.
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::meaning {

/// The columns of an image, or the image that columns add up to.
ArrayId LocalOps::columns(bool isFold, Operation *op, ArrayId array, Shape image, Shape window) {
  auto all = [&](llvm::StringRef name, int64_t value) {
    return llvm::all_of(op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef(),
                        [&](int64_t own) { return own == value; });
  };
  if (productOf(window) == 1 && all("strides", 1) && all("low", 0) && all("high", 0)) {
    return array;
  }
  Words words;
  words << uint64_t(isFold ? 'f' : 'u') << arrays[array].print << image << window;
  for (llvm::StringRef name : {"strides", "low", "high", "dilations"}) {
    words << op->getAttr(name).getAsOpaquePointer();
  }
  int64_t samples = arrays[array].count; // That of columns does not matter: nobody cuts them.
  return arrays.other(words.print(), isFold ? productOf(image) : samples * productOf(window));
}

template <typename OpTy> ArrayId LocalOps::convolve(OpTy op, ArrayRef<ArrayId> operands) {
  constexpr bool isInput = std::is_same_v<OpTy, ConvolutionInputGradOp>;
  constexpr bool isKernel = std::is_same_v<OpTy, ConvolutionKernelGradOp>;
  Sizes image = shapeOf(isInput ? op->getResult(0) : op->getOperand(0));
  Sizes kernel = shapeOf(isKernel ? op->getResult(0) : op->getOperand(1));
  Sizes output = shapeOf(isInput    ? op->getOperand(0)
                         : isKernel ? op->getOperand(1)
                                    : op->getResult(0));
  ArrayRef<int64_t> window = ArrayRef(kernel).drop_front(2);
  int64_t places = productOf(ArrayRef(output).drop_front(2));
  int64_t rows = productOf(ArrayRef(kernel).drop_front(1));
  Sizes flatKernel = {kernel[0], rows}, flatOutput = {output[0], output[1], places},
        flatColumns = {output[0], rows, places};
  if constexpr (isInput) {
    ArrayId sums = equation("ok,nop->nkp", {operands[1], operands[0]}, {flatKernel, flatOutput});
    return columns(/*isFold=*/true, op, sums, image, window);
  }
  ArrayId seen = columns(/*isFold=*/false, op, operands[0], image, window);
  return isKernel ? equation("nop,nkp->ok", {operands[1], seen}, {flatOutput, flatColumns})
                  : equation("ok,nkp->nop", {operands[1], seen}, {flatKernel, flatColumns});
}

std::optional<ArrayId> LocalOps::convolution(Operation *op, ArrayRef<ArrayId> operands) {
  // The channels of an image are those of a kernel times the groups.
  auto isOneGroup = [](Value image, Value kernel) {
    return shapeOf(image)[1] == shapeOf(kernel)[1];
  };
  return TypeSwitch<Operation *, std::optional<ArrayId>>(op)
      .Case([&](ConvolutionOp own) {
        bool isOne = isOneGroup(own.getInput(), own.getKernel());
        return isOne ? std::optional(convolve(own, operands)) : std::nullopt;
      })
      .Case([&](ConvolutionInputGradOp own) {
        bool isOne = isOneGroup(own.getOutput(), own.getKernel());
        return isOne ? std::optional(convolve(own, operands)) : std::nullopt;
      })
      .Case([&](ConvolutionKernelGradOp own) {
        bool isOne = isOneGroup(own.getInput(), own.getOutput());
        return isOne ? std::optional(convolve(own, operands)) : std::nullopt;
      })
      .Case([&](UnfoldOp own) {
        return columns(/*isFold=*/false, op, operands[0], shapeOf(own.getInput()), own.getSizes());
      })
      .Case([&](FoldOp own) {
        return columns(/*isFold=*/true, op, operands[0], shapeOf(own.getOutput()), own.getSizes());
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace weft::meaning
