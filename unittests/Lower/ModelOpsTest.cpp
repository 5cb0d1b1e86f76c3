//===- ModelOpsTest.cpp - embeddings, losses and rotations ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>

#include "KernelRunner.h"

namespace weft::test {
namespace {

using EmbeddingTest = KernelTest;
WEFT_INSTANTIATE_FOR_FLOATS(EmbeddingTest);

TEST_P(EmbeddingTest, TakesRowsOfThisShard) {
  KernelCall call;
  call.operands = {randomArray({10, 19}, 1), randomIds({3, 4}, 0, 19, 2)};
  call.immediates = {5};
  call.results = {Array({3, 4, 19})};
  call.text = R"(
func.func private @kernel(%offset: index, %t: tensor<10x19x$f>, %i: tensor<3x4xi32>)
    -> tensor<3x4x19x$f> attributes {weft.tied = array<i64: -1>} {
  %y = weft.embedding %t[%i] offset %offset
      : tensor<10x19x$f>[tensor<3x4xi32>] -> tensor<3x4x19x$f>
  return %y : tensor<3x4x19x$f>
})";
  Array expected({3, 4, 19});
  for (int64_t i = 0; i < 12; ++i) {
    int64_t row = static_cast<int64_t>(call.operands[1].data[i]) - 5;
    for (int64_t h = 0; h < 19; ++h) {
      expected.data[i * 19 + h] = row >= 0 && row < 10 ? call.operands[0]({row, h}) : 0;
    }
  }
  expectClose(run(call).results[0], expected);
}

/// A warp of a device takes a row.
TEST_P(EmbeddingTest, TakesManyRows) {
  KernelCall call;
  call.operands = {randomArray({10, 132}, 1), randomIds({2200}, 0, 19, 2)};
  call.results = {Array({2200, 132})};
  call.text = R"(
func.func private @kernel(%t: tensor<10x132x$f>, %i: tensor<2200xi32>) -> tensor<2200x132x$f>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.embedding %t[%i] : tensor<10x132x$f>[tensor<2200xi32>] -> tensor<2200x132x$f>
  return %y : tensor<2200x132x$f>
})";
  Array expected({2200, 132});
  for (int64_t i = 0; i < 2200; ++i) {
    auto row = static_cast<int64_t>(call.operands[1].data[i]);
    for (int64_t h = 0; h < 132; ++h) {
      expected({i, h}) = row < 10 ? call.operands[0]({row, h}) : 0;
    }
  }
  expectClose(run(call).results[0], expected);
}

TEST_P(EmbeddingTest, AddsGradientsOfRepeatedRows) {
  KernelCall call;
  call.operands = {randomIds({2, 20}, 0, 9, 2), randomArray({2, 20, 7}, 1)};
  call.immediates = {3};
  call.results = {Array({4, 7})};
  call.text = R"(
func.func private @kernel(%offset: index, %i: tensor<2x20xi32>, %g: tensor<2x20x7x$f>)
    -> tensor<4x7x$f> attributes {weft.tied = array<i64: -1>} {
  %y = weft.embedding_grad %g[%i] offset %offset
      : tensor<2x20x7x$f>[tensor<2x20xi32>] -> tensor<4x7x$f>
  return %y : tensor<4x7x$f>
})";
  Array expected({4, 7});
  for (int64_t i = 0; i < 40; ++i) {
    int64_t row = static_cast<int64_t>(call.operands[0].data[i]) - 3;
    for (int64_t h = 0; h < 7 && row >= 0 && row < 4; ++h) {
      expected({row, h}) += call.operands[1].data[i * 7 + h];
    }
  }
  expectClose(run(call).results[0], expected);
}

struct ManyTokensEmbeddingTest : KernelTest {
  /// The gradient of a table of which `rowOf(token)` are taken, or none where that is no row of it.
  void check(int64_t tokens, int64_t rows, const std::function<int64_t(int64_t)> &rowOf,
             int64_t features = 5) {
    KernelCall call;
    call.operands = {Array({tokens}, Kind::Int32), randomArray({tokens, features}, 1)};
    Array expected({rows, features});
    for (int64_t i = 0; i < tokens; ++i) {
      int64_t row = rowOf(i);
      call.operands[0].data[i] = double(row);
      for (int64_t h = 0; h < features && row >= 0 && row < rows; ++h) {
        expected({row, h}) += call.operands[1]({i, h});
      }
    }
    call.results = {Array(expected.shape)};
    std::string i = call.operands[0].type("$f"), g = call.operands[1].type("$f");
    std::string table = expected.type("$f");
    call.text =
        "func.func private @kernel(%i: " + i + ", %g: " + g + ") -> " + table +
        " attributes {weft.tied = array<i64: -1>} {\n%y = weft.embedding_grad %g[%i] : " + g + "[" +
        i + "] -> " + table + "\nreturn %y : " + table + "\n}";
    expectClose(run(call).results[0], expected, 32);
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(ManyTokensEmbeddingTest);

/// Rows of ranges, and of so many tokens that they are summed in parts.
TEST_P(ManyTokensEmbeddingTest, AddsGradientsOfRowsThatMostTokensName) {
  Array ids = randomIds({600}, -2, 701, 2);
  check(600, 700, [&](int64_t i) {
    return i % 3 == 0 ? int64_t(ids.data[i]) : i % 3 == 1 ? 331 : 699;
  });
}

/// On devices, ranges are cut into chunks of 256 places: one that begins where a chunk does, and
/// some that begin or end within one.
TEST_P(ManyTokensEmbeddingTest, AddsGradientsOfRangesOfManyTokens) {
  check(1400, 700, [](int64_t) { return 331; });
  check(1300, 1100, [](int64_t i) { return i < 10 ? 2 : i % 7 == 0 ? 1099 : 5 - i % 3; });
  check(1536, 1025, [](int64_t i) { return i < 512 ? 0 : i % 2 ? 3 : 1024; });
  if (!isF64()) { // More chunks than are added up together.
    check(4500, 513, [](int64_t i) { return i < 100 ? 0 : i % 5 == 0 ? 2 : 3; });
  }
}

TEST_P(ManyTokensEmbeddingTest, AddsNothingWithoutTokens) {
  check(0, 700, [](int64_t) { return 0; });
}

/// Threads of a device sum up some columns of a row.
TEST_P(ManyTokensEmbeddingTest, AddsGradientsOfManyFeatures) {
  check(200, 30, [](int64_t i) { return i < 150 ? 7 : i % 30; }, 256);
}

/// A range for each row.
TEST_P(ManyTokensEmbeddingTest, AddsGradientsOfFewRows) {
  check(1100, 20, [](int64_t i) { return i % 50 == 0 ? i % 20 : 7; });
  check(600, 1, [](int64_t) { return 0; });
}

struct CrossEntropyTest : KernelTest {
  void check(int64_t columns, double magnitude);
};
WEFT_INSTANTIATE_FOR_FLOATS(CrossEntropyTest);

void CrossEntropyTest::check(int64_t columns, double magnitude) {
  constexpr int64_t kOffset = 4;
  Array logits = randomArray({2, 3, columns}, 1), ids = randomIds({2, 3}, 0, columns + 8, 2);
  Array lseGradient = randomArray({2, 3}, 3), pickedGradient = randomArray({2, 3}, 4);
  Array lse({2, 3}), picked({2, 3}), gradient(logits.shape);
  for (double &logit : logits.data) {
    logit = rounded(logit * magnitude);
  }
  for (int64_t i = 0; i < 6; ++i) {
    const double *row = &logits.data[i * columns];
    double greatest = *std::max_element(row, row + columns), total = 0;
    for (int64_t v = 0; v < columns; ++v) {
      total += std::exp(row[v] - greatest);
    }
    lse.data[i] = rounded(greatest + std::log(total));
    int64_t target = static_cast<int64_t>(ids.data[i]) - kOffset;
    bool isHere = target >= 0 && target < columns;
    picked.data[i] = isHere ? row[target] : 0;
    for (int64_t v = 0; v < columns; ++v) {
      gradient.data[i * columns + v] = std::exp(row[v] - lse.data[i]) * lseGradient.data[i] +
                                       (isHere && v == target ? pickedGradient.data[i] : 0);
    }
  }
  std::string t = logits.type("$f"), r = lse.type("$f");
  KernelCall forward;
  forward.operands = {logits, ids};
  forward.immediates = {kOffset};
  forward.results = {Array({2, 3}), Array({2, 3})};
  forward.text = "func.func private @kernel(%o: index, %x: " + t + ", %t: tensor<2x3xi32>) -> (" +
                 r + ", " + r + ") attributes {weft.tied = array<i64: -1, -1>} {\n" +
                 "%l, %p = weft.cross_entropy %x[%t] offset %o : " + t + "[tensor<2x3xi32>] -> " +
                 r + ", " + r + "\nreturn %l, %p : " + r + ", " + r + "\n}";
  Outcome outcome = run(forward);
  expectClose(outcome.results[0], lse);
  expectClose(outcome.results[1], picked);

  KernelCall backward;
  backward.operands = {logits, ids, lse, lseGradient, pickedGradient};
  backward.immediates = {kOffset};
  backward.text = "func.func private @kernel(%o: index, %x: " + t +
                  ", %t: tensor<2x3xi32>, %l: " + r + ", %lg: " + r + ", %pg: " + r + ") -> " + t +
                  " attributes {weft.tied = array<i64: 1>} {\n%y = weft.cross_entropy_grad "
                  "%x[%t] lse(%l) gradient(%lg, %pg) offset %o : " +
                  t + "[tensor<2x3xi32>], " + r + ", " + r + ", " + r + " -> " + t +
                  "\nreturn %y : " + t + "\n}";
  expectClose(run(backward).operands[0], gradient, 1 + magnitude / 4);
}

TEST_P(CrossEntropyTest, OddVocabulary) { check(37, 3); }
TEST_P(CrossEntropyTest, LargeLogits) { check(128, 1000); }
TEST_P(CrossEntropyTest, RowsOfBlocks) {
  for (int64_t columns : {31, 33, 255, 1000, 1023, 5000}) {
    check(columns, 3);
  }
}
TEST_P(CrossEntropyTest, OneToken) { check(1, 1); }

/// As on the host, which other tests look at: columns that do not count are anywhere in a chunk.
TEST_P(CrossEntropyTest, ColumnsThatDoNotCount) {
  for (int64_t offset : {0, 880, 2000}) {
    KernelCall call;
    call.operands = {randomArray({3, 1024}, 1), randomIds({3}, 0, 1800, 2)};
    call.immediates = {offset};
    call.results = {Array({3}), Array({3})};
    call.text = R"(
func.func private @kernel(%o: index, %x: tensor<3x1024x$f>, %t: tensor<3xi32>)
    -> (tensor<3x$f>, tensor<3x$f>) attributes {weft.tied = array<i64: -1, -1>} {
  %l, %p = weft.cross_entropy %x[%t] offset %o of [1801]
      : tensor<3x1024x$f>[tensor<3xi32>] -> tensor<3x$f>, tensor<3x$f>
  return %l, %p : tensor<3x$f>, tensor<3x$f>
})";
    run(call);
    call.operands.insert(call.operands.end(),
                         {randomArray({3}, 3), randomArray({3}, 4), randomArray({3}, 5)});
    call.results = {Array({3, 1024})};
    call.text = R"(
func.func private @kernel(%o: index, %x: tensor<3x1024x$f>, %t: tensor<3xi32>, %l: tensor<3x$f>,
                          %lg: tensor<3x$f>, %pg: tensor<3x$f>) -> tensor<3x1024x$f>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.cross_entropy_grad %x[%t] lse(%l) gradient(%lg, %pg) offset %o of [1801]
      : tensor<3x1024x$f>[tensor<3xi32>], tensor<3x$f>, tensor<3x$f>, tensor<3x$f>
      -> tensor<3x1024x$f>
  return %y : tensor<3x1024x$f>
})";
    run(call);
  }
}

TEST_P(CrossEntropyTest, PassesOnWhatIsNotANumber) {
  KernelCall call;
  call.operands = {randomArray({2, 40}, 1), randomIds({2}, 0, 39, 2)};
  call.operands[0]({1, 17}) = NAN;
  call.results = {Array({2}), Array({2})};
  call.text = R"(
func.func private @kernel(%x: tensor<2x40x$f>, %t: tensor<2xi32>) -> (tensor<2x$f>, tensor<2x$f>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %l, %p = weft.cross_entropy %x[%t]
      : tensor<2x40x$f>[tensor<2xi32>] -> tensor<2x$f>, tensor<2x$f>
  return %l, %p : tensor<2x$f>, tensor<2x$f>
})";
  Outcome outcome = run(call);
  EXPECT_TRUE(std::isfinite(outcome.results[0].data[0]));
  EXPECT_TRUE(std::isnan(outcome.results[0].data[1]));
}

struct RotaryTest : KernelTest {
  void check(bool inverse, bool inPlace);
};
WEFT_INSTANTIATE_FOR_FLOATS(RotaryTest);

void RotaryTest::check(bool inverse, bool inPlace) {
  KernelCall call;
  call.operands = {randomArray({2, 5, 3, 11}, 1), randomArray({2, 5, 4}, 2)};
  std::string x = call.operands[0].type("$f"), t = call.operands[1].type("$f");
  call.text = "func.func private @kernel(%x: " + x + ", %t: " + t + ") -> " + x +
              " attributes {weft.tied = array<i64: " + (inPlace ? "0" : "-1") +
              ">} {\n%y = weft.rotary " + (inverse ? "inverse " : "") + "%x table(%t : " + t +
              ") : " + x + " -> " + x + "\nreturn %y : " + x + "\n}";
  Array expected = call.operands[0];
  const Array &before = call.operands[0], &table = call.operands[1];
  forEach({2, 5, 3, 4}, [&](const std::vector<int64_t> &at) {
    int64_t b = at[0], p = at[1], h = at[2], i = at[3];
    double c = table({0, p, i}), s = inverse ? -table({1, p, i}) : table({1, p, i});
    double first = before({b, p, h, i}), second = before({b, p, h, i + 4});
    expected({b, p, h, i}) = first * c - second * s;
    expected({b, p, h, i + 4}) = second * c + first * s;
  });
  if (!inPlace) {
    call.results = {Array(expected.shape)};
  }
  Outcome outcome = run(call);
  expectClose(inPlace ? outcome.operands[0] : outcome.results[0], expected);
}

TEST_P(RotaryTest, Rotates) {
  check(false, false);
  check(true, false);
  check(false, true);
}

TEST_P(RotaryTest, MakesTables) {
  KernelCall call;
  call.immediates = {1000};
  call.results = {Array({2, 50, 3})};
  call.text = R"(
func.func private @kernel(%offset: index) -> tensor<2x50x3x$f>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.rotary_table [1.0, 0.31, 0.001] offset %offset : tensor<2x50x3x$f>
  return %y : tensor<2x50x3x$f>
})";
  Array expected({2, 50, 3});
  const double frequencies[] = {1.0, 0.31, 0.001};
  for (int64_t p = 0; p < 50; ++p) {
    for (int64_t i = 0; i < 3; ++i) {
      expected({0, p, i}) = rounded(std::cos(static_cast<double>(p + 1000) * frequencies[i]));
      expected({1, p, i}) = rounded(std::sin(static_cast<double>(p + 1000) * frequencies[i]));
    }
  }
  expectClose(run(call).results[0], expected, 0.01);
}

} // namespace
} // namespace weft::test
