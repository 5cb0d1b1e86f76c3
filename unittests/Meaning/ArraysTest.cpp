//===- ArraysTest.cpp - what lies in the memory of one rank -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include <gtest/gtest.h>

using namespace weft::meaning;

namespace {

/// The matrices of [rows, blocks * columns] that ranks gather along columns: from `blocks` matrices
/// of [rows, columns], one after the other.
ArrayId gather(Arrays &arrays, uint64_t name, int64_t rows, int64_t blocks, int64_t columns) {
  ArrayId shards = arrays.other((Words() << name).print(), rows * blocks * columns);
  return *arrays.transpose(shards, {blocks, rows, columns}, {1, 0, 2});
}

/// The sums over the columns of products of rows of both.
ArrayId multiply(Arrays &arrays, const Access &left, const Access &right) {
  return arrays.compute({{24, 12, 36}, 2, {left, right}}, [&](llvm::ArrayRef<ScalarId> in) {
    return llvm::SmallVector<ScalarId>{arrays.combine(ScalarKind::Multiply, in)};
  })[0];
}

// Columns of one operand come in blocks of 12, those of the other in blocks of 9.
TEST(Arrays, ProductsDoNotDependOnTheOrderOfOperandsInEachOthersWay) {
  Arrays arrays;
  Access threes{gather(arrays, 'a', 24, 3, 12), 0, {}, {36, 0, 1}};
  Access fours{gather(arrays, 'b', 12, 4, 9), 0, {}, {0, 36, 1}};
  ArrayId product = multiply(arrays, threes, fours);
  EXPECT_EQ(multiply(arrays, fours, threes), product);
  Access others{gather(arrays, 'c', 12, 4, 9), 0, {}, {0, 36, 1}};
  EXPECT_NE(multiply(arrays, threes, others), product);
}

} // namespace
