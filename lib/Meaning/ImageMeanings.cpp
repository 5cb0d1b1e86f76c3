//===- ImageMeanings.cpp - what ops of image models compute ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sample n, input channel c, output channel o, channel in its group i; places are always whole.
//
//===----------------------------------------------------------------------===//

#include "OpMeaning.h"

using namespace mlir;

namespace weft::meaning {

namespace {

int64_t channelsOf(mlir::Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(1);
}
int64_t rowsOf(mlir::Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(0); }

/// The tensors of a convolution or of a gradient of one.
struct Image {
  explicit Image(ConvolutionOp op)
      : input(op.getInput()), kernel(op.getKernel()), output(op.getOutput()),
        operands({input, kernel}), result(output) {}
  explicit Image(ConvolutionInputGradOp op)
      : input(op.getOutput()), kernel(op.getKernel()), output(op.getGradient()),
        operands({output, kernel}), result(input) {}
  explicit Image(ConvolutionKernelGradOp op)
      : input(op.getInput()), kernel(op.getOutput()), output(op.getGradient()),
        operands({input, output}), result(kernel) {}

  std::string lettersOf(mlir::Value value, bool hasGroups) const {
    int64_t places = rankOf(value) - 2;
    if (value == input) {
      return "nc" + meaning::lettersOf(places, 'p');
    }
    return (value == output ? "no"
            : hasGroups     ? "oi"
                            : "oc") +
           meaning::lettersOf(places, value == output ? 'v' : 's');
  }

  mlir::Value input, kernel, output;
  SmallVector<mlir::Value, 2> operands;
  mlir::Value result;
};

OpMeaning ofConvolution(const Image &image, bool hasGroups) {
  OpMeaning meaning;
  for (mlir::Value operand : image.operands) {
    meaning.operands.push_back(image.lettersOf(operand, hasGroups));
  }
  meaning.results = {image.lettersOf(image.result, hasGroups)};
  meaning.whole = "pqrstuvwx";
  meaning.linear = {{0}, {1}};
  meaning.joinings = {Joining::Sum};
  return meaning;
}

/// A rank's input and output channels must be of the same groups.
OpMeaning ofGroups(const Image &image) {
  OpMeaning meaning = ofConvolution(image, /*hasGroups=*/true);
  int64_t inGroup = channelsOf(image.kernel);
  int64_t groups = channelsOf(image.input) / inGroup;
  int64_t outOfGroup = rowsOf(image.kernel) / groups;
  meaning.whole.push_back('i');
  meaning.apart = "co";
  meaning.derive = [=](char letter, const OpMeaning::DimOfLetter &of,
                       RankNumbers &ranks) -> std::optional<Dim> {
    if (letter != 'c') {
      return std::nullopt;
    }
    Dim dim = of('o');
    std::optional<uint32_t> group = ranks.divide(dim.start, outOfGroup);
    if (!group || dim.size % outOfGroup != 0 || dim.end != dim.size) {
      return std::nullopt;
    }
    dim.start = ranks.multiply(*group, ranks.constant(inGroup));
    dim.length = groups * inGroup;
    dim.size = dim.end = dim.size / outOfGroup * inGroup;
    return dim;
  };
  meaning.check = [=](const OpMeaning::DimOfLetter &of,
                      RankNumbers &ranks) -> std::optional<std::string> {
    const Dim &in = of('c'), &out = of('o');
    bool isKnown = in.start != kUnknown && out.start != kUnknown;
    bool isOne = isKnown &&
                 ranks.multiply(in.start, ranks.constant(outOfGroup)) ==
                     ranks.multiply(out.start, ranks.constant(inGroup)) &&
                 ranks.divide(in.start, inGroup);
    return isOne ? std::nullopt
                 : std::optional<std::string>("has input and output channels of other groups");
  };
  return meaning;
}

template <typename OpTy> std::vector<OpMeaning> ofConvolutionOp(Operation *op) {
  Image image(cast<OpTy>(op));
  std::vector<OpMeaning> meanings;
  // With as many channels as the kernel, the shard may be one group of several.
  if (channelsOf(image.input) == channelsOf(image.kernel)) {
    meanings.push_back(ofConvolution(image, /*hasGroups=*/false));
  }
  meanings.push_back(ofGroups(image));
  return meanings;
}

template <typename OpTy>
OpMeaning ofWindows(OpTy, std::vector<std::string> operands, std::string result, bool isSum) {
  OpMeaning meaning;
  meaning.operands = std::move(operands);
  meaning.results = {std::move(result)};
  meaning.whole = "pqrvwx";
  meaning.joinings = {std::nullopt};
  if (isSum) {
    meaning.linear = {{0}};
  }
  meaning.zeroIn = {0};
  return meaning;
}

OpMeaning ofPool(PoolOp op) {
  int64_t places = rankOf(op.getInput()) - 2;
  return ofWindows(op, {"nc" + lettersOf(places, 'p')}, "nc" + lettersOf(places, 'v'),
                   op.getKind() == PoolKind::Sum);
}

OpMeaning ofPoolGrad(PoolGradOp op) {
  int64_t places = rankOf(op.getGradient()) - 2;
  std::string image = "nc" + lettersOf(places, 'p');
  return ofWindows(op, {"nc" + lettersOf(places, 'v'), image}, image, /*isSum=*/true);
}

/// A rank has whole groups of samples.
OpMeaning ofGroupMean(GroupMeanOp op) {
  OpMeaning meaning;
  meaning.operands = {lettersOf(rankOf(op.getInput()))};
  meaning.results = meaning.operands;
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  auto count = static_cast<int64_t>(op.getCount());
  meaning.check = [count](const OpMeaning::DimOfLetter &of,
                          RankNumbers &ranks) -> std::optional<std::string> {
    const Dim &samples = of('A');
    bool isWhole = samples.length % count == 0 &&
                   (samples.start == kUnknown || ranks.divide(samples.start, count));
    return isWhole ? std::nullopt
                   : std::optional<std::string>("has parts of groups of samples on a rank");
  };
  return meaning;
}

} // namespace

void addImageMeanings(MeaningTable &table) {
  table[ConvolutionOp::getOperationName()] = ofConvolutionOp<ConvolutionOp>;
  table[ConvolutionInputGradOp::getOperationName()] = ofConvolutionOp<ConvolutionInputGradOp>;
  table[ConvolutionKernelGradOp::getOperationName()] = ofConvolutionOp<ConvolutionKernelGradOp>;
  addMeaning<PoolOp, ofPool>(table);
  addMeaning<PoolGradOp, ofPoolGrad>(table);
  addMeaning<GroupMeanOp, ofGroupMean>(table);
}

} // namespace weft::meaning
