//===- ScalarGradientTest.cpp - derivatives against differences ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the scalar code of a map, and the code of its derivative, in double precision, and compares
// the derivative with central differences.
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include "llvm/ADT/StringSwitch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

using Values = std::vector<double>;

/// Returns the result of an op with one result; true is 1.
double evaluate(Operation &op, const Values &x) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    return cast<FloatAttr>(constant.getValue()).getValueAsDouble();
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    switch (compare.getPredicate()) {
    case arith::CmpFPredicate::OLT:
      return x[0] < x[1];
    case arith::CmpFPredicate::OLE:
      return x[0] <= x[1];
    case arith::CmpFPredicate::OGE:
      return x[0] >= x[1];
    default:
      ADD_FAILURE() << "unexpected comparison";
      return 0;
    }
  }
  static const std::map<std::string, std::function<double(const Values &)>> functions = {
      {"arith.addf", [](const Values &v) { return v[0] + v[1]; }},
      {"arith.subf", [](const Values &v) { return v[0] - v[1]; }},
      {"arith.mulf", [](const Values &v) { return v[0] * v[1]; }},
      {"arith.divf", [](const Values &v) { return v[0] / v[1]; }},
      {"arith.negf", [](const Values &v) { return -v[0]; }},
      {"arith.maximumf", [](const Values &v) { return std::max(v[0], v[1]); }},
      {"arith.minimumf", [](const Values &v) { return std::min(v[0], v[1]); }},
      {"arith.select", [](const Values &v) { return v[0] != 0 ? v[1] : v[2]; }},
      {"math.exp", [](const Values &v) { return std::exp(v[0]); }},
      {"math.log", [](const Values &v) { return std::log(v[0]); }},
      {"math.tanh", [](const Values &v) { return std::tanh(v[0]); }},
      {"math.sqrt", [](const Values &v) { return std::sqrt(v[0]); }},
      {"math.rsqrt", [](const Values &v) { return 1 / std::sqrt(v[0]); }},
      {"math.erf", [](const Values &v) { return std::erf(v[0]); }},
      {"math.sin", [](const Values &v) { return std::sin(v[0]); }},
      {"math.cos", [](const Values &v) { return std::cos(v[0]); }},
      {"math.powf", [](const Values &v) { return std::pow(v[0], v[1]); }},
  };
  return functions.at(op.getName().getStringRef().str())(x);
}

/// Evaluates the maps and plain sums from `begin` on for scalar tensors.
void run(Block &block, Operation *begin, DenseMap<Value, double> &values) {
  for (Operation &op : llvm::make_range(begin->getIterator(), std::prev(block.end()))) {
    auto map = cast<MapOp>(op);
    Block &body = map.getBody().front();
    for (auto [argument, input] : llvm::zip(body.getArguments(), map.getInputs())) {
      values[argument] = values.at(input);
    }
    for (Operation &scalar : body.without_terminator()) {
      Values operands;
      for (Value operand : scalar.getOperands()) {
        operands.push_back(values.at(operand));
      }
      values[scalar.getResult(0)] = evaluate(scalar, operands);
    }
    for (auto [result, yielded] :
         llvm::zip(map.getResults(), body.getTerminator()->getOperands())) {
      values[result] = values.at(yielded);
    }
  }
}

/// Compares the gradient of y = `body` at `point` with differences.
void check(const std::string &body, Values point) {
  Parsed parsed = parseMap(point.size(), body);
  MapOp map = parsed.get<MapOp>();
  Block &block = *map->getBlock();
  auto valueAt = [&](const Values &at) {
    DenseMap<Value, double> values;
    for (auto [input, x] : llvm::zip(map.getInputs(), at)) {
      values[input] = x;
    }
    run(block, map, values);
    return values;
  };
  Values differences;
  for (size_t i = 0; i < point.size(); ++i) {
    Values up = point, down = point;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    Value y = map.getResult(0);
    differences.push_back((valueAt(up).at(y) - valueAt(down).at(y)) / 2e-5);
  }
  // The gradient of y itself is 1: y / y.
  OpBuilder builder(block.getTerminator());
  Value seed = MapOp::create(builder, map.getLoc(), map.getResultTypes(), map.getResult(0),
                             builder.getMultiDimIdentityMap(0),
                             [](OpBuilder &inner, Location loc, ValueRange) {
                               return SmallVector<Value>{
                                   arith::ConstantOp::create(inner, loc, inner.getF64FloatAttr(1))};
                             })
                   .getResult(0);
  SmallVector<Value> gradients(point.size());
  ASSERT_TRUE(succeeded(map.buildGradient(builder, seed, gradients)));
  DenseMap<Value, double> values = valueAt(point);
  for (size_t i = 0; i < point.size(); ++i) {
    double gradient = gradients[i] ? values.at(gradients[i]) : 0;
    EXPECT_NEAR(gradient, differences[i], 1e-7 * std::max(1.0, std::abs(gradient)))
        << body << " by argument " << i;
  }
}

TEST(ScalarGradient, Functions) {
  for (const char *op : {"exp", "log", "tanh", "sqrt", "rsqrt", "erf", "sin", "cos"}) {
    for (double x : {0.3, 1.0, 2.7}) {
      check(std::string("%a = math.") + op + " %0 : f64\nweft.yield %a : f64", {x});
    }
  }
}

TEST(ScalarGradient, Arithmetic) {
  for (const char *op : {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf",
                         "arith.minimumf", "math.powf"}) {
    std::string body = std::string("%a = ") + op + " %0, %1 : f64\nweft.yield %a : f64";
    check(body, {0.7, 1.9});
    check(body, {1.9, 0.7});
  }
  check("%a = arith.negf %0 : f64\nweft.yield %a : f64", {0.7});
}

TEST(ScalarGradient, Choices) {
  std::string body = "%c = arith.cmpf olt, %2, %0 : f64\n%s = arith.mulf %0, %0 : f64\n"
                     "%a = arith.select %c, %s, %1 : f64\nweft.yield %a : f64";
  check(body, {0.7, 1.9, 0.1});
  check(body, {0.7, 1.9, 2.1});
}

TEST(ScalarGradient, OfEqualOperandsTheFirstTakesIt) {
  // Both operands are one value here: half a gradient, or two, would show.
  check("%a = arith.maximumf %0, %0 : f64\nweft.yield %a : f64", {0.7});
  check("%a = arith.minimumf %0, %0 : f64\nweft.yield %a : f64", {0.7});
}

TEST(ScalarGradient, UsedAndUnusedArguments) {
  check("weft.yield %0 : f64", {0.7, 1.9});
  check("%a = arith.constant 3.0 : f64\nweft.yield %a : f64", {0.7});
  check("%a = arith.mulf %0, %0 : f64\n%b = arith.mulf %a, %0 : f64\n%c = arith.addf %b, %a : f64\n"
        "weft.yield %c : f64",
        {0.7});
}

/// The activations of the models, as Import writes them.
TEST(ScalarGradient, Activations) {
  for (double x : {-2.0, -0.3, 0.0, 1.7}) {
    check("%h = arith.constant 0.5 : f64\n%r = arith.constant 0.70710678118654752 : f64\n"
          "%o = arith.constant 1.0 : f64\n%a = arith.mulf %0, %r : f64\n%b = math.erf %a : f64\n"
          "%c = arith.addf %b, %o : f64\n%d = arith.mulf %0, %c : f64\n"
          "%e = arith.mulf %d, %h : f64\nweft.yield %e : f64",
          {x});
    check("%o = arith.constant 1.0 : f64\n%a = arith.negf %0 : f64\n%b = math.exp %a : f64\n"
          "%c = arith.addf %b, %o : f64\n%d = arith.divf %0, %c : f64\n"
          "%e = arith.mulf %d, %1 : f64\nweft.yield %e : f64",
          {x, 1.3});
  }
}

} // namespace
