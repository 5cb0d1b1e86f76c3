//===- F16Test.cpp - kernels that hold f16 and compute in float32 --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include <cmath>

namespace weft::test {
namespace {

/// The behaviour that all narrow types share is tested with bf16.
struct F16Test : KernelTest {};
INSTANTIATE_TEST_SUITE_P(Wide, F16Test, testing::Values("f32"));

std::string castKernel(const std::string &from, const std::string &to, const char *op) {
  std::string x = "tensor<" + from + ">", y = "tensor<" + to + ">";
  auto element = [](const std::string &type) { return type.substr(type.find('x') + 1); };
  return "func.func private @kernel(%x: " + x + ") -> " + y +
         " attributes {weft.tied = array<i64: -1>} {\n%r = weft.map ins(%x : " + x +
         ") maps [affine_map<(i) -> (i)>] -> " + y + " {\n^bb0(%s: " + element(from) +
         "):\n%t = arith." + op + " %s : " + element(from) + " to " + element(to) +
         "\nweft.yield %t : " + element(to) + "\n}\nreturn %r : " + y + "\n}";
}

/// Every finite f16 up to the greatest, those below the normal ones among them; what lies half way
/// to the next, and a little to both sides of that.
TEST_P(F16Test, RoundsToTheNearestAndToEven) {
  std::vector<double> values;
  for (int64_t exponent = -15; exponent <= 15; ++exponent) {
    double step = std::ldexp(1.0, static_cast<int>(std::max<int64_t>(exponent, -14)) - 10);
    for (int64_t fraction = 0; fraction < 1024; ++fraction) {
      double value = (exponent == -15 ? 0 : 1024 * step) + static_cast<double>(fraction) * step;
      for (double part : {0.0, 0.4375, 0.5, 0.5625}) {
        values.push_back(value + part * step);
        values.push_back(-value - part * step);
      }
    }
  }
  auto size = static_cast<int64_t>(values.size());
  KernelCall call;
  call.operands = {Array({size})};
  call.operands[0].data = values;
  call.results = {Array({size}, Kind::Float16)};
  std::string count = std::to_string(size);
  call.text = castKernel(count + "xf32", count + "xf16", "truncf");
  Outcome outcome = run(call);
  for (int64_t i = 0; i < size; ++i) {
    ASSERT_EQ(outcome.results[0].data[i], roundedToF16(values[i])) << values[i];
  }
}

TEST_P(F16Test, WhatIsBeyondItsRange) {
  KernelCall call;
  call.operands = {Array({6})};
  call.operands[0].data = {65504, 65519, 65520, -1e6, 0x1p-25, 0x1.8p-25};
  call.results = {Array({6}, Kind::Float16)};
  call.text = castKernel("6xf32", "6xf16", "truncf");
  EXPECT_EQ(run(call).results[0].data,
            (std::vector<double>{65504, 65504, INFINITY, -INFINITY, 0, 0x1p-24}));
  call.operands[0].data.assign(6, NAN);
  EXPECT_TRUE(std::isnan(run(call).results[0].data[0]));
}

TEST_P(F16Test, ContractionSumsInFloat32) {
  constexpr int64_t rows = 5, columns = 40, sum = 3000;
  KernelCall call;
  call.operands = {Array({rows, sum}, Kind::Float16), Array({sum, columns}, Kind::Float16)};
  for (Array &operand : call.operands) {
    for (int64_t i = 0; i < operand.size(); ++i) {
      operand.data[i] = roundedToF16(std::sin(static_cast<double>(i + 1)));
    }
  }
  call.results = {Array({rows, columns}, Kind::Float16)};
  std::string a = "tensor<5x3000xf16>", b = "tensor<3000x40xf16>", c = "tensor<5x40xf16>";
  call.text =
      "func.func private @kernel(%x: " + a + ", %w: " + b + ") -> " + c +
      " attributes {weft.tied = array<i64: -1>} {\n%r = weft.contract \"mk,kn->mn\"(%x, %w) : (" +
      a + ", " + b + ") -> " + c + "\nreturn %r : " + c + "\n}";
  Outcome outcome = run(call);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double exact = 0;
      for (int64_t k = 0; k < sum; ++k) {
        exact += call.operands[0]({row, k}) * call.operands[1]({k, column});
      }
      ASSERT_NEAR(outcome.results[0]({row, column}), exact, 0x1p-11 * std::abs(exact) + 1e-4);
    }
  }
}

} // namespace
} // namespace weft::test
