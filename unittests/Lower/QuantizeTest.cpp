//===- QuantizeTest.cpp - kernels that round to FP8 ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <algorithm>
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
  /// The definition of weft.quantize.
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

/// A kernel's results for float32 values: bytes and the factor.
struct Bytes {
  std::vector<double> rows, turned;
  double factor = 0;
};

struct EncodeTest : KernelTest {
  /// With `lead` of `shape` turned; rows too if `hasRows`.
  Bytes encode(const Format &format, std::vector<int64_t> shape, const std::vector<double> &values,
               double amax, int64_t lead, bool hasRows, const std::string &from = "f32") {
    Kind kind = &format == kFormats ? Kind::E4M3 : Kind::E5M2;
    Array input(shape, from == "f32" ? Kind::Float : Kind::BFloat16),
        scale((std::vector<int64_t>()));
    input.data = values;
    scale.data = {amax};
    Array rows(shape, kind);
    std::rotate(shape.begin(), shape.begin() + lead, shape.end());
    Array turned(shape, kind);
    std::string types = hasRows ? rows.type("") : "", names = hasRows ? "%b" : "";
    std::string results = hasRows ? "rows " + rows.type("") : "";
    if (lead > 0) {
      types += (hasRows ? ", " : "") + turned.type("");
      names += std::string(hasRows ? ", " : "") + "%t";
      results += " turned " + turned.type("");
    }
    KernelCall call;
    call.text = "func.func private @kernel(%x: " + input.type("$f") + ", %m: tensor<$f>) -> (" +
                types + ", tensor<$f>) attributes {weft.tied = array<i64: " +
                (lead > 0 && hasRows ? "-1, -1, -1" : "-1, -1") + ">} {\n" + names +
                ", %f = weft.encode " + format.name + " %x by %m lead " + std::to_string(lead) +
                " : " + input.type("$f") + " -> " + results + "\nreturn " + names +
                ", %f : " + types + ", tensor<$f>\n}";
    call.operands = {input, scale};
    if (hasRows) {
      call.results.push_back(rows);
    }
    if (lead > 0) {
      call.results.push_back(turned);
    }
    call.results.push_back(scale);
    std::vector<Array> got = run(call).results;
    Bytes bytes;
    bytes.factor = got.back().data[0];
    bytes.turned = lead > 0 ? got[got.size() - 2].data : bytes.turned;
    bytes.rows = hasRows ? got[0].data : bytes.rows;
    return bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Float, EncodeTest, testing::Values("f32"));

TEST_P(EncodeTest, BytesAreTheNearestNumbers) {
  for (const Format &format : kFormats) {
    std::vector<double> values = numbersAndHalves(format);
    values.resize(values.size() / 16 * 16);
    Bytes got = encode(format, {16, static_cast<int64_t>(values.size()) / 16}, values,
                       format.greatest, 0, true);
    EXPECT_EQ(got.factor, 1);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(got.rows[i], format.round(values[i])) << format.name << " of " << values[i];
      ASSERT_EQ(std::signbit(got.rows[i]), std::signbit(values[i])) << values[i];
    }
  }
}

/// Operands are the results of weft.quantize, also of values that it has rounded already.
TEST_P(EncodeTest, BytesTimesTheFactorAreWhatQuantizeGives) {
  for (const Format &format : kFormats) {
    for (double amax : {1.75 * (1 + 0x1p-23), 1e-9}) {
      amax = rounded(amax);
      std::vector<double> values = randomArray({48 * 80}, 7).data, quantized;
      for (double &value : values) {
        value = rounded(value * value * value * amax);
        quantized.push_back(format.quantize(value, amax));
      }
      for (const auto &given : {values, quantized}) {
        Bytes got = encode(format, {48, 80}, given, amax, 1, true);
        for (int64_t row = 0; row < 48; ++row) {
          for (int64_t column = 0; column < 80; ++column) {
            size_t place = static_cast<size_t>(row * 80 + column);
            ASSERT_EQ(got.rows[place] * got.factor, quantized[place]) << format.name << amax;
            ASSERT_EQ(got.turned[static_cast<size_t>(column * 48 + row)], got.rows[place]);
          }
        }
      }
    }
  }
}

TEST_P(EncodeTest, SomeOfSeveralDimensionsAreTurned) {
  for (const char *from : {"f32", "bf16"}) {
    std::vector<double> values;
    for (int i = 0; i < 2 * 72 * 4 * 32; ++i) {
      values.push_back(i * 7 % 13 - 6);
    }
    Bytes got = encode(kFormats[1], {2, 72, 4, 32}, values, 57344, 2, false, from);
    for (int64_t row = 0; row < 144; ++row) {
      for (int64_t column = 0; column < 128; ++column) {
        ASSERT_EQ(got.turned[static_cast<size_t>(column * 144 + row)],
                  values[static_cast<size_t>(row * 128 + column)]);
      }
    }
    EXPECT_EQ(got.factor, 1);
  }
}

TEST_P(EncodeTest, WhatIsBeyondTheRange) {
  for (const Format &format : kFormats) {
    std::vector<double> values(32, 0.0);
    values[0] = 1e38;
    values[1] = -1e38;
    values[2] = kInfinity;
    values[3] = kNaN;
    values[4] = -0.0;
    Bytes got = encode(format, {2, 16}, values, format.greatest, 0, true);
    EXPECT_EQ(got.rows[0], format.greatest);
    EXPECT_EQ(got.rows[1], -format.greatest);
    EXPECT_TRUE(std::isnan(got.rows[2])) << format.name;
    EXPECT_TRUE(std::isnan(got.rows[3])) << format.name;
    EXPECT_TRUE(got.rows[4] == 0 && std::signbit(got.rows[4]));
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
