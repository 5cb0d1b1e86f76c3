//===- SplitForSearchTest.cpp - sub-axes that the search may use ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/SplitForSearch.h"

#include <gtest/gtest.h>

using namespace weft::desc;

namespace {

/// Returns the mesh after the split, on nodes of eight devices and for a model with so many key and
/// value heads, each of four query heads.
std::string splitMesh(const std::string &mesh, int64_t kvHeads = 8) {
  ModelSpec model;
  model.kvHeads = kvHeads;
  model.heads = 4 * kvHeads;
  MachineSpec machine;
  machine.devicesPerNode = 8;
  return splitForSearch(*parseMesh(mesh), model, machine).parts().text();
}

} // namespace

TEST(SplitForSearch, AtTheBorderOfANode) {
  EXPECT_EQ(splitMesh("x=8"), "x=8");
  EXPECT_EQ(splitMesh("x=16"), "x=2x8");
  EXPECT_EQ(splitMesh("x=2,y=10"), "x=2 y=10"); // No whole nodes.
  EXPECT_EQ(splitMesh("x=8,y=2"), "x=2x4 y=2");
  EXPECT_EQ(splitMesh("b=8,a=64"), "b=8 a=8x8");
}

TEST(SplitForSearch, WhereHeadsAreFew) {
  EXPECT_EQ(splitMesh("dp=2,tp=8", 2), "dp=2 tp=2x4");
  EXPECT_EQ(splitMesh("x=16", 2), "x=2x2x4");
}

TEST(SplitForSearch, TheLargestAxis) {
  EXPECT_EQ(splitMesh("dp=128,tp=8"), "dp=8x16 tp=8");
  EXPECT_EQ(splitMesh("x=1024"), "x=8x16x8");
  EXPECT_EQ(splitMesh("x=96"), "x=3x4x8");
  EXPECT_EQ(splitMesh("x=80"), "x=10x8");           // Ten ranks are not many.
  EXPECT_EQ(splitMesh("dp=17,tp=8"), "dp=17 tp=8"); // A prime.
}

TEST(SplitForSearch, AtMostThreeParts) {
  EXPECT_EQ(splitMesh("dp=16,cp=4,tp=8", 2), "dp=16 cp=4 tp=8");
  EXPECT_EQ(splitMesh("x=64,y=16", 2), "x=64 y=2x8");
}

TEST(SplitForSearch, LeavesASplitMeshAlone) {
  EXPECT_EQ(splitMesh("dp=64x2,tp=8", 2), "dp=64x2 tp=8");
}
