//===- RandomTest.cpp - dropout and initial values -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "Numerics.h"

namespace weft::test {
namespace {

using RandomTest = KernelTest;
WEFT_INSTANTIATE_FOR_FLOATS(RandomTest);

TEST(Numerics, HasTheDocumentedBits) {
  EXPECT_EQ(bits(1, 2, 0), 0xD84075A38C2A7917u);
  EXPECT_EQ(bits(1, 2, 1), 0x65844C5D623DB2DAu);
}

TEST_P(RandomTest, DropsByPlaceInTheWhole) {
  KernelCall call;
  call.operands = {randomArray({2, 5, 9}, 1), counter(11), counter(3)};
  call.immediates = {4, 2, 0, 9};
  call.results = {Array({2, 5, 9})};
  call.text = R"(
func.func private @kernel(%layer: index, %a: index, %b: index, %c: index, %x: tensor<2x5x9x$f>,
    %seed: tensor<i64>, %step: tensor<i64>) -> tensor<2x5x9x$f>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.dropout %x rate = 0.3 site = 2 key(%seed, %step, %layer : tensor<i64>, tensor<i64>)
      offsets(%a, %b, %c) of [6, 5, 18] : tensor<2x5x9x$f> -> tensor<2x5x9x$f>
  return %y : tensor<2x5x9x$f>
})";
  Array expected({2, 5, 9});
  forEach(expected.shape, [&](const std::vector<int64_t> &at) {
    int64_t i = ((at[0] + 2) * 5 + at[1]) * 18 + at[2] + 9;
    bool isKept = uniform(11, dropoutStream(3, 4, 2), i) >= 0.3;
    expected({at[0], at[1], at[2]}) =
        isKept ? call.operands[0]({at[0], at[1], at[2]}) / (1 - 0.3) : 0;
  });
  expectClose(run(call).results[0], expected);
}

TEST_P(RandomTest, DropsInPlaceWithoutOffsets) {
  KernelCall call;
  call.operands = {randomArray({101}, 1), counter(-5), counter(0)};
  call.immediates = {0};
  call.text = R"(
func.func private @kernel(%layer: index, %x: tensor<101x$f>, %seed: tensor<i64>,
    %step: tensor<i64>) -> tensor<101x$f> attributes {weft.tied = array<i64: 1>} {
  %y = weft.dropout %x rate = 0.5 site = 1 key(%seed, %step, %layer : tensor<i64>, tensor<i64>)
      : tensor<101x$f> -> tensor<101x$f>
  return %y : tensor<101x$f>
})";
  Array expected({101});
  for (int64_t i = 0; i < 101; ++i) {
    bool isKept = uniform(static_cast<uint64_t>(-5), dropoutStream(0, 0, 1), i) >= 0.5;
    expected.data[i] = isKept ? 2 * call.operands[0].data[i] : 0;
  }
  expectClose(run(call).operands[0], expected);
}

TEST_P(RandomTest, FillsNormally) {
  KernelCall call;
  call.operands = {counter(42)};
  call.immediates = {-0x1234567812345678, 3, 7};
  call.results = {Array({4, 33})};
  call.text = R"(
func.func private @kernel(%stream: index, %a: index, %b: index, %seed: tensor<i64>)
    -> tensor<4x33x$f> attributes {weft.tied = array<i64: -1>} {
  %y = weft.fill normal 0.02 seed(%seed : tensor<i64>) stream(%stream) offsets(%a, %b) of [8, 70]
      : tensor<4x33x$f>
  return %y : tensor<4x33x$f>
})";
  Array expected({4, 33});
  forEach(expected.shape, [&](const std::vector<int64_t> &at) {
    int64_t i = (at[0] + 3) * 70 + at[1] + 7;
    expected({at[0], at[1]}) =
        rounded(0.02 * normal(42, static_cast<uint64_t>(-0x1234567812345678), i));
  });
  expectClose(run(call).results[0], expected, 0.1);
}

TEST_P(RandomTest, FillsConstantly) {
  KernelCall call;
  call.results = {Array({3, 5}), Array({})};
  call.text = R"(
func.func private @kernel() -> (tensor<3x5x$f>, tensor<$f>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %y = weft.fill constant 1.0 : tensor<3x5x$f>
  %z = weft.fill constant -2.5 : tensor<$f>
  return %y, %z : tensor<3x5x$f>, tensor<$f>
})";
  Outcome outcome = run(call);
  Array ones({3, 5}), single({});
  ones.data.assign(15, 1);
  single.data[0] = -2.5;
  expectClose(outcome.results[0], ones);
  expectClose(outcome.results[1], single);
}

} // namespace
} // namespace weft::test
