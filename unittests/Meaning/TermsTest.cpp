//===- TermsTest.cpp - whole tensors as expressions --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Terms.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft::meaning;

namespace {

struct TermsTest : testing::Test {
  TermId read(StringRef name, SmallVector<int64_t, 6> letters) {
    return terms.numberOf({builder.getStringAttr("read"),
                           0,
                           builder.getStringAttr(name),
                           builder.getF64Type(),
                           {},
                           {},
                           std::move(letters),
                           {},
                           builder.getUnknownLoc(),
                           ""});
  }
  TermId contract(TermId lhs, SmallVector<int64_t, 6> first, TermId rhs,
                  SmallVector<int64_t, 6> second, SmallVector<int64_t, 6> result) {
    return terms.numberOf({builder.getStringAttr("contract"),
                           0,
                           Attribute(),
                           builder.getF64Type(),
                           {},
                           {{lhs, std::move(first)}, {rhs, std::move(second)}},
                           std::move(result),
                           {},
                           builder.getUnknownLoc(),
                           ""});
  }

  TermId add(TermId lhs, TermId rhs, SmallVector<int64_t, 6> letters = {}) {
    return terms.numberOf({builder.getStringAttr("arith.addf"),
                           0,
                           Attribute(),
                           builder.getF64Type(),
                           {},
                           {{lhs, letters}, {rhs, letters}},
                           letters,
                           {},
                           builder.getUnknownLoc(),
                           ""});
  }

  MLIRContext context;
  Builder builder{&context};
  Terms terms;
};

} // namespace

TEST_F(TermsTest, LettersMayBeOthers) {
  TermId x = read("x", {0, 1}), w = read("w", {0, 1});
  EXPECT_EQ(contract(x, {'b', 'k'}, w, {'n', 'k'}, {'b', 'n'}),
            contract(x, {1, 2}, w, {3, 2}, {1, 3}));
  EXPECT_NE(contract(x, {'b', 'k'}, w, {'n', 'k'}, {'b', 'n'}),
            contract(x, {'b', 'k'}, w, {'k', 'n'}, {'b', 'n'}));
  EXPECT_NE(contract(x, {'b', 'k'}, w, {'n', 'k'}, {'b', 'n'}),
            contract(w, {'b', 'k'}, x, {'n', 'k'}, {'b', 'n'}));
}

TEST_F(TermsTest, SumsOfScalarsHaveNoOrder) {
  TermId x = read("x", {}), y = read("y", {}), z = read("z", {});
  EXPECT_EQ(add(add(x, y), z), add(y, add(z, x)));
  EXPECT_EQ(add(add(x, y), add(x, z)), add(add(x, x), add(y, z)));
  EXPECT_NE(add(add(x, y), z), add(x, add(y, y)));
  EXPECT_NE(add(add(x, y), z), add(x, y));
  TermId v = read("v", {0}), w = read("w", {0});
  EXPECT_NE(add(v, w, {0}), add(w, v, {0}));
}

TEST_F(TermsTest, ConstantsHaveTheirTypes) {
  TermId zero = terms.constant(builder.getF64FloatAttr(0));
  EXPECT_EQ(zero, terms.constant(builder.getF64FloatAttr(0)));
  EXPECT_NE(zero, terms.constant(builder.getF32FloatAttr(0)));
  EXPECT_TRUE(terms.isZero(zero));
  EXPECT_EQ(terms.asConstant(terms.constant(builder.getI32IntegerAttr(3))), 3);
  EXPECT_FALSE(terms.asConstant(read("x", {})));
}

TEST_F(TermsTest, TermsOfTheWholeAreTheFirst) {
  TermId x = read("x", {});
  terms.endWhole();
  EXPECT_TRUE(terms.isOfWhole(x));
  EXPECT_TRUE(terms.isOfWhole(read("x", {})));
  EXPECT_FALSE(terms.isOfWhole(read("y", {})));
}
