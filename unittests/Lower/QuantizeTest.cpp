//===- QuantizeTest.cpp - kernels that round to eight bits ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <limits>

#include "KernelRunner.h"
#include "llvm/ADT/APFloat.h"

namespace weft::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A format by LLVM's account of it.
struct Format {
  const char *name;
  const llvm::fltSemantics &semantics;
  double greatest;

  double decode(uint64_t code) const {
    return llvm::APFloat(semantics, llvm::APInt(8, code)).convertToDouble();
  }
  double round(double value) const {
    llvm::APFloat number(value);
    bool isInexact = false;
    number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &isInexact);
    return number.convertToDouble();
  }
  /// What weft.quantize is defined as.
  double quantize(double value, double amax) const {
    double scale = 1;
    while (amax * scale > greatest) {
      scale /= 2;
    }
    while (amax * scale * 2 <= greatest) {
      scale *= 2;
    }
    return round(value * scale) / scale;
  }
};

const Format kFormats[] = {{"e4m3", llvm::APFloat::Float8E4M3FN(), 448},
                           {"e5m2", llvm::APFloat::Float8E5M2(), 57344}};

struct QuantizeTest : KernelTest {
  std::vector<double> quantize(const Format &format, const std::vector<double> &values, double amax,
                               Kind resultKind = Kind::Float) {
    auto count = static_cast<int64_t>(values.size());
    std::string from = "tensor<" + std::to_string(count) + "x$f>";
    std::string to =
        resultKind == Kind::Float ? from : "tensor<" + std::to_string(count) + "xbf16>";
    KernelCall call;
    call.text = "func.func private @kernel(%x: " + from + ", %m: tensor<$f>) -> " + to +
                " attributes {weft.tied = array<i64: -1>} {\n%r = weft.quantize " + format.name +
                " %x by %m : " + from + ", tensor<$f> -> " + to + "\nreturn %r : " + to + "\n}";
    call.operands = {Array({count}), Array(std::vector<int64_t>())};
    call.operands[0].data = values;
    call.operands[1].data = {amax};
    call.results = {Array({count}, resultKind)};
    return run(call).results[0].data;
  }

  double amax(const std::vector<double> &values) {
    std::string type = "tensor<" + std::to_string(values.size()) + "x$f>";
    KernelCall call;
    call.text =
        "func.func private @kernel(%x: " + type +
        ") -> tensor<$f> attributes {weft.tied = array<i64: -1>} {\n%r = weft.amax %x : " + type +
        " -> tensor<$f>\nreturn %r : tensor<$f>\n}";
    call.operands = {Array({static_cast<int64_t>(values.size())})};
    call.operands[0].data = values;
    call.results = {Array(std::vector<int64_t>())};
    return run(call).results[0].data[0];
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(QuantizeTest);

/// Every number of a format, what lies half way to the next, and what lies just beside that.
std::vector<double> numbersAndHalves(const Format &format) {
  std::vector<double> values;
  for (uint64_t code = 0; code < 128; ++code) {
    double number = format.decode(code), next = format.decode(code + 1);
    if (!std::isfinite(number) || number > format.greatest) {
      break;
    }
    double half = number == format.greatest ? number : (number + next) / 2;
    for (double value : {number, half, half * (1 - 0x1p-20), half * (1 + 0x1p-20)}) {
      if (value <= format.greatest) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  return values;
}

TEST_P(QuantizeTest, RoundsToTheNearestAndToEven) {
  for (const Format &format : kFormats) {
    std::vector<double> values = numbersAndHalves(format);
    ASSERT_GT(values.size(), 900u); // 8 for each of 124 or 127 codes, nearly.
    std::vector<double> got = quantize(format, values, format.greatest);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(got[i], format.round(values[i])) << format.name << " of " << values[i];
      ASSERT_EQ(std::signbit(got[i]), std::signbit(values[i])) << values[i];
    }
  }
}

TEST_P(QuantizeTest, ScalesByPowersOfTwo) {
  for (const Format &format : kFormats) {
    for (double amax : {1.0, 1.75, 1.75 * (1 + 0x1p-23), 2.0, 3.0, 3.5, 1e-9, 1e9, 0x1.8p100}) {
      amax = rounded(amax);
      std::vector<double> values = {amax};
      for (double value : randomArray({500}, 7).data) {
        values.push_back(rounded(value * amax));
        values.push_back(rounded(value * value * value * amax * 1e-2));
      }
      std::vector<double> got = quantize(format, values, amax);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(got[i], format.quantize(values[i], amax))
            << format.name << " of " << values[i] << " of at most " << amax;
      }
    }
  }
}

TEST_P(QuantizeTest, Zeros) {
  for (const Format &format : kFormats) {
    EXPECT_EQ(quantize(format, {0, -0.0, 0}, 0), std::vector<double>({0, 0, 0}));
  }
}

TEST_P(QuantizeTest, WhatIsNotFiniteStaysSo) {
  for (const Format &format : kFormats) {
    for (double greatest : {kInfinity, kNaN}) {
      std::vector<double> got = quantize(format, {kInfinity, -kInfinity, kNaN}, greatest);
      for (double value : got) {
        EXPECT_FALSE(std::isfinite(value)) << format.name;
      }
    }
  }
}

TEST_P(QuantizeTest, WhatIsBeyondTheGreatestBecomesIt) {
  for (const Format &format : kFormats) {
    double far = isF64() ? 1e300 : 1e38;
    EXPECT_EQ(quantize(format, {1.75, 1.76, -2, far, -far, 0.5}, 1.75),
              std::vector<double>({1.75, 1.75, -1.75, 1.75, -1.75, 0.5}));
    // As a scale that follows a tensor of zeros has it.
    EXPECT_EQ(quantize(format, {1, -far}, 0x1p-100),
              std::vector<double>({0x1.cp-100, -0x1.cp-100}));
    for (double value : quantize(format, {kInfinity, -kInfinity, kNaN}, 1)) {
      EXPECT_FALSE(std::isfinite(value)) << format.name;
    }
  }
}

TEST_P(QuantizeTest, FitsBF16) {
  if (isF64()) {
    return; // bf16 is narrower than f32 only.
  }
  for (const Format &format : kFormats) {
    std::vector<double> values = randomArray({300}, 8).data;
    EXPECT_EQ(quantize(format, values, 1, Kind::BFloat16), quantize(format, values, 1));
  }
}

TEST_P(QuantizeTest, Amax) {
  std::vector<double> values = randomArray({1003}, 9).data;
  values[77] = -1.5;
  EXPECT_EQ(amax(values), 1.5);
  values[1002] = 2.5;
  EXPECT_EQ(amax(values), 2.5);
  EXPECT_EQ(amax({0, -0.0}), 0);
  EXPECT_FALSE(std::signbit(amax({-0.0})));
  values[3] = -kInfinity;
  EXPECT_EQ(amax(values), kInfinity);
  values[500] = kNaN;
  EXPECT_TRUE(std::isnan(amax(values)));
}

} // namespace
} // namespace weft::test
