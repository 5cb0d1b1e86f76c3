//===- BF16Test.cpp - kernels that hold bf16 and compute in float32 ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <bit>
#include <cmath>

#include "KernelRunner.h"

namespace weft::test {
namespace {

/// In texts `$a` is the type of activations: every kernel runs with bf16 and with float32 on the
/// same numbers, and the former must be the latter, rounded.
struct BF16Test : KernelTest {
  static std::string withActivations(std::string text, const std::string &type) {
    for (size_t at = 0; (at = text.find("$a", at)) != std::string::npos;) {
      text.replace(at, 2, type);
    }
    return text;
  }

  /// Operands and results of `call` that are marked as BFloat16 are the activations.
  void check(KernelCall call) {
    KernelCall wide = call;
    call.text = withActivations(call.text, "bf16");
    wide.text = withActivations(wide.text, "f32");
    for (auto *arrays : {&wide.operands, &wide.results}) {
      for (Array &array : *arrays) {
        if (array.kind == Kind::BFloat16) {
          array.kind = Kind::Float;
        }
      }
    }
    Outcome got = run(call), expected = run(wide);
    for (size_t i = 0; i < call.results.size(); ++i) {
      bool isRounded = call.results[i].kind == Kind::BFloat16;
      double greatest = 0;
      for (double value : expected.results[i].data) {
        greatest = std::max(greatest, std::abs(value));
      }
      for (int64_t j = 0; j < got.results[i].size(); ++j) {
        double value = expected.results[i].data[j];
        // Half of the last of 8 bits; sums may be taken in another order.
        double allowed = (isRounded ? 0x1p-8 * std::abs(value) : 0) + 1e-6 * greatest;
        ASSERT_LE(std::abs(got.results[i].data[j] - value), allowed)
            << "result " << i << " element " << j << " of " << call.text;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Wide, BF16Test, testing::Values("f32"));

Array randomBF16(std::vector<int64_t> shape, unsigned salt) {
  Array array = randomArray(std::move(shape), salt);
  array.kind = Kind::BFloat16;
  for (double &element : array.data) {
    element = roundedToBF16(element);
  }
  return array;
}

Array resultBF16(std::vector<int64_t> shape) { return Array(std::move(shape), Kind::BFloat16); }

/// A kernel of two arguments and more, whose names and types are given, around one op.
std::string kernel(const std::string &arguments, const std::string &results,
                   const std::string &body, int count) {
  std::string tied, names;
  for (int i = 0; i < count; ++i) {
    std::string comma = i ? ", " : "";
    tied += comma + "-1";
    names += comma + "%r#" + std::to_string(i);
  }
  return "func.func private @kernel(" + arguments + ") -> (" + results +
         ") attributes {weft.tied = array<i64: " + tied + ">} {\n%r:" + std::to_string(count) +
         " = " + body + "\nreturn " + names + " : " + results + "\n}";
}

std::string castKernel(int64_t count, const char *from, const char *to, const char *op) {
  std::string x = "tensor<" + std::to_string(count) + "x" + from + ">";
  std::string y = "tensor<" + std::to_string(count) + "x" + to + ">";
  return kernel("%x: " + x, y,
                "weft.map ins(%x : " + x + ") maps [affine_map<(i) -> (i)>] -> " + y +
                    " {\n^bb0(%s: " + from + "):\n%t = arith." + op + " %s : " + from + " to " +
                    to + "\nweft.yield %t : " + to + "\n}",
                1);
}

/// As the gradient of what was rounded is; on devices by tiles.
TEST_P(BF16Test, TransposesToFloat32) {
  KernelCall call;
  call.operands = {randomBF16({3, 40, 70}, 1)};
  call.results = {Array({3, 70, 40})};
  call.text = kernel("%x: tensor<3x40x70xbf16>", "tensor<3x70x40xf32>",
                     "weft.contract \"abc->acb\" (%x) : (tensor<3x40x70xbf16>) -> "
                     "tensor<3x70x40xf32>",
                     1);
  Outcome outcome = run(call);
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = 0; b < 40; ++b) {
      for (int64_t c = 0; c < 70; ++c) {
        ASSERT_EQ(outcome.results[0]({a, c, b}), call.operands[0]({a, b, c}));
      }
    }
  }
}

/// Every finite bf16, what lies half way to the next, and what lies just beside that.
TEST_P(BF16Test, RoundsToTheNearestAndToEven) {
  constexpr int64_t codes = 0x7F80;
  KernelCall call;
  call.operands = {Array({codes * 8})};
  call.results = {Array({codes * 8}, Kind::BFloat16)};
  for (int64_t code = 0; code < codes; ++code) {
    auto bits = static_cast<uint32_t>(code) << 16;
    for (uint32_t i = 0; i < 8; ++i) {
      uint32_t lower = std::array{0x0000u, 0x7FFFu, 0x8000u, 0x8001u}[i % 4];
      uint32_t sign = i < 4 ? 0 : 0x80000000;
      call.operands[0].data[code * 8 + i] = std::bit_cast<float>(bits | lower | sign);
    }
  }
  call.text = castKernel(codes * 8, "f32", "bf16", "truncf");
  Outcome outcome = run(call);
  for (int64_t i = 0; i < codes * 8; ++i) {
    ASSERT_EQ(outcome.results[0].data[i], roundedToBF16(call.operands[0].data[i]))
        << call.operands[0].data[i];
  }
}

TEST_P(BF16Test, WidensExactlyAndKeepsNaN) {
  KernelCall call;
  call.operands = {randomBF16({1000}, 1)};
  call.operands[0].data[0] = INFINITY;
  call.operands[0].data[1] = 0x1p-133; // The smallest.
  call.results = {Array({1000})};
  call.text = castKernel(1000, "bf16", "f32", "extf");
  EXPECT_EQ(run(call).results[0].data, call.operands[0].data);
  call.operands = {Array({3})};
  call.operands[0].data = {NAN, -INFINITY, 3e38};
  call.results = {Array({3}, Kind::BFloat16)};
  call.text = castKernel(3, "f32", "bf16", "truncf");
  Outcome outcome = run(call);
  EXPECT_TRUE(std::isnan(outcome.results[0].data[0]));
  EXPECT_EQ(outcome.results[0].data[1], -INFINITY);
}

TEST_P(BF16Test, Contractions) {
  struct Case {
    const char *equation;
    std::vector<int64_t> a, b, result;
  };
  const Case cases[] = {
      {"bsk,nk->bsn", {2, 5, 19}, {11, 19}, {2, 5, 11}},   // Along the sum.
      {"bsn,nk->bsk", {2, 5, 11}, {11, 40}, {2, 5, 40}},   // Along the result.
      {"bsn,bsk->nk", {2, 50, 11}, {2, 50, 19}, {11, 19}}, // A weight's gradient.
      {"ab,ab->b", {70, 9}, {70, 9}, {9}},                 // Without reuse.
      {"a,b->ab", {5}, {7}, {5, 7}},
  };
  for (const Case &one : cases) {
    for (bool isWide : {false, true}) {
      KernelCall call;
      call.operands = {randomBF16(one.a, 1), randomBF16(one.b, 2)};
      call.results = {isWide ? Array(one.result) : resultBF16(one.result)};
      std::string a = call.operands[0].type(""), b = call.operands[1].type("");
      a.replace(a.find("bf16"), 4, "$a");
      b.replace(b.find("bf16"), 4, "$a");
      std::string y = Array(one.result).type(isWide ? "f32" : "$a");
      call.text = kernel("%x: " + a + ", %w: " + b, y,
                         std::string("weft.contract \"") + one.equation + "\"(%x, %w) : (" + a +
                             ", " + b + ") -> " + y,
                         1);
      check(call);
    }
  }
}

TEST_P(BF16Test, Norms) {
  const std::string x = "tensor<6x33x$a>", v = "tensor<33xf32>";
  KernelCall call;
  call.operands = {randomBF16({6, 33}, 1), randomArray({33}, 2)};
  call.results = {resultBF16({6, 33})};
  call.text =
      kernel("%x: " + x + ", %s: " + v, x,
             "weft.norm rms %x scale(%s : " + v + ") epsilon = 1.0e-5 : " + x + " -> " + x, 1);
  check(call);
  call.operands.push_back(randomBF16({6, 33}, 3));
  call.results = {resultBF16({6, 33}), Array({33}), Array({33})};
  call.text = kernel("%x: " + x + ", %s: " + v + ", %g: " + x, x + ", " + v + ", " + v,
                     "weft.norm_grad layer %x scale(%s : " + v + ") gradient(%g : " + x +
                         ") epsilon = 1.0e-5 : " + x + " -> " + x + ", " + v + ", " + v,
                     3);
  check(call);
}

/// More keys than a tile, so that the gradient of a query is a sum over tiles.
TEST_P(BF16Test, Attention) {
  const std::string q = "tensor<1x150x2x2x9x$a>", k = "tensor<1x150x2x9x$a>",
                    l = "tensor<1x2x2x150xf32>", wide = "tensor<1x150x2x2x9xf32>",
                    wideKey = "tensor<1x150x2x9xf32>";
  KernelCall call;
  call.operands = {randomBF16({1, 150, 2, 2, 9}, 1), randomBF16({1, 150, 2, 9}, 2),
                   randomBF16({1, 150, 2, 9}, 3)};
  call.results = {resultBF16({1, 150, 2, 2, 9}), Array({1, 2, 2, 150})};
  std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + k, types = q + ", " + k + ", " + k;
  call.text = kernel(
      arguments, q + ", " + l,
      "weft.attention(%q, %k, %v) scale = 0.5 dropout = 0.0 : " + types + " -> " + q + ", " + l, 2);
  check(call);
  // The derivative takes any output and lse that fit each other.
  KernelCall forward = call;
  forward.text = withActivations(forward.text, "bf16");
  Outcome outcome = run(forward);
  call.operands.push_back(outcome.results[0]);
  call.operands.push_back(outcome.results[1]);
  call.operands.push_back(randomBF16({1, 150, 2, 2, 9}, 4));
  call.results = {Array({1, 150, 2, 2, 9}), Array({1, 150, 2, 9}), Array({1, 150, 2, 9})};
  arguments += ", %o: " + q + ", %l: " + l + ", %g: " + q;
  types += ", " + q + ", " + l + ", " + q + " -> " + wide + ", " + wideKey + ", " + wideKey;
  call.text = kernel(arguments, wide + ", " + wideKey + ", " + wideKey,
                     "weft.attention_grad(%q, %k, %v) output(%o, %l) gradient(%g) scale = 0.5 "
                     "dropout = 0.0 : " +
                         types,
                     3);
  check(call);
}

TEST_P(BF16Test, CrossEntropy) {
  const std::string x = "tensor<5x40x$a>", t = "tensor<5xi32>", v = "tensor<5xf32>";
  KernelCall call;
  call.operands = {randomBF16({5, 40}, 1), randomIds({5}, 0, 39, 2)};
  call.results = {Array({5}), Array({5})};
  call.text = kernel("%x: " + x + ", %t: " + t, v + ", " + v,
                     "weft.cross_entropy %x[%t] : " + x + "[" + t + "] -> " + v + ", " + v, 2);
  check(call);
  // A likely target: rounded before 1 is taken from it, its gradient would be nothing.
  call.operands[0].data[static_cast<int64_t>(call.operands[1].data[0])] = 9;
  call.operands.push_back(run([&] {
                            KernelCall wide = call;
                            wide.text = withActivations(wide.text, "bf16");
                            return wide;
                          }())
                              .results[0]);
  Array ones({5}), minus({5});
  ones.data.assign(5, 1);
  minus.data.assign(5, -1);
  call.operands.push_back(ones);
  call.operands.push_back(minus);
  call.results = {resultBF16({5, 40})};
  call.text = kernel("%x: " + x + ", %t: " + t + ", %l: " + v + ", %a: " + v + ", %b: " + v, x,
                     "weft.cross_entropy_grad %x[%t] lse(%l) gradient(%a, %b) : " + x + "[" + t +
                         "], " + v + ", " + v + ", " + v + " -> " + x,
                     1);
  check(call);
}

TEST_P(BF16Test, RotaryDropoutAndEmbedding) {
  const std::string x = "tensor<2x3x10x$a>", table = "tensor<2x3x4xf32>";
  KernelCall call;
  call.operands = {randomBF16({2, 3, 10}, 1), randomArray({2, 3, 4}, 2)};
  call.results = {resultBF16({2, 3, 10})};
  call.text = kernel("%x: " + x + ", %t: " + table, x,
                     "weft.rotary %x table(%t : " + table + ") : " + x + " -> " + x, 1);
  check(call);
  call.operands = {randomBF16({2, 3, 10}, 1), counter(7)};
  call.immediates = {3};
  call.text = kernel("%x: " + x + ", %s: tensor<i64>, %l: index", x,
                     "weft.dropout %x rate = 0.5 site = 1 key(%s, %s, %l : tensor<i64>, "
                     "tensor<i64>) : " +
                         x + " -> " + x,
                     1);
  check(call);
  call.immediates.clear();
  call.operands = {randomBF16({2, 3, 10}, 1), randomIds({2, 3}, 0, 1, 2)};
  call.results = {Array({2, 10})};
  call.text =
      kernel("%x: " + x + ", %i: tensor<2x3xi32>", "tensor<2x10xf32>",
             "weft.embedding_grad %x[%i] : " + x + "[tensor<2x3xi32>] -> tensor<2x10xf32>", 1);
  check(call);
}

} // namespace
} // namespace weft::test
