//===- JsonTest.cpp - reading JSON that may be damaged ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Json.h"
#include "tests/ErrorOf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

using namespace weft::rt;
using nlohmann::json;
using testing::ElementsAre;

static std::string faultOf(std::string_view text) { return errorOf(parseObject(text, "it")); }

TEST(Json, IsOneObjectWithoutRepetitions) {
  EXPECT_EQ(faultOf(R"({"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]})"), "");
  EXPECT_EQ(faultOf("[1]"), "it is not a JSON object");
  EXPECT_EQ(faultOf("{} {}"), "it is not a JSON object");
  EXPECT_EQ(faultOf(R"({"a": {"b": 1, "b": 2}})"), "it has 'b' twice");
}

TEST(Json, CountsAreWholeAndNotNegative) {
  EXPECT_EQ(readCount(json(3U)), 3);
  EXPECT_EQ(readCount(json::parse("9223372036854775807")), INT64_MAX);
  for (const char *text : {"-1", "1.5", "\"1\"", "null", "9223372036854775808"}) {
    EXPECT_EQ(readCount(json::parse(text)), std::nullopt) << text;
  }
  EXPECT_THAT(*readCounts(json::parse("[1, 2]")), ElementsAre(1, 2));
  EXPECT_EQ(readCounts(json::parse("[1, -2]")), std::nullopt);
  EXPECT_EQ(readCounts(json::parse("1")), std::nullopt);
}

TEST(JsonFields, ReadEveryType) {
  json object = json::parse(
      R"({"name": "x", "count": 1, "counts": [2], "bits": 18446744073709551615, "none": null,
          "list": [3], "inner": {"a": 4}})");
  JsonFields fields(object, "it");
  std::string name;
  int64_t count = 0;
  std::vector<int64_t> counts;
  uint64_t bits = 0;
  fields.text("name", name);
  fields.count("count", count);
  fields.counts("counts", counts);
  fields.bits("bits", bits);
  EXPECT_EQ(fields.array("list"), json::parse("[3]"));
  EXPECT_EQ(fields.object("inner"), json::parse(R"({"a": 4})"));
  EXPECT_EQ(errorOf(fields.status()), "");
  EXPECT_EQ(name, "x");
  EXPECT_EQ(count, 1);
  EXPECT_THAT(counts, ElementsAre(2));
  EXPECT_EQ(bits, UINT64_MAX);
  EXPECT_TRUE(fields.has("none") && fields.isNull("none"));
  EXPECT_FALSE(fields.has("other") || fields.isNull("other"));
}

TEST(JsonFields, KeepTheFirstFault) {
  json object = json::parse(R"({"name": 1, "count": "x", "list": {}})");
  JsonFields fields(object, "it");
  std::string name = "as it was";
  int64_t count = 7;
  fields.text("name", name);
  EXPECT_EQ(errorOf(fields.status()), "it lacks the text 'name'");
  fields.count("count", count);
  EXPECT_TRUE(fields.array("list").empty());
  EXPECT_TRUE(fields.object("inner").empty());
  EXPECT_EQ(errorOf(fields.status()), "it lacks the text 'name'");
  EXPECT_EQ(name, "as it was");
  EXPECT_EQ(count, 7);
}
