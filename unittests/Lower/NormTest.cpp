//===- NormTest.cpp - norms and their derivatives ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <array>
#include <cmath>

#include "KernelRunner.h"

namespace weft::test {
namespace {

constexpr double kEpsilon = 1e-5;

struct NormTest : KernelTest {
  /// The row normalized, without scale.
  static std::vector<double> normalize(const double *x, int64_t n, bool isLayer,
                                       double *factor = nullptr) {
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < n && isLayer; ++j) {
      mean += x[j] / static_cast<double>(n);
    }
    for (int64_t j = 0; j < n; ++j) {
      squares += (x[j] - mean) * (x[j] - mean) / static_cast<double>(n);
    }
    double inverse = 1 / std::sqrt(squares + kEpsilon);
    std::vector<double> result(n);
    for (int64_t j = 0; j < n; ++j) {
      result[j] = (x[j] - mean) * inverse;
    }
    if (factor) {
      *factor = inverse;
    }
    return result;
  }

  void checkForward(bool isLayer, bool inPlace, int64_t rows, int64_t n) {
    KernelCall call;
    call.operands = {randomArray({rows, n}, 1), randomArray({n}, 2), randomArray({n}, 3)};
    Array expected({rows, n});
    for (int64_t i = 0; i < rows; ++i) {
      auto normal = normalize(&call.operands[0].data[i * n], n, isLayer);
      for (int64_t j = 0; j < n; ++j) {
        expected({i, j}) =
            normal[j] * call.operands[1].data[j] + (isLayer ? call.operands[2].data[j] : 0);
      }
    }
    std::string x = expected.type("$f"), v = call.operands[1].type("$f");
    call.text = "func.func private @kernel(%x: " + x + ", %s: " + v + ", %b: " + v + ") -> " + x +
                " attributes {weft.tied = array<i64: " + (inPlace ? "0" : "-1") +
                ">} {\n%y = weft.norm " + (isLayer ? "layer" : "rms") + " %x scale(%s : " + v +
                ")" + (isLayer ? " bias(%b : " + v + ")" : "") + " epsilon = 1.0e-5 : " + x +
                " -> " + x + "\nreturn %y : " + x + "\n}";
    if (!inPlace) {
      call.results = {Array({rows, n})};
    }
    Outcome outcome = run(call);
    expectClose(inPlace ? outcome.operands[0] : outcome.results[0], expected, 4);
  }

  /// The gradients of input, scale and bias for the result's gradient `gradient`.
  static std::array<Array, 3> gradientsOf(bool isLayer, const Array &input, const Array &scales,
                                          const Array &gradient) {
    int64_t rows = input.shape[0], n = input.shape[1];
    const auto &scale = scales.data, &g = gradient.data;
    Array x({rows, n}), s({n}), b({n});
    for (int64_t i = 0; i < rows; ++i) {
      double factor, mean = 0, along = 0;
      auto normal = normalize(&input.data[i * n], n, isLayer, &factor);
      for (int64_t j = 0; j < n; ++j) {
        mean += g[i * n + j] * scale[j] / static_cast<double>(n);
        along += g[i * n + j] * scale[j] * normal[j] / static_cast<double>(n);
        s.data[j] += g[i * n + j] * normal[j];
        b.data[j] += g[i * n + j];
      }
      for (int64_t j = 0; j < n; ++j) {
        x({i, j}) = factor * (g[i * n + j] * scale[j] - (isLayer ? mean : 0) - normal[j] * along);
      }
    }
    return {x, s, b};
  }

  /// The gradient is a sum that a map computes as it is loaded, and another map adds the input's
  /// gradient, before it is stored, to `%r` in its place.
  void checkGradientBetweenMaps(int64_t rows, int64_t n) {
    KernelCall call;
    call.operands = {randomArray({rows, n}, 1), randomArray({n}, 2), randomArray({rows, n}, 3),
                     randomArray({rows, n}, 4), randomArray({}, 5),  randomArray({rows, n}, 6)};
    call.results = {Array({n})};
    std::string type = call.operands[0].type("$f"), v = call.operands[1].type("$f");
    std::string maps = "maps [#id, #id, affine_map<(i, j) -> ()>] -> " + type +
                       " {\n^bb0(%0: $f, "
                       "%1: $f, %2: $f):\n%3 = arith.mulf %1, %2 : $f\n"
                       "%4 = arith.addf %0, %3 : $f\nweft.yield %4 : $f\n}\n";
    std::string types = " : " + type + ", " + type + ", tensor<$f>) ";
    call.text = "#id = affine_map<(i, j) -> (i, j)>\nfunc.func private @kernel(%x: " + type +
                ", %s: " + v + ", %a: " + type + ", %b: " + type + ", %f: tensor<$f>, %r: " + type +
                ") -> (" + type + ", " + v + ") attributes {weft.tied = array<i64: 5, -1>} {\n" +
                "%g = weft.map ins(%a, %b, %f" + types + maps +
                "%y:2 = weft.norm_grad rms %x scale(%s : " + v + ") gradient(%g : " + type +
                ") epsilon = 1.0e-5 : " + type + " -> " + type + ", " + v + "\n" +
                "%z = weft.map ins(%r, %y#0, %f" + types + maps + "return %z, %y#1 : " + type +
                ", " + v + "\n}";
    Outcome outcome = run(call);
    double f = call.operands[4].data[0];
    Array gradient({rows, n}), sum({rows, n});
    for (int64_t i = 0; i < rows * n; ++i) {
      gradient.data[i] = call.operands[2].data[i] + f * call.operands[3].data[i];
    }
    auto [x, s, b] = gradientsOf(false, call.operands[0], call.operands[1], gradient);
    for (int64_t i = 0; i < rows * n; ++i) {
      sum.data[i] = call.operands[5].data[i] + f * x.data[i];
    }
    expectClose(outcome.operands[5], sum, 8);
    expectClose(outcome.results[0], s, 4);
  }

  /// The input's gradient takes over the operand numbered `tied`, if that is not -1.
  void checkGradient(bool isLayer, int tied, int64_t rows, int64_t n) {
    KernelCall call;
    call.operands = {randomArray({rows, n}, 1), randomArray({n}, 2), randomArray({rows, n}, 3)};
    auto [x, s, b] = gradientsOf(isLayer, call.operands[0], call.operands[1], call.operands[2]);
    std::string wide = x.type("$f"), v = s.type("$f");
    std::string results = wide + ", " + v + (isLayer ? ", " + v : "");
    call.text = "func.func private @kernel(%x: " + wide + ", %s: " + v + ", %g: " + wide +
                ") -> (" + results +
                ") attributes {weft.tied = array<i64: " + std::to_string(tied) +
                (isLayer ? ", -1, -1" : ", -1") + ">} {\n%y:" + (isLayer ? "3" : "2") +
                " = weft.norm_grad " + (isLayer ? "layer" : "rms") + " %x scale(%s : " + v +
                ") gradient(%g : " + wide + ") epsilon = 1.0e-5 : " + wide + " -> " + results +
                "\nreturn %y#0, %y#1" + (isLayer ? ", %y#2" : "") + " : " + results + "\n}";
    if (tied == -1) {
      call.results = {Array({rows, n})};
    }
    call.results.push_back(Array({n}));
    if (isLayer) {
      call.results.push_back(Array({n}));
    }
    Outcome outcome = run(call);
    size_t next = 0;
    expectClose(tied != -1 ? outcome.operands[tied] : outcome.results[next++], x, 8);
    expectClose(outcome.results[next++], s, 4);
    if (isLayer) {
      expectClose(outcome.results[next++], b, 4);
    }
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(NormTest);

TEST_P(NormTest, Layer) {
  checkForward(true, false, 5, 37);
  checkForward(true, false, 3, 128);
  checkForward(true, false, 4, 1);
  checkForward(true, true, 5, 37);
}

TEST_P(NormTest, RootMeanSquare) {
  checkForward(false, false, 5, 37);
  checkForward(false, false, 1, 128);
  checkForward(false, true, 5, 37);
}

TEST_P(NormTest, LayerGradient) {
  checkGradient(true, -1, 5, 37);
  checkGradient(true, -1, 3, 128);
  checkGradient(true, 2, 5, 37);
  checkGradient(true, 0, 5, 37);
}

TEST_P(NormTest, RootMeanSquareGradient) {
  checkGradient(false, -1, 5, 37);
  checkGradient(false, 2, 7, 64);
  checkGradient(false, 0, 7, 64);
}

TEST_P(NormTest, GradientBetweenMaps) {
  checkGradientBetweenMaps(5, 37);
  checkGradientBetweenMaps(7, 64);
  checkGradientBetweenMaps(3, 2048);
  checkGradientBetweenMaps(3, 5000);
}

/// A device's blocks: of one warp and of several, with and without a rest, and with more chunks
/// than threads.
TEST_P(NormTest, RowsOfBlocks) {
  for (int64_t columns : {1, 31, 33, 255, 1000, 1023, 1040, 5000}) {
    checkForward(true, false, 2, columns);
    checkGradient(true, 0, 3, columns);
  }
  // More rows than blocks; several rows a block, with and without a rest.
  checkGradient(false, 0, 1100, isF64() ? 132 : 260);
  checkForward(true, true, 16, 64);
  checkForward(false, false, 9, 16);
  checkGradient(true, -1, 9, 16);
}

} // namespace
} // namespace weft::test
