//===- CollectiveGreetingTest.cpp - a member's first message --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/CollectiveGreeting.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace weft::rt::mpi;

namespace {

std::string message(std::string_view text, std::string_view elements) {
  std::vector<char> bytes(CollectiveGreeting::kMostHead);
  char *place = CollectiveGreeting::encode(bytes.data(), 42, text, elements.size());
  EXPECT_EQ((place - bytes.data()) % 16, 0);
  return std::string(bytes.data(), place).append(elements);
}

TEST(CollectiveGreetingTest, ComesBackAsItWas) {
  for (std::string_view text : {"", "all-reduce", "exactly 16 bytes"}) {
    for (std::string_view elements : {"", "elements"}) {
      std::string bytes = message(text, elements);
      auto greeting = CollectiveGreeting::decode(bytes);
      ASSERT_TRUE(greeting);
      EXPECT_EQ(greeting->fingerprint, 42);
      EXPECT_EQ(greeting->text, text);
      EXPECT_EQ(std::string_view(greeting->elements.data(), greeting->elements.size()), elements);
    }
  }
  std::string bytes = message(std::string(5000, 'x'), "e");
  EXPECT_EQ(CollectiveGreeting::decode(bytes)->text, std::string(1024, 'x'));
}

TEST(CollectiveGreetingTest, WhatIsNoneIsRefused) {
  std::string whole = message("all-reduce", "elements");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(CollectiveGreeting::decode(std::span(whole).first(bytes))) << bytes;
  }
  EXPECT_FALSE(CollectiveGreeting::decode(whole + "x"));
  whole[11] = '\x7f'; // The text ends far behind the message.
  EXPECT_FALSE(CollectiveGreeting::decode(whole));
}

} // namespace
