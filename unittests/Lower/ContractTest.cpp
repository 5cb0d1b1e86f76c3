//===- ContractTest.cpp - sums of products -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include <cmath>

namespace weft::test {
namespace {

/// The einsum of `operands` by its definition: over all values of all letters.
Array einsum(const std::string &equation, const std::vector<Array> &operands) {
  std::vector<std::string> terms(1);
  for (size_t i = 0; i < equation.size(); ++i) {
    if (equation[i] == ',' || equation[i] == '-') {
      terms.emplace_back();
    } else if (equation[i] != '>') {
      terms.back() += equation[i];
    }
  }
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t dim = 0; dim < terms[i].size(); ++dim) {
      sizes[terms[i][dim]] = operands[i].shape[dim];
    }
  }
  std::string letters;
  std::vector<int64_t> space, resultShape;
  for (auto [letter, size] : sizes) {
    letters += letter;
    space.push_back(size);
  }
  for (char letter : terms.back()) {
    resultShape.push_back(sizes[letter]);
  }
  Array result(resultShape);
  forEach(space, [&](const std::vector<int64_t> &values) {
    auto place = [&](const std::string &term) {
      int64_t at = 0;
      for (char letter : term) {
        at = at * sizes[letter] + values[letters.find(letter)];
      }
      return at;
    };
    double product = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      product *= operands[i].data[place(terms[i])];
    }
    result.data[place(terms.back())] += product;
  });
  return result;
}

struct ContractTest : KernelTest {
  void check(const std::string &equation, std::vector<std::vector<int64_t>> shapes) {
    SCOPED_TRACE(equation);
    KernelCall call;
    std::string arguments, names, types;
    for (size_t i = 0; i < shapes.size(); ++i) {
      call.operands.push_back(randomArray(shapes[i], i + 1));
      std::string comma = i ? ", " : "", name = "%x" + std::to_string(i);
      std::string type = call.operands.back().type("$f");
      arguments += comma + name + ": " + type;
      names += comma + name;
      types += comma + type;
    }
    Array expected = einsum(equation, call.operands);
    std::string result = expected.type("$f");
    call.results = {Array(expected.shape)};
    call.text = "func.func private @kernel(" + arguments + ") -> " + result +
                " attributes {weft.tied = array<i64: -1>} {\n%y = weft.contract \"" + equation +
                "\" (" + names + ") : (" + types + ") -> " + result + "\nreturn %y : " + result +
                "\n}";
    expectClose(run(call).results[0], expected, 4);
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(ContractTest);

TEST_P(ContractTest, Products) {
  check("bsk,nk->bsn", {{2, 5, 19}, {11, 19}});
  check("bsk,nk->bsn", {{2, 8, 64}, {32, 64}});
  check("bsn,nk->bsk", {{2, 5, 11}, {11, 19}});
  check("bsn,bsk->nk", {{2, 5, 11}, {2, 5, 19}});
  check("bsn,bsk->nk", {{2, 8, 32}, {2, 8, 16}});
  check("bsk,nk->bsn", {{1, 1, 1}, {1, 1}});
  check("bsk,nk->bsn", {{1, 1, 7}, {3, 7}});
}

TEST_P(ContractTest, HeadsInSeveralDimensions) {
  check("bsi,kghi->bskgh", {{2, 3, 10}, {2, 3, 5, 10}});
  check("bskgh,ikgh->bsi", {{2, 3, 2, 3, 5}, {10, 2, 3, 5}});
  check("bskgh,bsi->kghi", {{2, 3, 2, 3, 5}, {2, 3, 10}});
}

TEST_P(ContractTest, Sums) {
  check("bsn->n", {{3, 5, 17}});
  check("bsn->bs", {{3, 5, 17}});
  check("bsn->s", {{3, 5, 17}});
  check("ab->", {{7, 9}});
  check("ab,ab->", {{7, 9}, {7, 9}});
  check("ab,ab->b", {{7, 9}, {7, 9}});
  check("ab->b", {{5, 150}});
  check("abc,ac->c", {{3, 4, 70}, {3, 70}});
  check("ab,ab->a", {{7, 9}, {7, 9}});
  check("a->", {{20011}});
  // By blocks of a device: rows, few and many rows of columns.
  check("ab->a", {{3, 1000}});
  check("ab->b", {{600, 33}});
  check("ab->b", {{600, 96}});
  check("ab->b", {{1300, 33}});
  check("ab->b", {{1300, 96}});
  check("ab->a", {{48, 64}});
  check("->", {{}});
}

TEST_P(ContractTest, WithoutReuse) {
  check("a,b->ab", {{5}, {7}});
  check("ab,b->a", {{6, 9}, {9}});
  check("ab,a->b", {{6, 9}, {6}});
  check("b,ab->ab", {{9}, {6, 9}});
  check("ka,bk->ab", {{6, 9}, {5, 6}});
  check("bij,bj->bi", {{3, 5, 7}, {3, 7}});
}

/// By tiles of a device's block, whole and not.
TEST_P(ContractTest, Transposes) {
  check("ab->ba", {{64, 128}});
  check("ab->ba", {{70, 131}});
  check("abc->cab", {{3, 20, 72}});
  check("ab->ba", {{7, 9}});
}

/// Summed dimensions lie between kept ones, or the other way round.
TEST_P(ContractTest, SumsOfAlternateDimensions) {
  check("abc->ac", {{3, 40, 33}});
  check("abc->b", {{3, 5, 70}});
  check("abc->ac", {{2, 1100, 8}});
}

TEST_P(ContractTest, Batched) {
  check("bij,bjk->bik", {{3, 5, 7}, {3, 7, 18}});
  check("bik,bjk->bij", {{3, 5, 19}, {3, 6, 19}});
}

struct TF32Test : KernelTest {};
INSTANTIATE_TEST_SUITE_P(Wide, TF32Test, testing::Values("f32"));

/// To 10 bits of fraction, the nearest, at a tie away from zero.
double roundedToTF32(double value) {
  int exponent;
  double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(fraction * 2048), exponent - 11);
}

/// Operands have few bits, so that products and their sums are exact.
TEST_P(TF32Test, RoundsWhatItMultiplies) {
  struct Case {
    const char *equation, *types;
    std::vector<int64_t> a, b, result;
  };
  const Case cases[] = {
      {"mk,nk->mn",
       "(tensor<5x19xf32>, tensor<11x19xf32>) -> tensor<5x11xf32>",
       {5, 19},
       {11, 19},
       {5, 11}}, // Along the sum.
      {"mk,kn->mn",
       "(tensor<5x11xf32>, tensor<11x40xf32>) -> tensor<5x40xf32>",
       {5, 11},
       {11, 40},
       {5, 40}}, // Along the result.
      {"ab,ab->b", "(tensor<70x9xf32>, tensor<70x9xf32>) -> tensor<9xf32>", {70, 9}, {70, 9}, {9}},
      {"a,b->ab", "(tensor<5xf32>, tensor<7xf32>) -> tensor<5x7xf32>", {5}, {7}, {5, 7}},
  };
  for (const Case &one : cases) {
    KernelCall call;
    call.operands = {randomArray(one.a, 1), randomArray(one.b, 2)};
    std::vector<Array> operands = call.operands;
    for (Array &operand : operands) {
      for (double &element : operand.data) {
        element = roundedToTF32(element);
      }
    }
    Array expected = einsum(one.equation, operands);
    call.results = {Array(expected.shape)};
    std::string result = expected.type("f32");
    call.text = "func.func private @kernel(%x: " + call.operands[0].type("f32") +
                ", %w: " + call.operands[1].type("f32") + ") -> " + result +
                " attributes {weft.tied = array<i64: -1>} {\n%y = weft.contract \"" + one.equation +
                "\" (%x, %w) tf32 : " + one.types + "\nreturn %y : " + result + "\n}";
    expectClose(run(call).results[0], expected);
    EXPECT_NE(einsum(one.equation, call.operands).data, expected.data);
  }
}

TEST_P(TF32Test, TiesGoAwayFromZeroAndWhatIsNotFiniteStays) {
  KernelCall call;
  call.operands = {Array({7}), Array({1})};
  call.operands[0].data = {
      1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x1p-12, 1 + 0x1.8p-11, -INFINITY, NAN, 0};
  call.operands[1].data = {1};
  call.results = {Array({7, 1})};
  call.text =
      "func.func private @kernel(%x: tensor<7xf32>, %w: tensor<1xf32>) -> tensor<7x1xf32> "
      "attributes {weft.tied = array<i64: -1>} {\n%y = weft.contract \"a,b->ab\" (%x, %w) tf32 "
      ": (tensor<7xf32>, tensor<1xf32>) -> tensor<7x1xf32>\nreturn %y : tensor<7x1xf32>\n}";
  std::vector<double> got = run(call).results[0].data;
  EXPECT_EQ(got[0], 1 + 0x1p-10);
  EXPECT_EQ(got[1], -1 - 0x1p-10);
  EXPECT_EQ(got[2], 1);
  EXPECT_EQ(got[3], 1 + 0x1p-10);
  EXPECT_EQ(got[4], -INFINITY);
  EXPECT_TRUE(std::isnan(got[5]));
  EXPECT_EQ(got[6], 0);
}

} // namespace
} // namespace weft::test
