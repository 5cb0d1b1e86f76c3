//===- CommandLineTest.cpp - tests of options and their errors ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/CommandLine.h"

#include "gtest/gtest.h"

using namespace weft;

namespace {

class CommandLineTest : public testing::Test {
protected:
  CommandLineTest() : line("weft test [options] FILE", "Tests.") {
    line.addSwitch("--fast", "take less time", fast);
    line.addNumber("--steps", "N", "steps to run", 1, 100, steps);
    line.addList("--pin", "NAME=VALUE", "a pin", pins);
    line.addPositional("FILE", file);
  }

  /// Returns the error of these arguments; empty if there is none.
  std::string parse(std::vector<const char *> arguments) {
    llvm::Error error = line.parse(arguments);
    return error ? llvm::toString(std::move(error)) : "";
  }

  bool fast = false;
  int64_t steps = 0;
  std::vector<std::string> pins;
  std::string file;
  CommandLine line;
};

TEST_F(CommandLineTest, FillsPlaces) {
  EXPECT_EQ(parse({"--steps=3", "model", "--pin", "dp=2", "--pin=tp=2", "--fast"}), "");
  EXPECT_TRUE(fast);
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(pins, (std::vector<std::string>{"dp=2", "tp=2"}));
  EXPECT_EQ(file, "model");
  EXPECT_TRUE(line.wasGiven("--steps"));
}

TEST_F(CommandLineTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse({"model", "--steps", "0"}),
            "option '--steps' expects a number from 1 to 100, got '0'");
}

TEST_F(CommandLineTest, RefusesASecondValue) {
  EXPECT_EQ(parse({"--steps", "1", "--steps", "2"}), "option '--steps' is given twice");
}

TEST_F(CommandLineTest, SuggestsTheNearestOption) {
  EXPECT_EQ(parse({"model", "--stepz", "2"}), "unknown option '--stepz', did you mean '--steps'?");
}

TEST_F(CommandLineTest, NeedsTheArgumentWithoutDashes) {
  EXPECT_EQ(parse({"--fast"}), "expected FILE");
}

TEST_F(CommandLineTest, LooksAtNothingBehindHelp) {
  EXPECT_EQ(parse({"--help", "--unknown"}), "");
  EXPECT_TRUE(line.isHelpWanted());
}

} // namespace
