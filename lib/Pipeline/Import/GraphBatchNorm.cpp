//===- GraphBatchNorm.cpp - batch norms of ONNX graphs --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildBatchNorm.h"
#include "GraphBuilder.h"

using namespace mlir;
using namespace weft;

/// Returns true if the inputs are [sample, channel, place...] and four vectors [channel], of which
/// the last two are initializers.
bool GraphBuilder::isBatchNormOfChannels(const onnx::Node &node, const View &input,
                                         const View &scale, const View &bias) {
  if (input.rank() < 2 || input.lengths()[0] != onnx::kBatch) {
    return false;
  }
  std::vector<double> channels{input.lengths()[1]};
  auto isVector = [&](size_t number) {
    const onnx::Initializer *initializer = graph.initializer(node.input(number));
    return initializer && initializer->shape == std::vector<int64_t>{int64_t(channels[0])};
  };
  return scale.lengths() == channels && bias.lengths() == channels && isVector(3) && isVector(4);
}

bool GraphBuilder::batchNorm(const onnx::Node &node) {
  const View *input = viewOf(node, 0), *scale = input ? viewOf(node, 1) : nullptr,
             *bias = scale ? viewOf(node, 2) : nullptr;
  if (!bias) {
    return false;
  }
  std::string name = nameOf(node);
  std::optional<Value> images;
  if (!isBatchNormOfChannels(node, *input, *scale, *bias) ||
      !(images = views.materialize(name, *input))) {
    return fail(node, "expected [sample, channel, place...], and scale, bias, mean and variance of "
                      "each channel");
  }
  nameDimension(*scale, 0, input->isInner ? "ffn" : "hidden");
  nameDimension(*bias, 0, input->isInner ? "ffn" : "hidden");
  Location loc = ops.location(name);
  auto statistic = [&](size_t number) {
    std::string_view variable = node.input(number);
    return ops.read(variable, ops.wideType(graph.initializer(variable)->shape));
  };
  BatchNormParameters channels = {scale->tensor, bias->tensor, statistic(3), statistic(4)};
  BatchNormSpec spec;
  spec.batch = ops.recipe.globalBatch;
  spec.group = parameters.batchNormGroup;
  spec.epsilon = onnx::realAttribute(node, "epsilon", 1e-5);
  spec.momentum = onnx::realAttribute(node, "momentum", 0.9);
  View result = *input;
  if (isTraining) {
    auto count = static_cast<double>(spec.samples());
    for (int64_t dim = 2; dim < input->rank(); ++dim) {
      count *= input->lengths()[static_cast<size_t>(dim)];
    }
    if (count < 2) {
      return fail(node, "expected at least two numbers in a group of a batch norm");
    }
    BatchNorm norm = buildBatchNorm(ops.builder, loc, *images, channels, spec);
    AssignOp::create(ops.builder, loc, node.input(3), norm.runningMean);
    AssignOp::create(ops.builder, loc, node.input(4), norm.runningVariance);
    result = ViewBuilder::whole(norm.output);
  } else {
    result = ViewBuilder::whole(
        buildBatchNormOfRunning(ops.builder, loc, *images, channels, spec.epsilon));
  }
  result.isInner = input->isInner;
  return give(node, result);
}
