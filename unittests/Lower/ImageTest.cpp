//===- ImageTest.cpp - tests of convolutions and pools -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <limits>

#include "KernelRunner.h"

namespace weft::test {
namespace {

using Indices = std::vector<int64_t>;

/// A window over images of two dimensions of places.
struct Window2 {
  Indices sizes, strides, low, high, dilations;

  std::string text(bool withSizes) const {
    auto list = [](const Indices &values) {
      return "[" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + "]";
    };
    return (withSizes ? " sizes " + list(sizes) : "") + " strides " + list(strides) + " low " +
           list(low) + " high " + list(high) + " dilations " + list(dilations);
  }
  int64_t outputs(int dim, int64_t input) const {
    return (input + low[dim] + high[dim] - (sizes[dim] - 1) * dilations[dim] - 1) / strides[dim] +
           1;
  }
  int64_t place(int dim, int64_t p, int64_t k) const {
    return p * strides[dim] + k * dilations[dim] - low[dim];
  }
};

const Window2 kWindows[] = {
    {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {{3, 2}, {2, 3}, {1, 0}, {0, 1}, {1, 1}}, {{2, 3}, {1, 2}, {1, 2}, {0, 2}, {3, 2}},
    {{7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}},
};

struct ImageTest : KernelTest {
  static constexpr int64_t kHeight = 9, kWidth = 11;

  /// Runs `body(n, o, c, k, l, p, q, y, x)` for each product of a convolution: kernel place k, l,
  /// output place p, q, input place y, x; o and c count within the whole.
  template <typename Body>
  static void forEachProduct(const Window2 &window, const Array &x, const Array &w, const Array &y,
                             Body body) {
    int64_t inGroup = w.shape[1], outGroup = w.shape[0] / (x.shape[1] / inGroup);
    forEach(y.shape, [&](const Indices &at) {
      forEach({inGroup, w.shape[2], w.shape[3]}, [&](const Indices &k) {
        int64_t row = window.place(0, at[2], k[1]), column = window.place(1, at[3], k[2]);
        if (row >= 0 && row < x.shape[2] && column >= 0 && column < x.shape[3]) {
          body(Indices{at[0], at[1] / outGroup * inGroup + k[0], row, column},
               Indices{at[1], k[0], k[1], k[2]}, at);
        }
      });
    });
  }

  static std::string kernelText(const std::vector<Array> &operands, const Array &result,
                                const std::string &op) {
    std::string a = operands[0].type("$f");
    std::string b = operands.size() > 1 ? operands[1].type("$f") : "";
    std::string y = result.type("$f");
    return "func.func private @kernel(%a: " + a + (b.empty() ? "" : ", %b: " + b) + ") -> " + y +
           " attributes {weft.tied = array<i64: -1>} {\n%y = weft." + op + " : " + a +
           (b.empty() || op.find("input(") != std::string::npos ? "" : ", " + b) + " -> " + y +
           "\nreturn %y : " + y + "\n}";
  }

  Array runOn(std::vector<Array> operands, const Array &result, const std::string &op) {
    KernelCall call;
    call.text = kernelText(operands, result, op);
    call.operands = std::move(operands);
    call.results = {Array(result.shape)};
    return run(call).results[0];
  }

  static double &at(Array &array, const Indices &i) { return array({i[0], i[1], i[2], i[3]}); }
  static double at(const Array &array, const Indices &i) { return array({i[0], i[1], i[2], i[3]}); }

  void checkConvolution(const Window2 &window, int64_t channels, int64_t outputs, int64_t groups) {
    Array x = randomArray({2, channels, kHeight, kWidth}, 1);
    Array w = randomArray({outputs, channels / groups, window.sizes[0], window.sizes[1]}, 2);
    Indices shape = {2, outputs, window.outputs(0, kHeight), window.outputs(1, kWidth)};
    Array g = randomArray(shape, 3), y(shape), dx(x.shape), dw(w.shape);
    forEachProduct(window, x, w, y, [&](const Indices &in, const Indices &k, const Indices &out) {
      at(y, out) += at(x, in) * at(w, k);
      at(dx, in) += at(g, out) * at(w, k);
      at(dw, k) += at(g, out) * at(x, in);
    });
    std::string attributes = window.text(false);
    expectClose(runOn({x, w}, y, "convolution %a by %b" + attributes), y, 16);
    expectClose(runOn({g, w}, dx, "convolution_input_grad %a by %b" + attributes), dx, 16);
    expectClose(runOn({x, g}, dw, "convolution_kernel_grad %a by %b" + attributes), dw, 16);
  }

  void checkPool(const Window2 &window, bool isMax, const Array &x) {
    Indices shape = {x.shape[0], x.shape[1], window.outputs(0, x.shape[2]),
                     window.outputs(1, x.shape[3])};
    Array g = randomArray(shape, 3), y(shape), dx(x.shape);
    forEach(shape, [&](const Indices &out) {
      double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
      Indices first;
      forEach(window.sizes, [&](const Indices &k) {
        Indices in = {out[0], out[1], window.place(0, out[2], k[0]), window.place(1, out[3], k[1])};
        if (in[2] < 0 || in[2] >= x.shape[2] || in[3] < 0 || in[3] >= x.shape[3]) {
          return;
        }
        sum += at(x, in);
        if (!isMax) {
          at(dx, in) += at(g, out);
        } else if (at(x, in) > greatest) {
          greatest = at(x, in);
          first = in;
        }
      });
      at(y, out) = isMax ? greatest : sum;
      if (isMax) {
        at(dx, first) += at(g, out);
      }
    });
    std::string kind = isMax ? "max" : "sum", attributes = window.text(true);
    expectClose(runOn({x}, y, "pool " + kind + " %a" + attributes), y, 4);
    std::string input = isMax ? " input(%b : " + x.type("$f") + ")" : "";
    std::vector<Array> operands = {g};
    if (isMax) {
      operands.push_back(x);
    }
    expectClose(runOn(operands, dx, "pool_grad " + kind + " %a" + input + attributes), dx, 4);
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(ImageTest);

TEST_P(ImageTest, Convolutions) {
  for (const Window2 &window : kWindows) {
    checkConvolution(window, 3, 5, 1);
  }
}

TEST_P(ImageTest, ConvolutionsInGroups) {
  checkConvolution(kWindows[0], 6, 4, 2);
  checkConvolution(kWindows[3], 3, 6, 3);
}

/// The convolution as a product is the convolution, and its derivatives are.
TEST_P(ImageTest, Columns) {
  for (const Window2 &window : kWindows) {
    Array x = randomArray({2, 3, kHeight, kWidth}, 1);
    int64_t rows = window.outputs(0, kHeight), columns = window.outputs(1, kWidth);
    int64_t places = rows * columns, seen = window.sizes[0] * window.sizes[1];
    Array unfolded({2, 3 * seen, places}), g = randomArray(unfolded.shape, 2), folded(x.shape);
    forEach({2, 3, window.sizes[0], window.sizes[1], rows, columns}, [&](const Indices &i) {
      int64_t y = window.place(0, i[4], i[2]), z = window.place(1, i[5], i[3]);
      if (y >= 0 && y < kHeight && z >= 0 && z < kWidth) {
        int64_t row = i[1] * seen + i[2] * window.sizes[1] + i[3], column = i[4] * columns + i[5];
        unfolded({i[0], row, column}) = x({i[0], i[1], y, z});
        folded({i[0], i[1], y, z}) += g({i[0], row, column});
      }
    });
    expectClose(runOn({x}, unfolded, "unfold %a" + window.text(true)), unfolded);
    expectClose(runOn({g}, folded, "fold %a" + window.text(true)), folded, 8);
  }
}

TEST_P(ImageTest, Pools) {
  for (const Window2 &window : kWindows) {
    for (bool isMax : {false, true}) {
      checkPool(window, isMax, randomArray({2, 3, kHeight, kWidth}, 1));
    }
  }
}

/// Of equal elements the first in row-major order gets the gradient.
TEST_P(ImageTest, TiesGoToTheFirst) {
  Array x = randomIds({2, 3, 4, 5}, 0, 1, 1);
  x.kind = Kind::Float;
  checkPool(kWindows[0], true, x);
  checkPool(kWindows[3], true, Array({1, 1, kHeight, kWidth}));
}

TEST_P(ImageTest, MeansOverGroups) {
  Array x = randomArray({6, 5}, 1), expected(x.shape);
  forEach(x.shape, [&](const Indices &i) {
    for (int64_t k = i[0] / 3 * 3, j = 0; j < 3; ++j) {
      expected({i[0], i[1]}) += x({k + j, i[1]}) / 3;
    }
  });
  expectClose(runOn({x}, expected, "group_mean %a of 3"), expected, 4);
}

TEST_P(ImageTest, Softmax) {
  // Of a part of a warp, and padded so that threads of a warp, of several rows, or whole warps of a
  // block have nothing of it.
  using Sizes = std::pair<int64_t, int64_t>;
  for (auto [columns, padded] :
       {Sizes{37, 37}, {16, 18}, {5, 64}, {64, 200}, {300, 1024}, {1, 9}}) {
    Array x = randomArray({9, padded}, 1), expected(x.shape);
    for (double &value : x.data) {
      value *= 200; // Whose exponentials overflow.
    }
    for (int64_t i = 0; i < 9; ++i) {
      double greatest = *std::max_element(&x({i, 0}), &x({i, 0}) + columns), sum = 0;
      for (int64_t j = 0; j < columns; ++j) {
        sum += std::exp(x({i, j}) - greatest);
      }
      for (int64_t j = 0; j < columns; ++j) {
        expected({i, j}) = std::exp(x({i, j}) - greatest) / sum;
      }
    }
    std::string op = "softmax %a";
    op += columns < padded ? " columns [" + std::to_string(columns) + "]" : "";
    expectClose(runOn({x}, expected, op), expected, 64);
  }
}

TEST_P(ImageTest, Concatenations) {
  Array x = randomArray({3, 2, 5}, 1), y = randomArray({3, 4, 5}, 2), expected({3, 6, 5});
  forEach(expected.shape, [&](const Indices &i) {
    expected({i[0], i[1], i[2]}) = i[1] < 2 ? x({i[0], i[1], i[2]}) : y({i[0], i[1] - 2, i[2]});
  });
  expectClose(runOn({x, y}, expected, "concat %a, %b dim 1"), expected);
}

TEST_P(ImageTest, ExtractsAndPads) {
  Array x = randomArray({4, 11}, 1), taken({3, 4}), padded({7, 13});
  forEach(taken.shape,
          [&](const Indices &i) { taken({i[0], i[1]}) = x({1 + i[0], 2 + 2 * i[1]}); });
  expectClose(runOn({x}, taken, "extract %a from [1, 2] by [1, 2]"), taken);
  forEach(padded.shape, [&](const Indices &i) { padded({i[0], i[1]}) = 0.5; });
  forEach(taken.shape,
          [&](const Indices &i) { padded({1 + 2 * i[0], 3 + 3 * i[1]}) = taken({i[0], i[1]}); });
  expectClose(runOn({taken}, padded, "pad %a with 0.5 low [1, 3] high [1, 0] interior [1, 2]"),
              padded);
}

} // namespace
} // namespace weft::test
