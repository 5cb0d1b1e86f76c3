//===- IntroductionTest.cpp - the first message between processes ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Introduction.h"

#include <gtest/gtest.h>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

Introduction sample() {
  return {"node0", 12, "plan 1, file 2", "hash", {1, 2}, "4000 10.0.0.1 ::1", ""};
}

std::vector<char> encodeAll(const std::vector<Introduction> &all) {
  std::vector<char> bytes;
  for (const Introduction &each : all) {
    std::vector<char> one = each.encode();
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

std::string errorOf(const std::vector<char> &bytes) {
  auto all = readIntroductions(bytes);
  return all ? "" : all.error().message;
}

TEST(IntroductionTest, ComesBackAsItWas) {
  std::vector<char> bytes = sample().encode();
  EXPECT_EQ(bytes.size(), Introduction::kBytes);
  EXPECT_EQ(*Introduction::decode(bytes), sample());
  EXPECT_EQ(sample().placeText(), "process 12 on 'node0'");
}

TEST(IntroductionTest, LongTextsAreCutAndOddOnesMadePrintable) {
  Introduction who = sample();
  who.host = std::string(100, 'h');
  who.problem = "two\nlines";
  Introduction read = *Introduction::decode(who.encode());
  EXPECT_EQ(read.host, std::string(63, 'h'));
  EXPECT_EQ(read.problem, "two?lines");
}

TEST(IntroductionTest, WhatIsNoneIsRefused) {
  std::vector<char> bytes = sample().encode();
  EXPECT_EQ(errorOf(std::vector<char>(bytes.begin(), bytes.end() - 1)),
            "rank 0 has sent an invalid message: an introduction has 1191 bytes, expected 1192");
  const std::string text =
      "rank 0 has sent an invalid message: an introduction has a text that is not one";
  std::vector<char> odd = bytes;
  std::fill(odd.begin() + 40, odd.begin() + 104, 'x'); // A host without an end.
  EXPECT_EQ(errorOf(odd), text);
  odd = bytes;
  odd[41] = '\n';
  EXPECT_EQ(errorOf(odd), text);
  odd = bytes;
  odd[100] = 'x'; // After the end.
  EXPECT_EQ(errorOf(odd), text);
}

TEST(IntroductionTest, AllRunTheSame) {
  Introduction other = sample();
  other.process = 13;
  EXPECT_EQ(readIntroductions(encodeAll({sample(), other}))->at(1), other);
  other.arguments = "else";
  EXPECT_EQ(errorOf(encodeAll({sample(), other})), "rank 1 was given other options than rank 0");
  other.program = "plan 3, file 2";
  EXPECT_EQ(errorOf(encodeAll({sample(), sample(), other})),
            "rank 2 runs another program than rank 0: on 'node0' plan 3, file 2; rank 0 on 'node0' "
            "plan 1, file 2");
  Introduction first = sample();
  first.problem = "cannot listen for the other ranks: Address already in use";
  EXPECT_EQ(errorOf(encodeAll({first, sample()})), first.problem);
}

} // namespace
