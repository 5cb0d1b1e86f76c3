//===- MapTest.cpp - elementwise kernels ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include "KernelRunner.h"

namespace weft::test {
namespace {

using MapTest = KernelTest;
WEFT_INSTANTIATE_FOR_FLOATS(MapTest);

/// A kernel of one map on x [a, b, c] with a vector along each dimension and a scalar.
KernelCall spreadingRun(int64_t a, int64_t b, int64_t c) {
  KernelCall run;
  run.operands = {randomArray({a, b, c}, 1), randomArray({a}, 2), randomArray({b}, 3),
                  randomArray({c}, 4),       randomArray({}, 5),  randomArray({a, c}, 6)};
  std::string types, inputs;
  for (size_t i = 0; i < run.operands.size(); ++i) {
    std::string type = run.operands[i].type("$f");
    inputs += (i ? ", %" : "%") + std::string("x") + std::to_string(i) + ": " + type;
    types += (i ? ", " : "") + type;
  }
  std::string type = run.operands[0].type("$f");
  run.results = {Array({a, b, c}), Array({a, b, c})};
  run.text = "func.func private @kernel(" + inputs + ") -> (" + type + ", " + type +
             ") attributes {weft.tied = array<i64: -1, -1>} {\n"
             "%y:2 = weft.map ins(%x0, %x1, %x2, %x3, %x4, %x5 : " +
             types + R"() maps [
  affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (j)>,
  affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> ()>,
  affine_map<(i, j, k) -> (i, k)>] -> )" +
             type + ", " + type + R"( {
^bb0(%0: $f, %1: $f, %2: $f, %3: $f, %4: $f, %5: $f):
  %6 = arith.addf %0, %1 : $f
  %7 = arith.mulf %2, %3 : $f
  %8 = arith.addf %6, %7 : $f
  %c = arith.constant 2.0 : $f
  %9 = arith.mulf %4, %c : $f
  %10 = arith.mulf %9, %5 : $f
  weft.yield %8, %10 : $f, $f
}
return %y#0, %y#1 : )" +
             type + ", " + type + "\n}";
  return run;
}

TEST_P(MapTest, Spreads) {
  for (auto [a, b, c] : {std::tuple{2, 3, 17}, {1, 1, 1}, {4, 1, 5}, {1, 33, 1}, {3, 8, 64}}) {
    KernelCall spreading = spreadingRun(a, b, c);
    Outcome outcome = run(spreading);
    const auto &x = spreading.operands;
    Array first({a, b, c}), second({a, b, c});
    forEach({a, b, c}, [&](const std::vector<int64_t> &at) {
      int64_t i = at[0], j = at[1], k = at[2];
      first({i, j, k}) = x[0]({i, j, k}) + x[1]({i}) + x[2]({j}) * x[3]({k});
      second({i, j, k}) = 2 * x[4]({}) * x[5]({i, k});
    });
    expectClose(outcome.results[0], first);
    expectClose(outcome.results[1], second);
  }
}

/// Sums of x, and of x times a vector along each dimension, over all but the first `kept`.
KernelCall summingRun(std::vector<int64_t> shape, const std::string &kept,
                      const std::vector<int64_t> &resultShape) {
  KernelCall run;
  run.operands = {randomArray(shape, 1), randomArray({shape[1]}, 2)};
  std::string x = run.operands[0].type("$f"), v = run.operands[1].type("$f");
  run.results = {Array(resultShape), Array(resultShape)};
  std::string type = run.results[0].type("$f"), both = type + ", " + type;
  std::string sizes;
  for (int64_t size : shape) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  run.text = "func.func private @kernel(%x: " + x + ", %v: " + v + ") -> (" + both +
             ") attributes {weft.tied = array<i64: -1, -1>} {\n"
             "%y:2 = weft.map_sum ins(%x, %v : " +
             x + ", " + v +
             ") maps [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j)>] over [" +
             sizes + "] to [" + kept + "] -> " + both + R"( {
^bb0(%0: $f, %1: $f):
  %2 = arith.mulf %0, %1 : $f
  weft.yield %0, %2 : $f, $f
}
return %y#0, %y#1 : )" +
             both + "\n}";
  return run;
}

/// The last ones are so long that several blocks of a device share them.
TEST_P(MapTest, Sums) {
  for (auto [a, b, c] :
       {std::tuple{2, 3, 17}, {1, 1, 1}, {4, 1, 5}, {1, 33, 1}, {3, 8, 1000}, {35, 2, 1000}}) {
    KernelCall ofPairs = summingRun({a, b, c}, "0, 1", {a, b});
    KernelCall ofColumns = summingRun({a, b, c}, "1", {b});
    KernelCall ofAll = summingRun({a, b, c}, "", {});
    const auto &x = ofPairs.operands;
    std::vector<Array> pairs = {Array({a, b}), Array({a, b})}, columns = {Array({b}), Array({b})},
                       all = {Array({}), Array({})};
    forEach({a, b, c}, [&](const std::vector<int64_t> &at) {
      double value = x[0]({at[0], at[1], at[2]});
      double terms[] = {value, value * x[1]({at[1]})};
      for (size_t i = 0; i < 2; ++i) {
        pairs[i]({at[0], at[1]}) += terms[i];
        columns[i]({at[1]}) += terms[i];
        all[i]({}) += terms[i];
      }
    });
    for (size_t i = 0; i < 2; ++i) {
      expectClose(run(ofPairs).results[i], pairs[i], 16);
      expectClose(run(ofColumns).results[i], columns[i], 16);
      expectClose(run(ofAll).results[i], all[i], 64);
    }
  }
}

TEST_P(MapTest, WorksInPlace) {
  KernelCall add;
  add.operands = {randomArray({5, 7}, 1), randomArray({5, 7}, 2)};
  add.text = R"(
func.func private @kernel(%x: tensor<5x7x$f>, %y: tensor<5x7x$f>) -> tensor<5x7x$f>
    attributes {weft.tied = array<i64: 1>} {
  %z = weft.map ins(%x, %y : tensor<5x7x$f>, tensor<5x7x$f>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<5x7x$f> {
  ^bb0(%0: $f, %1: $f):
    %2 = arith.addf %0, %1 : $f
    weft.yield %2 : $f
  }
  return %z : tensor<5x7x$f>
})";
  Outcome outcome = run(add);
  Array expected({5, 7});
  for (int64_t i = 0; i < 35; ++i) {
    expected.data[i] = add.operands[0].data[i] + add.operands[1].data[i];
  }
  expectClose(outcome.operands[1], expected);
  expectClose(outcome.operands[0], add.operands[0]);
}

/// Two ops, the first of which makes a single element.
TEST_P(MapTest, KeepsSingleElementsInside) {
  KernelCall both;
  both.operands = {randomArray({}, 1), randomArray({9}, 2)};
  both.results = {Array({9})};
  both.text = R"(
func.func private @kernel(%s: tensor<$f>, %x: tensor<9x$f>) -> tensor<9x$f>
    attributes {weft.tied = array<i64: -1>} {
  %t = weft.map ins(%s : tensor<$f>) maps [affine_map<() -> ()>] -> tensor<$f> {
  ^bb0(%0: $f):
    %1 = arith.addf %0, %0 : $f
    weft.yield %1 : $f
  }
  %y = weft.map ins(%t, %x : tensor<$f>, tensor<9x$f>)
      maps [affine_map<(i) -> ()>, affine_map<(i) -> (i)>] -> tensor<9x$f> {
  ^bb0(%0: $f, %1: $f):
    %2 = arith.mulf %0, %1 : $f
    weft.yield %2 : $f
  }
  return %y : tensor<9x$f>
})";
  Outcome outcome = run(both);
  Array expected({9});
  for (int64_t i = 0; i < 9; ++i) {
    expected.data[i] = 2 * both.operands[0].data[0] * both.operands[1].data[i];
  }
  expectClose(outcome.results[0], expected);
}

/// Ops that need nothing of each other: blocks of a device run their phases side by side. The sums
/// take two phases each, and share memory of the module between them.
TEST_P(MapTest, RunsSideBySide) {
  KernelCall call;
  call.operands = {randomArray({5, 7}, 1), randomArray({4099}, 2), randomArray({}, 3),
                   randomArray({20011}, 4), randomArray({3000}, 5)};
  call.results = {Array({4099}), Array({}), Array({})};
  call.text = R"(
#id = affine_map<(i) -> (i)>
func.func private @kernel(%x: tensor<5x7x$f>, %y: tensor<4099x$f>, %s: tensor<$f>,
                          %a: tensor<20011x$f>, %b: tensor<3000x$f>)
    -> (tensor<5x7x$f>, tensor<4099x$f>, tensor<$f>, tensor<$f>)
    attributes {weft.tied = array<i64: 0, -1, -1, -1>} {
  %0 = weft.map ins(%x, %s : tensor<5x7x$f>, tensor<$f>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>] -> tensor<5x7x$f> {
  ^bb0(%e: $f, %f: $f):
    %4 = arith.addf %e, %f : $f
    weft.yield %4 : $f
  }
  %1 = weft.map ins(%y, %s : tensor<4099x$f>, tensor<$f>) maps [#id, affine_map<(i) -> ()>]
      -> tensor<4099x$f> {
  ^bb0(%e: $f, %f: $f):
    %4 = arith.mulf %e, %f : $f
    weft.yield %4 : $f
  }
  %2 = weft.contract "a->"(%a) : (tensor<20011x$f>) -> tensor<$f>
  %3 = weft.contract "a,a->"(%b, %b) : (tensor<3000x$f>, tensor<3000x$f>) -> tensor<$f>
  return %0, %1, %2, %3 : tensor<5x7x$f>, tensor<4099x$f>, tensor<$f>, tensor<$f>
})";
  Outcome outcome = run(call);
  double s = call.operands[2].data[0];
  Array added({5, 7}), scaled({4099}), sum({}), squares({});
  for (int64_t i = 0; i < 35; ++i) {
    added.data[i] = call.operands[0].data[i] + s;
  }
  for (int64_t i = 0; i < 4099; ++i) {
    scaled.data[i] = call.operands[1].data[i] * s;
  }
  for (double a : call.operands[3].data) {
    sum.data[0] += a;
  }
  for (double b : call.operands[4].data) {
    squares.data[0] += b * b;
  }
  expectClose(outcome.operands[0], added);
  expectClose(outcome.results[0], scaled);
  expectClose(outcome.results[1], sum, 100);
  expectClose(outcome.results[2], squares, 4);
}

/// More ops than run side by side.
TEST_P(MapTest, RunsManySideBySide) {
  constexpr int64_t kCount = 19;
  KernelCall call;
  std::string inputs, types, body, results, tied;
  for (int64_t i = 0; i < kCount; ++i) {
    call.operands.push_back(randomArray({3 + 5 * i}, unsigned(i)));
    std::string comma = i ? ", " : "", n = std::to_string(i);
    std::string type = call.operands.back().type("$f");
    inputs += comma + "%x" + n + ": " + type;
    types += comma + type;
    results += comma + "%y" + n;
    tied += comma + n;
    body += "%y" + n + " = weft.map ins(%x" + n + " : " + type +
            ") maps [affine_map<(i) -> (i)>] -> " + type +
            " {\n^bb0(%0: $f):\n%1 = arith.addf %0, %0 : $f\nweft.yield %1 : $f\n}\n";
  }
  call.text = "func.func private @kernel(" + inputs + ") -> (" + types +
              ") attributes {weft.tied = array<i64: " + tied + ">} {\n" + body + "return " +
              results + " : " + types + "\n}";
  Outcome outcome = run(call);
  for (auto [before, after] : llvm::zip_equal(call.operands, outcome.operands)) {
    Array expected(before.shape);
    for (int64_t i = 0; i < before.size(); ++i) {
      expected.data[i] = 2 * before.data[i];
    }
    expectClose(after, expected);
  }
}

/// A function of `math`, applied to many numbers at once.
class FunctionTest : public KernelTest {
protected:
  Array apply(const std::string &op, const Array &x) {
    KernelCall call;
    std::string type = x.type("$f");
    call.operands = {x};
    call.results = {Array(x.shape)};
    call.text = "func.func private @kernel(%x: " + type + ") -> " + type +
                " attributes {weft.tied = array<i64: -1>} {\n%y = weft.map ins(%x : " + type +
                ") maps [affine_map<(i) -> (i)>] -> " + type + " {\n^bb0(%0: $f):\n%1 = " + op +
                " %0 : $f\nweft.yield %1 : $f\n}\nreturn %y : " + type + "\n}";
    return run(call).results[0];
  }

  /// Numbers over the whole range that matters; `ulps` are units of the result's last place.
  void check(const std::string &op, double (*function)(double), double least, double most,
             double ulps) {
    constexpr int64_t kCount = 20011;
    Array x({kCount});
    for (int64_t i = 0; i < kCount; ++i) {
      x.data[i] = rounded(least + (most - least) * static_cast<double>(i) / (kCount - 1));
    }
    Array y = apply(op, x);
    double epsilon = isF64() ? 0x1p-52 : 0x1p-23, smallest = isF64() ? 0x1p-1022 : 0x1p-126;
    double worst = 0, worstAt = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      double expected = function(x.data[i]), actual = y.data[i];
      double error =
          std::abs(actual - expected) / (std::max(std::abs(expected), smallest) * epsilon);
      if (!(error <= worst)) {
        worst = error;
        worstAt = x.data[i];
      }
    }
    EXPECT_LE(worst, ulps) << op << " at " << worstAt;
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(FunctionTest);

TEST_P(FunctionTest, Exp) { check("math.exp", std::exp, -87, 80, 4); }
TEST_P(FunctionTest, ExpNearZero) { check("math.exp", std::exp, -1, 1, 4); }
TEST_P(FunctionTest, Log) { check("math.log", std::log, 1e-3, 1e4, 4); }
TEST_P(FunctionTest, Tanh) { check("math.tanh", std::tanh, -12, 12, 8); }
TEST_P(FunctionTest, TanhNearZero) { check("math.tanh", std::tanh, -0.1, 0.1, 8); }
TEST_P(FunctionTest, Erf) { check("math.erf", std::erf, -6, 6, 8); }
TEST_P(FunctionTest, ErfNearZero) { check("math.erf", std::erf, -0.5, 0.5, 8); }
TEST_P(FunctionTest, Sqrt) { check("math.sqrt", std::sqrt, 0, 100, 1); }

/// Numbers that are not finite must not become finite on the way to the loss.
TEST_P(FunctionTest, PassesOnWhatIsNotFinite) {
  Array x({7});
  x.data = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 1, 0};
  Array e = apply("math.exp", x);
  EXPECT_TRUE(std::isnan(e.data[0]));
  EXPECT_EQ(e.data[1], INFINITY);
  EXPECT_EQ(e.data[2], 0);
  EXPECT_EQ(e.data[3], INFINITY);
  EXPECT_EQ(e.data[4], 0);
  Array l = apply("math.log", x);
  EXPECT_TRUE(std::isnan(l.data[0]));
  EXPECT_EQ(l.data[1], INFINITY);
  EXPECT_TRUE(std::isnan(l.data[2]));
  EXPECT_EQ(l.data[6], -INFINITY);
  for (const char *op : {"math.tanh", "math.erf"}) {
    Array y = apply(op, x);
    EXPECT_TRUE(std::isnan(y.data[0])) << op;
    EXPECT_NEAR(y.data[1], 1, 1e-6) << op;
    EXPECT_NEAR(y.data[4], -1, 1e-6) << op;
  }
}

} // namespace
} // namespace weft::test
