//===- GraphBatchNorm.cpp - batch norms of ONNX graphs --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums over a group of samples, and maps: their rules and derivatives are all that
// is needed. The mean is subtracted before squares are taken, so that nothing
// cancels. docs/Onnx.md has the formulas.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

using namespace mlir;
using namespace weft;

namespace {

using ScalarBuilder = ImplicitLocOpBuilder;

Value times(ScalarBuilder &scalars, Value x, double factor) {
  return arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, factor));
}

} // namespace

/// The mean of [sample, channel, place...] over the places and the samples of a group: [channel]
/// over all samples, else [sample, channel], the same for all samples of a group.
std::optional<View> GraphBuilder::groupMean(const onnx::Node &node, const View &view) {
  std::string name = nameOf(node);
  int64_t group = parameters.batchNormGroup;
  double places = 1;
  llvm::SmallVector<int64_t> labels{0, 1};
  for (int64_t dim = 2; dim < view.rank(); ++dim) {
    labels.push_back(dim);
    places *= view.lengths()[static_cast<size_t>(dim)];
  }
  llvm::SmallVector<int64_t> kept{1};
  double count = places * static_cast<double>(ops.recipe.globalBatch);
  if (group > 0) {
    kept = {0, 1};
    count = places;
  }
  std::optional<View> sum = views.contract(name, view, labels, nullptr, {}, kept);
  std::optional<View> mean = sum ? views.map(name, {*sum},
                                             [count](ScalarBuilder &scalars, ValueRange in) {
                                               return times(scalars, in[0], 1.0 / count);
                                             })
                                 : std::nullopt;
  if (mean && group > 0) {
    mean->tensor = GroupMeanOp::create(ops.builder, ops.location(name), mean->tensor.getType(),
                                       mean->tensor, group);
  }
  if (mean) {
    mean->dims.append(static_cast<size_t>(view.rank() - 2), Parts());
  }
  return mean;
}

/// statistic = momentum * statistic + (1 - momentum) * factor * value, for the next steps.
bool GraphBuilder::updateStatistic(const onnx::Node &node, size_t input, const View &value,
                                   double momentum, double factor) {
  std::string variable(node.input(input));
  std::string name = nameOf(node);
  View ofGroup = value;
  if (parameters.batchNormGroup > 0) {
    // The mean over groups, each of which stands there once for each of its samples.
    std::optional<View> sum = views.contract(name, {value.tensor, {value.dims[0], value.dims[1]}},
                                             {0, 1}, nullptr, {}, {1});
    if (!sum) {
      return fail(node, "expected images [sample, channel, place...]");
    }
    ofGroup = *sum;
    factor /= static_cast<double>(ops.recipe.globalBatch);
  }
  View old =
      ViewBuilder::whole(ops.read(variable, ops.wideType(graph.initializer(variable)->shape)));
  ofGroup.dims = old.dims;
  std::optional<View> next =
      views.map(name, {old, ofGroup}, [=](ScalarBuilder &scalars, ValueRange in) -> Value {
        return arith::AddFOp::create(scalars, times(scalars, in[0], momentum),
                                     times(scalars, in[1], (1.0 - momentum) * factor));
      });
  AssignOp::create(ops.builder, ops.location(name), variable, next->tensor);
  return true;
}

bool GraphBuilder::batchNorm(const onnx::Node &node) {
  const View *input = viewOf(node, 0), *scale = input ? viewOf(node, 1) : nullptr,
             *bias = scale ? viewOf(node, 2) : nullptr;
  if (!bias) {
    return false;
  }
  double channels = input->rank() >= 2 ? input->lengths()[1] : 0;
  auto isVector = [&](std::string_view name) {
    const onnx::Initializer *initializer = graph.initializer(name);
    return initializer && initializer->shape == std::vector<int64_t>{int64_t(channels)};
  };
  if (input->rank() < 2 || input->lengths()[0] != onnx::kBatch || scale->rank() != 1 ||
      bias->rank() != 1 || scale->lengths()[0] != channels || bias->lengths()[0] != channels ||
      !isVector(node.input(3)) || !isVector(node.input(4))) {
    return fail(node, "expected [sample, channel, place...], and scale, bias, mean and variance of "
                      "each channel");
  }
  nameDimension(*scale, 0, input->isInner ? "ffn" : "hidden");
  nameDimension(*bias, 0, input->isInner ? "ffn" : "hidden");
  std::optional<View> mean, variance;
  std::string name = nameOf(node);
  auto places = static_cast<size_t>(input->rank() - 2);
  auto perChannel = [&](View view) {
    view.dims.append(places, Parts());
    return view;
  };
  auto statistic = [&](size_t number) {
    return perChannel(
        ViewBuilder::whole(ops.read(node.input(number), ops.wideType({int64_t(channels)}))));
  };
  mean = isTraining ? groupMean(node, *input) : statistic(3);
  std::optional<View> centered =
      mean ? views.map(name, {*input, *mean},
                       [](ScalarBuilder &scalars, ValueRange in) -> Value {
                         return arith::SubFOp::create(scalars, in[0], in[1]);
                       })
           : std::nullopt;
  if (centered && isTraining) {
    std::optional<View> squares =
        views.map(name, {*centered}, [](ScalarBuilder &scalars, ValueRange in) -> Value {
          return arith::MulFOp::create(scalars, in[0], in[0]);
        });
    variance = squares ? groupMean(node, *squares) : std::nullopt;
  } else if (centered) {
    variance = statistic(4);
  }
  if (!variance) {
    return fail(node, "expected images [sample, channel, place...]");
  }
  double epsilon = onnx::realAttribute(node, "epsilon", 1e-5);
  std::optional<View> result = views.map(
      name, {*centered, *variance, perChannel(*scale), perChannel(*bias)},
      [epsilon](ScalarBuilder &scalars, ValueRange in) -> Value {
        Value sum = arith::AddFOp::create(scalars, in[1], scalarConstant(scalars, in[1], epsilon));
        Value normed = arith::MulFOp::create(scalars, in[0], math::RsqrtOp::create(scalars, sum));
        Value scaled = arith::MulFOp::create(scalars, normed, in[2]);
        return arith::AddFOp::create(scalars, scaled, in[3]);
      });
  if (!result) {
    return fail(node, "expected images [sample, channel, place...]");
  }
  result->isInner = input->isInner;
  if (isTraining) {
    double momentum = onnx::realAttribute(node, "momentum", 0.9);
    double samples = static_cast<double>(parameters.batchNormGroup > 0 ? parameters.batchNormGroup
                                                                       : ops.recipe.globalBatch);
    double count = samples;
    for (int64_t dim = 2; dim < input->rank(); ++dim) {
      count *= input->lengths()[static_cast<size_t>(dim)];
    }
    if (count < 2) {
      return fail(node, "expected at least two numbers in a group of a batch norm");
    }
    if (!updateStatistic(node, 3, *mean, momentum, 1.0) ||
        !updateStatistic(node, 4, *variance, momentum, count / (count - 1.0))) {
      return false;
    }
  }
  return give(node, *result);
}
