//===- GraphImages.cpp - convolution networks of ONNX graphs --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "llvm/Support/Error.h"

using namespace mlir;
using namespace weft;

namespace {

/// The windows of a convolution or a pool.
struct Window {
  std::vector<int64_t> sizes, strides, low, high, dilations;
};

/// Reads the attributes that convolutions and pools share; `sizes` are the default of the kernel's
/// shape.
llvm::Expected<Window> windowOf(const onnx::Node &node, std::vector<int64_t> sizes) {
  Window window;
  window.sizes = onnx::integersAttribute(node, "kernel_shape").value_or(sizes);
  size_t places = window.sizes.size();
  auto numbers = [&](const char *name, int64_t otherwise, size_t count) {
    return onnx::integersAttribute(node, name).value_or(std::vector<int64_t>(count, otherwise));
  };
  window.strides = numbers("strides", 1, places);
  window.dilations = numbers("dilations", 1, places);
  std::vector<int64_t> pads = numbers("pads", 0, 2 * places);
  std::string automatic = onnx::textAttribute(node, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") {
    return llvm::createStringError("auto_pad " + automatic + " is not supported, only pads");
  }
  bool isFine = places >= 1 && places <= 3 && window.strides.size() == places &&
                window.dilations.size() == places && pads.size() == 2 * places;
  for (const std::vector<int64_t> *list : {&window.sizes, &window.strides, &window.dilations}) {
    isFine = isFine && llvm::all_of(*list, [](int64_t n) { return n >= 1 && n < (1 << 20); });
  }
  if (!isFine || llvm::any_of(pads, [](int64_t pad) { return pad < 0 || pad > (1 << 20); })) {
    return llvm::createStringError(
        "expected sizes, strides, dilations and pads for each of one to three dimensions");
  }
  window.low.assign(pads.begin(), pads.begin() + long(places));
  window.high.assign(pads.begin() + long(places), pads.end());
  return window;
}

/// Returns the shape of the result; nothing if no window fits.
std::optional<llvm::SmallVector<int64_t>> outputShape(llvm::ArrayRef<int64_t> input,
                                                      int64_t channels, const Window &window) {
  llvm::SmallVector<int64_t> shape{input[0], channels};
  for (size_t i = 0; i < window.sizes.size(); ++i) {
    int64_t room = input[i + 2] + window.low[i] + window.high[i] -
                   (window.dilations[i] * (window.sizes[i] - 1) + 1);
    if (room < 0) {
      return std::nullopt;
    }
    shape.push_back(room / window.strides[i] + 1);
  }
  return shape;
}

llvm::ArrayRef<int64_t> shapeOf(Value tensor) {
  return llvm::cast<RankedTensorType>(tensor.getType()).getShape();
}

} // namespace

bool GraphBuilder::convolution(const onnx::Node &node) {
  const View *input = viewOf(node, 0), *kernel = input ? viewOf(node, 1) : nullptr;
  if (!kernel) {
    return false;
  }
  std::optional<Value> images = views.materialize(nameOf(node), *input);
  std::optional<Value> weights = views.materialize(nameOf(node), *kernel);
  bool isStatic = images && weights && !ShapedType::isDynamicShape(shapeOf(*weights)) &&
                  input->rank() >= 3 && !ShapedType::isDynamicShape(shapeOf(*images).drop_front());
  if (!isStatic || input->rank() != kernel->rank()) {
    return fail(node, "expected images [sample, channel, place...] and a kernel of as many "
                      "dimensions");
  }
  llvm::ArrayRef<int64_t> ofInput = shapeOf(*images), ofKernel = shapeOf(*weights);
  llvm::Expected<Window> window = windowOf(node, ofKernel.drop_front(2).vec());
  if (!window) {
    return fail(node, llvm::toString(window.takeError()));
  }
  int64_t groups = onnx::integerAttribute(node, "group", 1);
  std::optional<llvm::SmallVector<int64_t>> shape;
  if (window->sizes == ofKernel.drop_front(2).vec() && groups >= 1 &&
      ofInput[1] == ofKernel[1] * groups && ofKernel[0] % groups == 0) {
    shape = outputShape(ofInput, ofKernel[0], *window);
  }
  if (!shape) {
    return fail(node, "the kernel does not fit the images");
  }
  View result;
  if (groups == 1) {
    View named;
    nameWeight(node, *input, *kernel, 1, 0, named);
    result.isInner = named.isInner;
  } else {
    nameDimension(*kernel, 0, input->isInner ? "ffn" : "hidden");
    result.isInner = input->isInner;
  }
  std::string name = nameOf(node);
  // Convolutions of several groups are no matmuls, and stay float32.
  bool isTF32 = groups == 1 && ops.recipe.precision == desc::Precision::TF32;
  Value output =
      ConvolutionOp::create(ops.builder, ops.location(name), ops.wideType(*shape),
                            ops.round(name, *images), ops.round(name, *weights), window->strides,
                            window->low, window->high, window->dilations, isTF32);
  output = ops.round(name, output);
  bool isInner = result.isInner;
  result = ViewBuilder::whole(output);
  result.isInner = isInner;
  if (node.input(2).empty()) {
    return give(node, result);
  }
  if (const onnx::Constant *bias = constantOf(node, 2)) {
    bool isZero = llvm::all_of(bias->values, [](double value) { return value == 0.0; });
    return isZero ? give(node, result) : fail(node, "expected a bias that is a parameter, or zero");
  }
  const View *found = viewOf(node, 2);
  if (!found) {
    return false;
  }
  if (found->rank() != 1) {
    return fail(node, "the bias does not fit the channels");
  }
  nameDimension(*found, 0, result.isInner ? "ffn" : "hidden");
  View bias = *found;
  bias.dims.resize(static_cast<size_t>(input->rank()) - 1);
  std::optional<View> sum =
      views.map(nameOf(node), {result, bias}, [](ImplicitLocOpBuilder &scalars, ValueRange in) {
        return arith::AddFOp::create(scalars, in[0], in[1]).getResult();
      });
  if (sum) {
    sum->isInner = isInner;
  }
  return give(node, sum, "the bias does not fit the channels");
}

bool GraphBuilder::pool(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  std::optional<Value> images = views.materialize(nameOf(node), *view);
  llvm::Expected<Window> window = windowOf(node, {});
  if (!window) {
    return fail(node, llvm::toString(window.takeError()));
  }
  if (!images || view->rank() != static_cast<int64_t>(window->sizes.size()) + 2 ||
      ShapedType::isDynamicShape(shapeOf(*images).drop_front())) {
    return fail(node, "expected images [sample, channel, place...]");
  }
  if (onnx::integerAttribute(node, "ceil_mode", 0) != 0 || node.outputs.size() > 1) {
    return fail(node, "ceil_mode and the indices of maxima are not supported");
  }
  bool isMax = node.op == "MaxPool";
  bool isPadded = llvm::any_of(window->low, [](int64_t n) { return n > 0; }) ||
                  llvm::any_of(window->high, [](int64_t n) { return n > 0; });
  if (!isMax && isPadded && onnx::integerAttribute(node, "count_include_pad", 0) == 0) {
    return fail(node, "a mean without the padding is not supported, expected "
                      "count_include_pad or no pads");
  }
  std::optional<llvm::SmallVector<int64_t>> shape =
      outputShape(shapeOf(*images), shapeOf(*images)[1], *window);
  if (!shape) {
    return fail(node, "the window does not fit the images");
  }
  std::string name = nameOf(node);
  Value output = PoolOp::create(
      ops.builder, ops.location(name), RankedTensorType::get(*shape, ops.activationElement()),
      isMax ? PoolKind::Max : PoolKind::Sum, ops.round(name, *images), window->sizes,
      window->strides, window->low, window->high, window->dilations);
  View result = ViewBuilder::whole(output);
  if (!isMax) {
    double scale = 1.0 / static_cast<double>(onnx::elementCount(window->sizes));
    result = *views.map(nameOf(node), {result},
                        [scale](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                          Value factor = scalarConstant(scalars, in[0], scale);
                          return arith::MulFOp::create(scalars, in[0], factor);
                        });
  }
  result.isInner = view->isInner;
  return give(node, result);
}

bool GraphBuilder::globalPool(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  llvm::SmallVector<int64_t> dims;
  for (int64_t dim = 2; dim < view->rank(); ++dim) {
    dims.push_back(dim);
  }
  std::optional<View> result = mean(node, *view, dims, /*keeps=*/true, /*isMean=*/true);
  if (result) {
    result->isInner = view->isInner;
  }
  return give(node, result, "expected images [sample, channel, place...]");
}
