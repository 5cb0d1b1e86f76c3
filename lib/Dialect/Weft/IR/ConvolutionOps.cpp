//===- ConvolutionOps.cpp - convolutions and their derivatives ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Windows.h"

using namespace mlir;
using namespace weft;

namespace {
/// The three tensors of a convolution; its derivatives take and return the same three in other
/// roles.
struct Convolution {
  RankedTensorType input, kernel, output;

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  explicit Convolution(ConvolutionOp op)
      : input(typeOf(op.getInput())), kernel(typeOf(op.getKernel())),
        output(typeOf(op.getOutput())) {}
  explicit Convolution(ConvolutionInputGradOp op)
      : input(typeOf(op.getOutput())), kernel(typeOf(op.getKernel())),
        output(typeOf(op.getGradient())) {}
  explicit Convolution(ConvolutionKernelGradOp op)
      : input(typeOf(op.getInput())), kernel(typeOf(op.getOutput())),
        output(typeOf(op.getGradient())) {}

  bool hasGroups() const { return input.getDimSize(1) != kernel.getDimSize(1); }
  int64_t countGroups() const { return input.getDimSize(1) / kernel.getDimSize(1); }

  /// One letter for each dimension: samples n, channels c in and o out, by groups g.
  std::string inputDims() const { return (hasGroups() ? "ng" : "nc") + places(input, 'p'); }
  std::string kernelDims() const { return (hasGroups() ? "gi" : "oc") + places(kernel, 's'); }
  std::string outputDims() const { return (hasGroups() ? "ng" : "no") + places(output, 'v'); }

private:
  static std::string places(RankedTensorType type, char first) {
    return letters(type.getRank() - 2, first);
  }
};

/// Checks convolution_c1 and convolution_c4, which the factors depend on.
LogicalResult verifyShapes(Operation *op, const Convolution &shape) {
  if (!isImage(shape.input) || !isImage(shape.kernel, /*isKernel=*/true) ||
      !isImage(shape.output) || shape.kernel.getRank() != shape.input.getRank() ||
      shape.output.getRank() != shape.input.getRank()) {
    return op->emitOpError() << "expected images of [samples, channels, places…] and a kernel with "
                                "as many dimensions, three to five, got input "
                             << shape.input << ", kernel " << shape.kernel << " and output "
                             << shape.output;
  }
  int64_t channels = shape.input.getDimSize(1), inGroup = shape.kernel.getDimSize(1);
  if (channels % inGroup != 0) {
    return op->emitOpError() << "the input's " << channels
                             << " channels are no multiple of the kernel's " << inGroup;
  }
  if (shape.kernel.getDimSize(0) % shape.countGroups() != 0) {
    return op->emitOpError() << "the kernel's " << shape.kernel.getDimSize(0)
                             << " output channels are no multiple of the " << shape.countGroups()
                             << " groups";
  }
  if (shape.kernel.getDimSize(0) != shape.output.getDimSize(1)) {
    return op->emitOpError() << "the kernel gives " << shape.kernel.getDimSize(0)
                             << " channels, but the output has " << shape.output.getDimSize(1);
  }
  return success();
}

/// Returns the rule of an op whose operands and results have these dimensions.
FactorRule makeRule(Operation *op, const Convolution &shape, ArrayRef<std::string> operands,
                    const std::string &result) {
  // Input places are p, q, r, those of the kernel s, t, u, of the output v, w, x.
  FactorRule rule = makeFactorRuleOfLengths(op, operands, {result}, "g", "ipqrstuvwx");
  for (Factor &factor : rule.factors) {
    if (!factor.hasOneLength) {
      factor.size = shape.countGroups();
    }
  }
  return rule;
}

/// Checks the other constraints.
template <typename OpTy> LogicalResult verifyConvolution(OpTy op) {
  Convolution shape(op);
  ArrayRef<int64_t> sizes = shape.kernel.getShape().drop_front(2);
  if (failed(verifyWindowAttributes(op, sizes, op.getStrides(), op.getLow(), op.getHigh(),
                                    op.getDilations())) || // convolution_c2
      failed(verifyPlaces(op, windowsOf(op, sizes), shape.input, shape.output))) {
    return failure(); // convolution_c3
  }
  if (op.getTf32() && !getElementTypeOrSelf(op.getOperand(0)).isF32()) { // convolution_c6
    return op.emitOpError("rounds to tf32, expected operands of f32, got ")
           << getElementTypeOrSelf(op.getOperand(0));
  }
  return verifyOperandsOrWide(op); // convolution_c5
}

/// A multiply-add for each element of the output and of the kernel that it sees.
template <typename OpTy> OpCost convolutionCost(OpTy op) {
  Convolution shape(op);
  double perOutput = 2.0 * static_cast<double>(shape.kernel.getNumElements()) /
                     static_cast<double>(shape.kernel.getDimSize(0));
  OpCost cost = elementwiseCost(op, 0);
  cost.flops = cost.modelFlops = elementCount(shape.output.getShape(), perOutput);
  return cost;
}
} // namespace

LogicalResult ConvolutionOp::verify() { return verifyConvolution(*this); }

FactorRule ConvolutionOp::getFactorRule() {
  Convolution shape(*this);
  if (failed(verifyShapes(*this, shape))) {
    return {};
  }
  return makeRule(*this, shape, {shape.inputDims(), shape.kernelDims()}, shape.outputDims());
}

bool ConvolutionOp::isAdditiveIn(ArrayRef<unsigned> operands) { return operands.size() == 1; }

OpCost ConvolutionOp::getCost() { return convolutionCost(*this); }

LogicalResult ConvolutionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                           SmallVectorImpl<Value> &operandGradients) {
  // The multiplication has the operands' element type; sums are wide.
  Type element = getElementTypeOrSelf(getInput());
  Value gradient = createCast(builder, getLoc(), resultGradients[0], element);
  auto wideOf = [&](Value value) {
    return cast<RankedTensorType>(value.getType()).clone(wideTypeOf(element));
  };
  operandGradients[0] =
      ConvolutionInputGradOp::create(builder, getLoc(), wideOf(getInput()), gradient, getKernel(),
                                     getStrides(), getLow(), getHigh(), getDilations(), getTf32());
  operandGradients[1] =
      ConvolutionKernelGradOp::create(builder, getLoc(), wideOf(getKernel()), getInput(), gradient,
                                      getStrides(), getLow(), getHigh(), getDilations(), getTf32());
  return success();
}

LogicalResult ConvolutionInputGradOp::verify() { return verifyConvolution(*this); }

FactorRule ConvolutionInputGradOp::getFactorRule() {
  Convolution shape(*this);
  if (failed(verifyShapes(*this, shape))) {
    return {};
  }
  return makeRule(*this, shape, {shape.outputDims(), shape.kernelDims()}, shape.inputDims());
}

bool ConvolutionInputGradOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands.size() == 1;
}

OpCost ConvolutionInputGradOp::getCost() { return convolutionCost(*this); }

LogicalResult ConvolutionKernelGradOp::verify() { return verifyConvolution(*this); }

FactorRule ConvolutionKernelGradOp::getFactorRule() {
  Convolution shape(*this);
  if (failed(verifyShapes(*this, shape))) {
    return {};
  }
  return makeRule(*this, shape, {shape.inputDims(), shape.outputDims()}, shape.kernelDims());
}

bool ConvolutionKernelGradOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands.size() == 1;
}

OpCost ConvolutionKernelGradOp::getCost() { return convolutionCost(*this); }
