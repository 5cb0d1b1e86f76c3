//===- ShapeTest.cpp - slices of tensors, joined and in other orders -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

namespace weft::test {
namespace {

struct ShapeTest : KernelTest {
  /// Runs `body`, which names its operands %0, %1 and so on, and makes %y, or %y:2 of two results.
  std::vector<Array> runOp(const std::string &body, std::vector<Array> operands,
                           std::vector<Array> results, std::vector<int64_t> immediates = {}) {
    KernelCall call;
    std::string arguments = immediates.empty() ? "" : "%i: index, ", ins, outs, values, tied;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::string type = operands[i].type("$f"), comma = i ? ", " : "";
      arguments += comma + "%" + std::to_string(i) + ": " + type;
      ins += comma + type;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      std::string comma = i ? ", " : "";
      outs += comma + results[i].type("$f");
      values += comma + "%y#" + std::to_string(i);
      tied += comma + "-1";
    }
    call.text = "func.func private @kernel(" + arguments + ") -> (" + outs +
                ") attributes {weft.tied = array<i64: " + tied +
                ">} {\n%y:" + std::to_string(results.size()) + " = " + body + " : " + ins + " -> " +
                outs + "\nreturn " + values + " : " + outs + "\n}";
    call.operands = std::move(operands);
    call.results = std::move(results);
    call.immediates = std::move(immediates);
    return run(call).results;
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(ShapeTest);

TEST_P(ShapeTest, JoinsAndTakesApart) {
  Array whole = randomArray({3, 7, 5}, 1), first({3, 4, 5}), second({3, 3, 5});
  forEach(whole.shape, [&](const std::vector<int64_t> &at) {
    double value = whole({at[0], at[1], at[2]});
    (at[1] < 4 ? first({at[0], at[1], at[2]}) : second({at[0], at[1] - 4, at[2]})) = value;
  });
  expectClose(runOp("weft.concat %0, %1 dim 1", {first, second}, {Array(whole.shape)})[0], whole);
  std::vector<Array> parts =
      runOp("weft.split %0 dim 1", {whole}, {Array(first.shape), Array(second.shape)});
  expectClose(parts[0], first);
  expectClose(parts[1], second);
}

/// Slices of whole chunks, with a rest, and of less than a chunk.
TEST_P(ShapeTest, JoinsAndTakesApartManySlices) {
  for (int64_t inner : {1, 8}) {
    const int64_t lengths[] = {8, 1, 5, 16};
    Array whole = randomArray({3, 30, inner}, 1);
    std::vector<Array> slices, results;
    for (int64_t done = 0; int64_t length : lengths) {
      Array slice({3, length, inner});
      forEach(slice.shape, [&](const std::vector<int64_t> &at) {
        slice({at[0], at[1], at[2]}) = whole({at[0], done + at[1], at[2]});
      });
      done += length;
      results.emplace_back(slice.shape);
      slices.push_back(std::move(slice));
    }
    std::string names = "%0, %1, %2, %3";
    expectClose(runOp("weft.concat " + names + " dim 1", slices, {Array(whole.shape)})[0], whole);
    std::vector<Array> parts = runOp("weft.split %0 dim 1", {whole}, results);
    for (size_t i = 0; i < slices.size(); ++i) {
      expectClose(parts[i], slices[i]);
    }
  }
}

TEST_P(ShapeTest, SelectsAnIndex) {
  Array whole = randomArray({4, 3, 7}, 1), part({3, 7});
  forEach(part.shape,
          [&](const std::vector<int64_t> &at) { part({at[0], at[1]}) = whole({2, at[0], at[1]}); });
  expectClose(runOp("weft.select %0[%i]", {whole}, {Array(part.shape)}, {2})[0], part);
}

TEST_P(ShapeTest, Reorders) {
  constexpr int64_t kPlaces[] = {0, 1, 6, 7, 2, 3, 4, 5};
  Array whole = randomArray({3, 8, 5}, 1), ordered(whole.shape);
  forEach(whole.shape, [&](const std::vector<int64_t> &at) {
    ordered({at[0], at[1], at[2]}) = whole({at[0], kPlaces[at[1]], at[2]});
  });
  expectClose(runOp("weft.reorder %0 dim 1 order <4 x 2>", {whole}, {Array(whole.shape)})[0],
              ordered);
  expectClose(
      runOp("weft.reorder inverse %0 dim 1 order <4 x 2>", {ordered}, {Array(whole.shape)})[0],
      whole);
}

} // namespace
} // namespace weft::test
