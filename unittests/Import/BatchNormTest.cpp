//===- BatchNormTest.cpp - batch norms against their definition -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildBatchNorm.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace weft;

namespace {

using Index = std::vector<int64_t>;
using Numbers = std::vector<double>;

/// Computes the ops that batch norms are made of, by their definitions.
class Evaluator {
public:
  Numbers &operator[](Value value) { return values[value.getAsOpaquePointer()]; }

  void run(Block &block) {
    for (Operation &op : block) {
      if (auto contract = dyn_cast<ContractOp>(op)) {
        evaluate(contract);
      } else if (auto map = dyn_cast<MapOp>(op)) {
        evaluate(map);
      } else if (auto mean = dyn_cast<GroupMeanOp>(op)) {
        evaluate(mean);
      } else if (!isa<func::ReturnOp>(op)) {
        ADD_FAILURE() << "unknown op " << op.getName().getStringRef().str();
      }
    }
  }

private:
  static ArrayRef<int64_t> shapeOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }
  static int64_t countOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  }

  template <typename Body> static void forEach(const Index &sizes, Body body) {
    int64_t count = 1;
    for (int64_t size : sizes) {
      count *= size;
    }
    for (int64_t i = 0; i < count; ++i) {
      Index at(sizes.size());
      for (int64_t dim = sizes.size(), rest = i; dim-- > 0; rest /= sizes[dim]) {
        at[dim] = rest % sizes[dim];
      }
      body(at);
    }
  }

  void evaluate(ContractOp op) {
    std::map<char, int64_t> sizes;
    SmallVector<StringRef> terms = op.getTerms();
    for (auto [term, input] : llvm::zip(terms, op.getInputs())) {
      for (auto [letter, size] : llvm::zip(term, shapeOf(input))) {
        sizes[letter] = size;
      }
    }
    Index all;
    std::string letters;
    for (auto [letter, size] : sizes) {
      letters += letter;
      all.push_back(size);
    }
    Numbers &result = (*this)[op.getOutput()];
    result.assign(countOf(op.getOutput()), 0);
    forEach(all, [&](const Index &at) {
      auto position = [&](StringRef term) {
        int64_t flat = 0;
        for (char letter : term) {
          flat = flat * sizes[letter] + at[letters.find(letter)];
        }
        return flat;
      };
      double product = 1;
      for (auto [term, input] : llvm::zip(terms, op.getInputs())) {
        product *= (*this)[input][position(term)];
      }
      result[position(terms.back())] += product;
    });
  }

  void evaluate(MapOp op) {
    ArrayRef<int64_t> shape = shapeOf(op.getResult(0));
    Numbers result;
    forEach(Index(shape.begin(), shape.end()), [&](const Index &at) {
      std::map<void *, double> scalars;
      for (auto [number, input] : llvm::enumerate(op.getInputs())) {
        int64_t flat = 0;
        for (unsigned dim : op.getInputDims(number)) {
          flat = flat * shape[dim] + at[dim];
        }
        scalars[op.getBody().getArgument(number).getAsOpaquePointer()] = (*this)[input][flat];
      }
      for (Operation &scalar : op.getBody().front().without_terminator()) {
        auto in = [&](unsigned i) { return scalars[scalar.getOperand(i).getAsOpaquePointer()]; };
        double &out = scalars[scalar.getResult(0).getAsOpaquePointer()];
        if (auto constant = dyn_cast<arith::ConstantOp>(scalar)) {
          out = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
        } else if (isa<math::SqrtOp>(scalar)) {
          out = std::sqrt(in(0));
        } else {
          out = isa<arith::AddFOp>(scalar)   ? in(0) + in(1)
                : isa<arith::SubFOp>(scalar) ? in(0) - in(1)
                : isa<arith::MulFOp>(scalar) ? in(0) * in(1)
                : isa<arith::DivFOp>(scalar) ? in(0) / in(1)
                                             : NAN;
        }
      }
      Value yielded = op.getBody().front().getTerminator()->getOperand(0);
      result.push_back(scalars[yielded.getAsOpaquePointer()]);
    });
    (*this)[op.getResult(0)] = result;
  }

  void evaluate(GroupMeanOp op) {
    int64_t count = op.getCount(), rest = countOf(op.getInput()) / shapeOf(op.getInput())[0];
    const Numbers &input = (*this)[op.getInput()];
    Numbers result(input.size(), 0);
    for (size_t i = 0; i < input.size(); ++i) {
      for (int64_t k = 0, first = int64_t(i) / rest / count * count; k < count; ++k) {
        result[i] += input[(first + k) * rest + int64_t(i) % rest] / double(count);
      }
    }
    (*this)[op.getOutput()] = result;
  }

  std::map<const void *, Numbers> values;
};

constexpr int64_t kSamples = 6, kChannels = 2, kHeight = 3, kWidth = 2;
constexpr int64_t kPlaces = kHeight * kWidth;

struct BatchNormTest : testing::Test {
  BatchNormTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    OpBuilder builder(&context);
    loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    Type image =
        RankedTensorType::get({kSamples, kChannels, kHeight, kWidth}, builder.getF64Type());
    Type channels = RankedTensorType::get({kChannels}, builder.getF64Type());
    SmallVector<Type> types = {image, channels, channels, channels, channels};
    function = func::FuncOp::create(loc, "f", builder.getFunctionType(types, {}));
    module->push_back(function);
    Block *block = function.addEntryBlock();
    parameters = {block->getArgument(1), block->getArgument(2), block->getArgument(3),
                  block->getArgument(4)};
    Numbers image1(kSamples * kChannels * kPlaces);
    for (size_t i = 0; i < image1.size(); ++i) {
      // Far from zero beside their distances, as squares alone would not bear.
      image1[i] = 1e6 + double((i * 37) % 11) - 0.25 * double((i * 5) % 7);
    }
    evaluator[block->getArgument(0)] = image1;
    evaluator[parameters.scale] = {1.5, -0.5};
    evaluator[parameters.bias] = {0.25, 2};
    evaluator[parameters.runningMean] = {10, 20};
    evaluator[parameters.runningVariance] = {3, 4};
  }

  Value input() { return function.getArgument(0); }
  OpBuilder atEnd() { return OpBuilder::atBlockEnd(&function.front()); }
  void finish() {
    OpBuilder builder = atEnd();
    func::ReturnOp::create(builder, loc);
    ASSERT_TRUE(succeeded(mlir::verify(*module)));
    evaluator.run(function.front());
  }

  /// Of samples `first` to before `first + count`.
  std::pair<double, double> meanAndVariance(int64_t first, int64_t count, int64_t channel) {
    const Numbers &x = evaluator[input()];
    double mean = 0, variance = 0, elements = double(count * kPlaces);
    auto forAll = [&](auto body) {
      for (int64_t n = first; n < first + count; ++n) {
        for (int64_t p = 0; p < kPlaces; ++p) {
          body(x[(n * kChannels + channel) * kPlaces + p]);
        }
      }
    };
    forAll([&](double value) { mean += value / elements; });
    forAll([&](double value) { variance += (value - mean) * (value - mean) / elements; });
    return {mean, variance};
  }

  void check(int64_t group) {
    BatchNormSpec spec;
    spec.batch = kSamples, spec.group = group, spec.epsilon = 1e-3, spec.momentum = 0.75;
    OpBuilder builder = atEnd();
    BatchNorm norm = buildBatchNorm(builder, loc, input(), parameters, spec);
    finish();
    int64_t size = spec.samples(), groups = kSamples / size;
    double elements = double(size * kPlaces);
    for (int64_t c = 0; c < kChannels; ++c) {
      double means = 0, variances = 0;
      for (int64_t n = 0; n < kSamples; ++n) {
        auto [mean, variance] = meanAndVariance(n / size * size, size, c);
        means += mean / double(kSamples), variances += variance / double(kSamples);
        for (int64_t p = 0; p < kPlaces; ++p) {
          int64_t i = (n * kChannels + c) * kPlaces + p;
          double expected = (evaluator[input()][i] - mean) / std::sqrt(variance + 1e-3) *
                                evaluator[parameters.scale][c] +
                            evaluator[parameters.bias][c];
          EXPECT_NEAR(evaluator[norm.output][i], expected, 1e-8) << groups << " groups, " << i;
        }
      }
      EXPECT_NEAR(evaluator[norm.runningMean][c],
                  0.75 * evaluator[parameters.runningMean][c] + 0.25 * means, 1e-8);
      EXPECT_NEAR(evaluator[norm.runningVariance][c],
                  0.75 * evaluator[parameters.runningVariance][c] +
                      0.25 * variances * elements / (elements - 1),
                  1e-8);
    }
  }

  MLIRContext context;
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  BatchNormParameters parameters;
  Evaluator evaluator;
};

TEST_F(BatchNormTest, OverTheGlobalBatch) { check(0); }
TEST_F(BatchNormTest, OverGhostBatches) { check(2); }
TEST_F(BatchNormTest, OverSamples) { check(1); }
TEST_F(BatchNormTest, AGroupOfTheBatchIsTheBatch) { check(kSamples); }

TEST_F(BatchNormTest, ByRunningStatistics) {
  OpBuilder builder = atEnd();
  Value output = buildBatchNormOfRunning(builder, loc, input(), parameters, 1e-3);
  finish();
  for (int64_t i = 0; i < kSamples * kChannels * kPlaces; ++i) {
    int64_t c = i / kPlaces % kChannels;
    double expected = (evaluator[input()][i] - evaluator[parameters.runningMean][c]) /
                          std::sqrt(evaluator[parameters.runningVariance][c] + 1e-3) *
                          evaluator[parameters.scale][c] +
                      evaluator[parameters.bias][c];
    EXPECT_NEAR(evaluator[output][i], expected, 1e-8 * std::abs(expected)) << i;
  }
}

} // namespace
