//===- DataTest.cpp - samples and their order -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/Dataset.h"
#include "data/Permutation.h"
#include "data/RunData.h"
#include "program/Box.h"
#include "program/Shards.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <sys/stat.h>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(Random, IsAsDocumented) {
  EXPECT_EQ(randomBits(1, 2, 0), 0xD84075A38C2A7917);
  EXPECT_EQ(randomBits(1, 2, 1), 0x65844C5D623DB2DA);
}

TEST(Permutation, IsABijectionForEverySize) {
  for (uint64_t count = 1; count <= 300; ++count) {
    for (uint64_t key : {0, 1, 12345}) {
      Permutation order(count, key);
      std::set<uint64_t> seen;
      for (uint64_t i = 0; i < count; ++i) {
        EXPECT_LT(order(i), count);
        seen.insert(order(i));
      }
      EXPECT_EQ(seen.size(), count);
    }
  }
}

TEST(Permutation, DependsOnTheKeyAndIsNotTheIdentity) {
  Permutation one(10000, 1), two(10000, 2);
  int same = 0, fixed = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    same += one(i) == two(i);
    fixed += one(i) == i;
  }
  EXPECT_LT(same, 20); // One is expected of a random pair.
  EXPECT_LT(fixed, 20);
}

TEST(Permutation, WorksNearTheLargestCount) {
  Permutation order((uint64_t(1) << 62) - 1, 3);
  EXPECT_LT(order(0), (uint64_t(1) << 62) - 1);
}

class Data : public testing::Test {
protected:
  std::string openError(const std::string &path, int64_t sequence, int64_t vocabulary = 256) {
    return errorOf(Dataset().open(path, std::nullopt, sequence, vocabulary));
  }

  /// Opens a file of one text, which must succeed.
  void openBytes(const std::string &content, int64_t sequence) {
    ASSERT_EQ(errorOf(data.open(folder.write("data", content), std::nullopt, sequence, 256)), "");
  }

  TemporaryFolder folder;
  Dataset data;
};

TEST_F(Data, CountsWholeSamplesWithOneMoreByte) {
  for (auto [bytes, samples] : {std::pair(5, 1), {8, 1}, {9, 2}, {12, 2}, {13, 3}}) {
    Dataset some;
    ASSERT_TRUE(
        some.open(folder.write("data", std::string(size_t(bytes), 'a')), std::nullopt, 4, 256));
    EXPECT_EQ(some.sampleCount(), uint64_t(samples)) << bytes;
  }
}

TEST_F(Data, EveryEpochHasEverySampleOnceInAnotherOrder) {
  openBytes(std::string(401, 'a'), 4);
  Sampler sampler(data, 0, 100, 9);
  std::vector<std::vector<uint64_t>> epochs(3);
  for (uint64_t i = 0; i < 300; ++i) {
    epochs[i / 100].push_back(sampler.sampleAt(i));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  for (auto &epoch : epochs) {
    EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 100u);
  }
}

TEST_F(Data, ShardsOfRanksMakeUpTheBatch) {
  std::string content(1000, 0);
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = char(i * 7);
  }
  openBytes(content, 6);
  Sampler sampler(data, 0, data.sampleCount(), 3);
  for (int64_t shift : {0, 1}) {
    std::vector<int32_t> all(24), shard(6);
    InputShard part{
        shift ? DataField::Targets : DataField::Tokens, ElementType::I32, {4, 6}, {0, 0}, {4, 6}};
    ASSERT_TRUE(sampler.fill(5, 4, part, reinterpret_cast<char *>(all.data())));
    for (int64_t row = 0; row < 4; ++row) {
      for (int64_t column = 0; column < 6; ++column) {
        uint64_t at = sampler.sampleAt(uint64_t(20 + row)) * 6 + uint64_t(column + shift);
        EXPECT_EQ(all[size_t(row * 6 + column)], uint8_t(content[at]));
      }
    }
    part.shape = part.filled = {2, 3};
    part.offset = {2, 3};
    ASSERT_TRUE(sampler.fill(5, 4, part, reinterpret_cast<char *>(shard.data())));
    EXPECT_THAT(shard, ElementsAre(all[15], all[16], all[17], all[21], all[22], all[23]));
  }
}

TEST_F(Data, PaddingIsCopiesOfTheLastSample) {
  std::string content(1000, 0);
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = char(i * 7);
  }
  openBytes(content, 6);
  Sampler sampler(data, 0, data.sampleCount(), 3);
  std::vector<int32_t> shard(6, -1);
  InputShard part{DataField::Tokens, ElementType::I32, {2, 3}, {2, 4}, {1, 2}};
  ASSERT_TRUE(sampler.fill(5, 3, part, reinterpret_cast<char *>(shard.data())));
  EXPECT_EQ(shard[0], uint8_t(content[sampler.sampleAt(17) * 6 + 4]));
  EXPECT_EQ(shard[3], shard[0]);
  EXPECT_EQ(shard[4], shard[1]);
  EXPECT_EQ(shard[2], -1);
  EXPECT_EQ(shard[5], -1);
}

TEST_F(Data, DocumentsBeginBehindTheTokenThatEndsThem) {
  // The first token of the second sample ends a document that began in the first sample.
  ASSERT_TRUE(data.open(folder.write("data", "ab.cd..e.fg.hi.jk"), std::nullopt, 8, 256, '.'));
  auto starts = [&](uint64_t sample, std::vector<int64_t> shape, std::vector<int64_t> offset,
                    std::vector<int64_t> filled) {
    InputShard shard{DataField::DocumentStarts, ElementType::I32, shape, offset, filled};
    std::vector<int32_t> out(size_t(shape[1]), -1);
    EXPECT_TRUE(data.readRow(sample, shard, reinterpret_cast<char *>(out.data())));
    return out;
  };
  EXPECT_THAT(starts(0, {1, 8}, {0, 0}, {1, 8}), ElementsAre(0, 0, 0, 3, 3, 3, 6, 7));
  EXPECT_THAT(starts(1, {1, 8}, {0, 0}, {1, 8}), ElementsAre(0, 1, 1, 1, 4, 4, 4, 7));
  EXPECT_THAT(starts(0, {1, 3}, {0, 4}, {1, 3}), ElementsAre(3, 3, 6));
  // Padding continues the last document, even in a shard of padding only.
  EXPECT_THAT(starts(1, {1, 5}, {0, 5}, {1, 3}), ElementsAre(4, 4, 7, 7, 7));
  EXPECT_THAT(starts(1, {1, 2}, {0, 10}, {1, 0}), ElementsAre(7, 7));
}

TEST_F(Data, DocumentsMayBeLongerThanWhatIsReadAtOnce) {
  std::string content(5000, 'a');
  content[100] = content[3000] = '.';
  ASSERT_TRUE(data.open(folder.write("data", content), std::nullopt, 4096, 256, '.'));
  std::vector<int32_t> starts(2);
  for (auto [place, start] : {std::pair(100, 0), {101, 101}, {2047, 101}, {4094, 3001}}) {
    data.readStarts(0, place, starts);
    EXPECT_EQ(starts[0], start) << place;
  }
}

TEST_F(Data, RefusesFilesThatCannotBeTrainedOn) {
  EXPECT_EQ(openError(folder.file("none"), 4),
            "cannot read '" + folder.file("none") + "': No such file or directory");
  EXPECT_EQ(openError(folder.path, 4),
            "cannot read '" + folder.path.string() + "': not a regular file");
  EXPECT_EQ(openError(folder.write("empty", ""), 4),
            "the data file '" + folder.file("empty") + "' is empty");
  EXPECT_EQ(openError(folder.write("short", "abcd"), 4),
            "the data file '" + folder.file("short") +
                "' has 4 tokens, one sample needs 5 (the sequence length and one more)");
  EXPECT_EQ(openError(folder.write("text", "aaaaazaaa"), 4, 100),
            "the data file '" + folder.file("text") +
                "' has the token 122 at position 5, the model's vocabulary is 0 to 99");
  EXPECT_EQ(openError(folder.file("text"), 4, 123), "");
}

TEST_F(Data, TheOrderOfBytesStaysAsItWas) {
  openBytes(std::string(401, 'a'), 4);
  Sampler sampler(data, 0, 100, 9);
  std::vector<uint64_t> order;
  for (uint64_t index : {0, 1, 2, 99, 100, 101, 100000}) {
    order.push_back(sampler.sampleAt(index));
  }
  EXPECT_THAT(order, ElementsAre(47, 59, 46, 95, 36, 2, 36));
}

TEST_F(Data, PartsOfAFileAreShuffledOrReadInOrder) {
  openBytes(std::string(401, 'a'), 4);
  Sampler shuffled(data, 10, 20, 9), inOrder(data, 80, 20, std::nullopt);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 20; ++i) {
    seen.insert(shuffled.sampleAt(i));
    EXPECT_EQ(inOrder.sampleAt(i), 80 + i);
  }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(*seen.begin(), 10u);
  EXPECT_EQ(*seen.rbegin(), 29u);
}

TEST_F(Data, TokensOfALargeFileAreCheckedWhenTheyAreRead) {
  // A hole of zeros with one invalid token near the end; the hole takes no disk space.
  std::string path = folder.write("large.bin", "");
  uint64_t count = Dataset::kCheckedAtOpen + 1001, bad = count - 500;
  std::filesystem::resize_file(path, count * 2);
  std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(std::streamoff(bad * 2));
  stream.write("\x39\x05", 2);
  stream.close();
  ASSERT_EQ(errorOf(data.open(path, std::nullopt, 1000, 1337)), "");
  std::vector<int32_t> out(1000, -1);
  EXPECT_TRUE(data.read(data.sampleCount() - 2, 0, out));
  EXPECT_EQ(out[999], 0);
  EXPECT_EQ(errorOf(data.read(data.sampleCount() - 1, 0, out)),
            "the data file '" + path + "' has the token 1337 at position " + std::to_string(bad) +
                ", the model's vocabulary is 0 to 1336");
}

TEST_F(Data, ANamedPipeDoesNotHang) {
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(openError(folder.file("pipe"), 4), HasSubstr("not a regular file"));
}

TEST_F(Data, AProgramWithoutEvaluationCannotValidate) {
  Program program = makeToy(1, 1);
  program.evaluate.clear();
  DataOptions options;
  options.validationData = folder.write("data", std::string(1000, 'a'));
  RunData run;
  EXPECT_EQ(errorOf(run.open({&program, 1}, options, 0, 5)),
            "this program cannot validate: it was compiled without @evaluate");
}

TEST_F(Data, ValidationsComeAsOftenAsAsked) {
  DataOptions options;
  options.data = folder.write("data", std::string(4001, 'a'));
  options.validationSplit = 0.25; // 62 of 250 samples, which make 7 batches of 8.
  options.validationEvery = 4;
  RunData run;
  Program program = makeToy(1, 1);
  ASSERT_EQ(errorOf(run.open({&program, 1}, options, 8, 18)), "");
  EXPECT_EQ(run.validationBatches(), 7);
  std::vector<int64_t> steps;
  for (int64_t step = 8; step <= 18; ++step) {
    if (run.validatesAt(step)) {
      steps.push_back(step);
    }
  }
  EXPECT_THAT(steps, ElementsAre(8, 12, 16, 18));
  EXPECT_EQ(run.trainingBatch(0).sampler->sampleCount(), 188u);
  EXPECT_EQ(run.validationBatch(0).sampler->sampleAt(0), 188u);
}

TEST(Box, JoinsWhatIsContiguousInBoth) {
  const int64_t shape[] = {2, 3, 4}, same[] = {12, 4, 1}, wider[] = {24, 4, 1};
  EXPECT_EQ(Box(shape, same, same).run(), 24);
  EXPECT_EQ(Box(shape, same, wider).run(), 12);
  const int64_t empty[] = {2, 0, 4};
  Box(empty, same, same).forEachRun([](int64_t, int64_t) { FAIL(); });
}

TEST(Shards, CopiesFromAndToTheWholeAreInverse) {
  const std::vector<Axis> mesh = {{"a", 2}, {"b", 3}, {"c", 2}};
  const TensorLayout layout = {ElementType::I32, {6, 4, 2}, {{1}, {0}, {}}};
  Program ranks;
  ranks.mesh = mesh;
  const Region all = {{0, 0, 0}, layout.globalShape};
  std::vector<int32_t> whole(48), gathered(48, -1);
  std::iota(whole.begin(), whole.end(), 0);
  for (int64_t rank = 0; rank < 12; ++rank) {
    std::vector<int64_t> coordinates = ranks.coordinatesOf(rank);
    std::vector<int32_t> shard(8);
    Region own = localRegion(layout, mesh, coordinates);
    copyOverlap(all, whole.data(), own, shard.data(), sizeof(int32_t));
    EXPECT_EQ(shard[0], coordinates[1] * 16 + coordinates[0] * 4);
    EXPECT_EQ(holdsFirstCopy(layout, coordinates), coordinates[2] == 0);
    if (holdsFirstCopy(layout, coordinates)) {
      copyOverlap(own, shard.data(), all, gathered.data(), sizeof(int32_t));
    }
  }
  EXPECT_EQ(gathered, whole);
}

TEST(Shards, SlabsAreWholeRowsInOrder) {
  Region region = {{5, 3}, {3000, 1000}}; // Of 4000 bytes each.
  int64_t row = 5;
  forEachSlab(region, sizeof(float), [&](const Region &slab, size_t begin) {
    EXPECT_THAT(slab.offset, ElementsAre(row, 3));
    EXPECT_EQ(slab.shape[1], 1000);
    EXPECT_LE(slab.shape[0] * 4000, 8 << 20);
    EXPECT_EQ(begin, size_t(row - 5) * 4000);
    row += slab.shape[0];
  });
  EXPECT_EQ(row, 3005);
  int calls = 0;
  for (const Region &small : {Region{}, Region{{0, 7}, {4, 2}}, Region{{0, 0}, {0, 1 << 30}}}) {
    forEachSlab(small, sizeof(float), [&](const Region &slab, size_t begin) {
      EXPECT_EQ(slab.shape, small.shape);
      EXPECT_EQ(begin, 0U);
      ++calls;
    });
  }
  EXPECT_EQ(calls, 3);
  int64_t longRows = 0;
  forEachSlab({{0, 0}, {3, 4 << 20}}, sizeof(float), [&](const Region &slab, size_t) {
    EXPECT_EQ(slab.shape[0], 1); // A row is never cut.
    ++longRows;
  });
  EXPECT_EQ(longRows, 3);
}

TEST(Shards, PaddingIsNoPartOfTheWhole) {
  const std::vector<Axis> mesh = {{"a", 2}, {"b", 3}};
  const TensorLayout layout = {ElementType::I32, {4, 3}, {{1}, {0}}, {6, 4}};
  Program ranks;
  ranks.mesh = mesh;
  const Region all = {{0, 0}, layout.globalShape};
  std::vector<int32_t> whole(12), gathered(12, -1);
  std::iota(whole.begin(), whole.end(), 1);
  int64_t held = 0;
  for (int64_t rank = 0; rank < 6; ++rank) {
    std::vector<int64_t> coordinates = ranks.coordinatesOf(rank);
    std::vector<int32_t> shard(4);
    Region own = localRegion(layout, mesh, coordinates);
    copyOverlap(all, whole.data(), own, shard.data(), sizeof(int32_t));
    Region data = dataRegion(layout, mesh, coordinates);
    held += data.shape[0] * data.shape[1];
    if (rank == 4) { // Rows 2 and 3 of columns 2 and 3, of which the latter is padding.
      EXPECT_THAT(shard, ElementsAre(9, 0, 12, 0));
      EXPECT_THAT(data.shape, ElementsAre(2, 1));
    }
    if (rank == 5) {
      EXPECT_THAT(shard, ElementsAre(0, 0, 0, 0));
      EXPECT_THAT(data.shape, ElementsAre(0, 1));
    }
    copyOverlap(own, shard.data(), all, gathered.data(), sizeof(int32_t));
  }
  EXPECT_EQ(held, 12);
  EXPECT_EQ(gathered, whole);
}

} // namespace
