//===- MovementTest.cpp - parts, counting, and places on the mesh --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

namespace weft::test {
namespace {

using MovementTest = KernelTest;
WEFT_INSTANTIATE_FOR_FLOATS(MovementTest);

/// The second of four axes, so that coordinates[1] counts.
constexpr char kMesh[] = R"(#weft.mesh<"pp"=2, "dp"=3, "cp"=2, "tp"=2>)";

TEST_P(MovementTest, SlicesAtThePlaceOnTheMesh) {
  KernelCall call;
  call.operands = {randomArray({2, 15, 3}, 1)};
  call.results = {Array({2, 5, 3})};
  call.coordinates = {9, 2, 9, 9};
  call.text = std::string("func.func private @kernel(%x: tensor<2x15x3x$f>) -> tensor<2x5x3x$f> "
                          "attributes {weft.tied = array<i64: -1>} {\n"
                          "%i = weft.axis_index \"dp\" of ") +
              kMesh + "\n%y = weft.slice %x dim 1 over [\"dp\"] of " + kMesh +
              " index %i : tensor<2x15x3x$f> -> tensor<2x5x3x$f>\n"
              "return %y : tensor<2x5x3x$f>\n}";
  Array expected({2, 5, 3});
  forEach(expected.shape, [&](const std::vector<int64_t> &at) {
    expected({at[0], at[1], at[2]}) = call.operands[0]({at[0], at[1] + 10, at[2]});
  });
  expectClose(run(call).results[0], expected);
}

TEST_P(MovementTest, KeepsPartialValuesOnTheFirstRank) {
  for (int64_t rank : {0, 1}) {
    KernelCall call;
    call.operands = {randomArray({4, 3}, 1)};
    call.results = {Array({4, 3})};
    call.immediates = {rank};
    call.text = std::string("func.func private @kernel(%i: index, %x: tensor<4x3x$f>) -> "
                            "tensor<4x3x$f> attributes {weft.tied = array<i64: -1>} {\n"
                            "%y = weft.partial %x over [\"tp\"] of ") +
                kMesh + " index %i : tensor<4x3x$f> -> tensor<4x3x$f>\n" +
                "return %y : tensor<4x3x$f>\n}";
    expectClose(run(call).results[0], rank == 0 ? call.operands[0] : Array({4, 3}));
  }
}

TEST_P(MovementTest, Counts) {
  KernelCall call;
  call.immediates = {3};
  call.results = {Array({21}, Kind::Int32)};
  call.text = R"(
func.func private @kernel(%i: index) -> tensor<21xi32> attributes {weft.tied = array<i64: -1>} {
  %c = arith.constant 7 : index
  %offset = arith.muli %i, %c : index
  %y = weft.iota offset %offset : tensor<21xi32>
  return %y : tensor<21xi32>
})";
  Array expected({21});
  for (int64_t i = 0; i < 21; ++i) {
    expected.data[i] = static_cast<double>(21 + i);
  }
  expectClose(run(call).results[0], expected);
}

/// A kernel may give an argument back: it is copied.
TEST_P(MovementTest, CopiesArguments) {
  KernelCall call;
  call.operands = {randomArray({4, 3}, 1)};
  call.results = {Array({4, 3})};
  call.text = R"(
func.func private @kernel(%x: tensor<4x3x$f>) -> tensor<4x3x$f>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<4x3x$f>
})";
  expectClose(run(call).results[0], call.operands[0]);
}

} // namespace
} // namespace weft::test
