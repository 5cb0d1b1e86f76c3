//===- ImageFileTest.cpp - images and their labels from a file --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"

#include "data/ImageFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

template <typename T> std::string bytesOf(const std::vector<T> &numbers) {
  return std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(T));
}

/// Returns a safetensors file with header entries for both tensors, and their bytes.
std::string fileOf(const std::string &images, const std::string &labels, const std::string &bytes) {
  std::string header = "{" + images + (labels.empty() ? "" : ",") + labels + "}";
  auto length = uint64_t(header.size());
  return std::string(reinterpret_cast<const char *>(&length), 8) + header + bytes;
}

std::string entry(const std::string &name, const std::string &type, const std::string &shape,
                  size_t begin, size_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

class Images : public testing::Test {
protected:
  std::string openError(const std::string &content) {
    const int64_t shape[] = {1, 2};
    return errorOf(ImageFile().open(folder.write("data", content), shape, 3));
  }

  TemporaryFolder folder;
};

TEST_F(Images, RowsOfEveryType) {
  const int64_t shape[] = {1, 2};
  std::string labels = bytesOf<int64_t>({2, 0});
  for (const auto &[type, bytes] : {std::pair("F32", bytesOf<float>({1, 2, 51, 102})),
                                    std::pair("F64", bytesOf<double>({1, 2, 51, 102})),
                                    std::pair("U8", bytesOf<uint8_t>({1, 2, 51, 102}))}) {
    double scale = std::string(type) == "U8" ? 1.0 / 255 : 1.0;
    std::string content =
        fileOf(entry("images", type, "[2,1,2]", 0, bytes.size()),
               entry("labels", "I64", "[2]", bytes.size(), bytes.size() + 16), bytes + labels);
    ImageFile file;
    ASSERT_EQ(errorOf(file.open(folder.write(type, content), shape, 3)), "");
    EXPECT_EQ(file.sampleCount(), 2u);
    std::vector<float> image(2);
    InputShard shard{DataField::Images, ElementType::F32, {4, 1, 2}, {0, 0, 0}, {4, 1, 2}};
    ASSERT_TRUE(file.readRow(1, shard, reinterpret_cast<char *>(image.data())));
    EXPECT_THAT(image, ElementsAre(float(51 * scale), float(102 * scale)));
    std::vector<double> wide(2);
    shard.type = ElementType::F64;
    ASSERT_TRUE(file.readRow(0, shard, reinterpret_cast<char *>(wide.data())));
    EXPECT_THAT(wide, ElementsAre(1 * scale, 2 * scale));
    int32_t label = 0;
    InputShard labelShard{DataField::Labels, ElementType::I32, {4}, {0}, {4}};
    ASSERT_TRUE(file.readRow(0, labelShard, reinterpret_cast<char *>(&label)));
    EXPECT_EQ(label, 2);
  }
}

TEST_F(Images, RefusesWhatTheModelCannotTake) {
  std::string images = bytesOf<float>({1, 2}), label = bytesOf<int32_t>({1});
  std::string good = entry("images", "F32", "[1,1,2]", 0, 8);
  EXPECT_EQ(openError(fileOf(good, entry("labels", "I32", "[1]", 8, 12), images + label)), "");
  EXPECT_THAT(
      openError(fileOf(good, "", images)),
      HasSubstr("has no tensor 'labels', expected images and labels in a safetensors file"));
  EXPECT_THAT(openError(fileOf(entry("images", "F32", "[1,2,1]", 0, 8),
                               entry("labels", "I32", "[1]", 8, 12), images + label)),
              HasSubstr("has images [1, 2, 1], the model takes [1, 2] for each sample"));
  EXPECT_THAT(openError(fileOf(entry("images", "I32", "[1,1,2]", 0, 8),
                               entry("labels", "I32", "[1]", 8, 12), images + label)),
              HasSubstr("has images of type I32, expected F32, F64 or U8"));
  EXPECT_THAT(openError(fileOf(good, entry("labels", "F32", "[1]", 8, 12), images + label)),
              HasSubstr("has labels of type F32, expected I64 or I32"));
  EXPECT_THAT(openError(fileOf(good, entry("labels", "I32", "[1,1]", 8, 12), images + label)),
              HasSubstr("has labels [1, 1], expected [1], one for each image"));
  EXPECT_THAT(
      openError(fileOf(good, entry("labels", "I32", "[1]", 8, 12), images + bytesOf<int32_t>({3}))),
      HasSubstr("has the label 3 at image 0, the model's classes are 0 to 2"));
  EXPECT_THAT(openError(fileOf(entry("images", "F32", "[0,1,2]", 0, 0),
                               entry("labels", "I32", "[0]", 0, 0), "")),
              HasSubstr("has no images"));
}

} // namespace
