//===- ShardingTest.cpp - the algebra of shardings -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

MeshAttr mesh() {
  return cast<MeshAttr>(parseAttribute(R"(#weft.mesh<"dp"=2, "tp"=3, "pp"=5>)", &context()));
}

ShardingAttr sharding(const std::string &rest) {
  return cast<ShardingAttr>(parseAttribute(
      R"(#weft.sharding<#weft.mesh<"dp"=2, "tp"=3, "pp"=5>, )" + rest + ">", &context()));
}

ArrayAttr axes(ArrayRef<StringRef> names) { return Builder(&context()).getStrArrayAttr(names); }

TEST(Mesh, Sizes) {
  StringAttr tp = StringAttr::get(&context(), "tp"), none = StringAttr::get(&context(), "none");
  EXPECT_EQ(mesh().getRankCount(), 30);
  EXPECT_EQ(mesh().getSize(tp), 3);
  EXPECT_EQ(mesh().getSize(none), 0);
  EXPECT_EQ(mesh().getSize(axes({"pp", "dp"})), 10);
  EXPECT_EQ(mesh().getSize(axes({})), 1);
  EXPECT_EQ(mesh().getIndex(tp), 1);
  EXPECT_EQ(mesh().getIndex(none), -1);
  EXPECT_EQ(MeshAttr::get(&context(), {}, {}).getRankCount(), 1);
}

TEST(Mesh, Parts) {
  auto split = cast<MeshAttr>(parseAttribute(R"(#weft.mesh<"dp"=2, "tp"=2x4>)", &context()));
  EXPECT_EQ(split.getRankCount(), 16);
  EXPECT_EQ(split.getNames().size(), 3U);
  EXPECT_EQ(split.getCoordinates(13), (SmallVector<int64_t>{1, 1, 1}));
  EXPECT_EQ(split.splitNames(axes({"tp", "other", "dp"})),
            axes({"tp:(1)2", "tp:(2)4", "other", "dp"}));
  EXPECT_EQ(split.joinNames(axes({"tp:(1)2", "tp:(2)4", "dp"})), axes({"tp", "dp"}));
  EXPECT_EQ(split.joinNames(axes({"tp:(2)4"})), axes({"tp:(2)4"}));
}

TEST(Sharding, LocalShape) {
  ShardingAttr cut = sharding(R"([{"dp", "tp"}, {}, {"pp"}])");
  EXPECT_EQ(cut.getShards(0), 6);
  EXPECT_EQ(cut.getShards(1), 1);
  EXPECT_EQ(cut.getLocalShape({12, 7, 5}), (SmallVector<int64_t>{2, 7, 1}));
  auto type = RankedTensorType::get({12, 7, 5}, Float32Type::get(&context()), cut);
  EXPECT_EQ(getLocalType(type), RankedTensorType::get({2, 7, 1}, type.getElementType()));
  EXPECT_EQ(getLocalType(getLocalType(type)), getLocalType(type));
}

TEST(Sharding, EncodingOfTypes) {
  ShardingAttr cut = sharding(R"([{"dp"}])");
  auto plain = RankedTensorType::get({4}, Float32Type::get(&context()));
  RankedTensorType sharded = withSharding(plain, cut);
  EXPECT_EQ(getSharding(sharded), cut);
  EXPECT_EQ(getSharding(plain), ShardingAttr());
  EXPECT_EQ(getSharding(IndexType::get(&context())), ShardingAttr());
  EXPECT_EQ(withSharding(sharded, {}), plain);
}

TEST(Sharding, Replicated) {
  EXPECT_EQ(ShardingAttr::getReplicated(mesh(), 2), sharding("[{}, {}]"));
  EXPECT_EQ(ShardingAttr::getReplicated(mesh(), 0), sharding("[]"));
}

TEST(Sharding, Pending) {
  ShardingAttr cut = sharding(R"([{"dp"}, {}])");
  Attribute tp = StringAttr::get(&context(), "tp"), pp = StringAttr::get(&context(), "pp");
  // Whatever the order in which axes are given, that of the mesh counts.
  ShardingAttr pending = withUnreduced(cut, {pp, tp}, ReductionKind::Max);
  EXPECT_EQ(pending, sharding(R"([{"dp"}, {}], unreduced = max{"tp", "pp"})"));
  EXPECT_FALSE(pending.isReduced());
  EXPECT_EQ(pending.getReduced(), cut);
  // Nothing pending has no operator, so that equal shardings are equal attributes.
  EXPECT_EQ(withUnreduced(pending, {}, ReductionKind::Max), cut);
}

TEST(Sharding, Axes) {
  EXPECT_EQ(joinAxes(axes({"dp", "tp"}), axes({"tp", "pp"})), axes({"dp", "tp", "pp"}));
  EXPECT_EQ(dropBack(axes({"dp", "tp"}), 1), axes({"dp"}));
  EXPECT_EQ(sortByMesh(mesh(), axes({"pp", "dp"}).getValue()), axes({"dp", "pp"}));
  EXPECT_TRUE(endsWith(axes({"dp", "tp"}), axes({"tp"})));
  EXPECT_TRUE(endsWith(axes({"dp", "tp"}), axes({})));
  EXPECT_FALSE(endsWith(axes({"dp", "tp"}), axes({"dp"})));
  EXPECT_FALSE(endsWith(axes({"tp"}), axes({"dp", "tp"})));
  EXPECT_EQ(withDim(sharding(R"([{"dp"}, {}])"), 1, axes({"tp"})), sharding(R"([{"dp"}, {"tp"}])"));
}

} // namespace
