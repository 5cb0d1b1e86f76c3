//===- FlatProofTest.cpp - a program is proven if its expansion is ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What actions over bodies mean is one list of instructions, so the proof must say the
// same of both.
//
//===----------------------------------------------------------------------===//

#include "FlatPrograms.h"
#include "RandomPrograms.h"
#include "TablePlaces.h"
#include "weft/Schedule/Proof.h"

#include <gtest/gtest.h>

#include <iostream>

using namespace weft;
using namespace weft::schedule;
using namespace weft::test;

namespace {

std::string refusal(const rt::Programs &programs) {
  Proof proof = prove(programs);
  return proof.holds() ? "" : proof.diagnostics.front();
}

std::string refusalOfFlat(const rt::Programs &programs) {
  rt::Programs flat;
  for (const rt::Program &program : programs) {
    if (!keepsMicroBatchesApart(program)) {
      return "a frame holds another micro-batch";
    }
    flat.push_back(flattened(program));
  }
  return refusal(flat);
}

TEST(FlatProof, AcceptsAllThatIsDrawn) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    rt::Programs programs = drawPrograms(random);
    EXPECT_EQ(refusal(programs), "") << seed;
    EXPECT_EQ(refusalOfFlat(programs), "") << seed;
  }
}

TEST(FlatProof, SaysTheSameOfRandomPrograms) {
  size_t compared = 0, accepted = 0;
  for (uint64_t seed = 0; compared < 1000; ++seed) {
    Random random(seed);
    rt::Programs programs = drawPrograms(random);
    for (size_t changes = draw(3, random); changes > 0; --changes) {
      tableMutations()[draw(tableMutations().size(), random)].apply(programs, random);
    }
    if (!rt::checkWellFormed(programs)) {
      continue; // It has no expansion.
    }
    ++compared;
    std::string own = refusal(programs), flat = refusalOfFlat(programs);
    accepted += size_t(own.empty());
    EXPECT_EQ(own.empty(), flat.empty()) << seed << ": " << own << "; flat: " << flat;
  }
  std::cout << accepted << " of " << compared << " accepted\n";
  EXPECT_GT(accepted, 300U);
  EXPECT_LT(accepted, 700U);
}

} // namespace
