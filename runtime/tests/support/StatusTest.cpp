//===- StatusTest.cpp - success or an error, and a value or an error -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/Status.h"
#include "support/Text.h"

#include <gtest/gtest.h>

#include <memory>

using namespace weft::rt;

namespace {

Status checkEven(int number) {
  if (number % 2 != 0) {
    return makeError("expected an even number, got ", number);
  }
  return {};
}

Result<std::unique_ptr<int>> half(int number) {
  if (Status status = checkEven(number); !status) {
    return status.error();
  }
  return std::make_unique<int>(number / 2);
}

} // namespace

TEST(Status, IsSuccessOrAnError) {
  EXPECT_TRUE(checkEven(4));
  Status failure = checkEven(5);
  EXPECT_FALSE(failure);
  EXPECT_EQ(failure.error().message, "expected an even number, got 5");
  failure = {};
  EXPECT_TRUE(failure);
}

TEST(Result, IsAValueOrAnError) {
  Result<std::unique_ptr<int>> good = half(6);
  ASSERT_TRUE(good);
  EXPECT_EQ(**good, 3);
  std::unique_ptr<int> taken = std::move(*good);
  EXPECT_EQ(*taken, 3);
  Result<std::unique_ptr<int>> bad = half(7);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "expected an even number, got 7");
}

TEST(Result, GivesAccessToItsValue) {
  Result<std::string> text = std::string("weft");
  ASSERT_TRUE(text);
  text->push_back('!');
  const Result<std::string> copy = text;
  EXPECT_EQ(*copy, "weft!");
  EXPECT_EQ(copy->size(), 5U);
}

TEST(Result, OfANullPointerIsAValue) {
  Result<std::unique_ptr<int>> none = std::unique_ptr<int>();
  EXPECT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
}
