//===- TokenFileTest.cpp - files of tokens, good and bad --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/TokenFile.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::ElementsAre;

namespace {

/// Returns the bytes of `numbers`, concatenated.
template <typename T> std::string bytesOf(std::initializer_list<int64_t> numbers) {
  std::string bytes;
  for (int64_t number : numbers) {
    T typed = T(number);
    bytes.append(reinterpret_cast<const char *>(&typed), sizeof typed);
  }
  return bytes;
}

std::string llmcHeader(int32_t magic, int32_t version, int32_t count) {
  std::string header = bytesOf<int32_t>({magic, version, count});
  header.resize(1024);
  return header;
}

/// The fields of an index. By default: documents of two sequences and of one, and 16-bit tokens.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  int64_t version = 1, code = 8, sequences = 3, documents = 3;
  std::string lengths = bytesOf<int32_t>({2, 3, 1}), begins = bytesOf<int64_t>({0, 4, 10}),
              entries = bytesOf<int64_t>({0, 2, 3}), rest;

  std::string bytes() const {
    return magic + bytesOf<uint64_t>({version}) + bytesOf<uint8_t>({code}) +
           bytesOf<uint64_t>({sequences, documents}) + lengths + begins + entries + rest;
  }
};

class TokenFile : public testing::Test {
protected:
  std::vector<int64_t> read(const std::string &name,
                            std::optional<DataFormat> format = std::nullopt) {
    Result<std::unique_ptr<TokenSource>> opened = openTokens(folder.file(name), format);
    error = errorOf(opened);
    source = opened ? std::move(*opened) : nullptr;
    std::vector<int64_t> tokens(source ? size_t(source->tokenCount()) : 0);
    if (source) {
      source->read(0, tokens);
    }
    return tokens;
  }

  /// Returns the error on opening the file, without the name of its folder.
  std::string fault(const std::string &name, std::optional<DataFormat> format = std::nullopt) {
    read(name, format);
    EXPECT_EQ(source, nullptr) << name;
    std::string place = folder.path.string() + "/";
    for (size_t at; (at = error.find(place)) != std::string::npos;) {
      error.erase(at, place.size());
    }
    return error;
  }

  std::string faultOf(const Index &index) {
    folder.write("m.idx", index.bytes());
    return fault("m");
  }

  TemporaryFolder folder;
  std::unique_ptr<TokenSource> source;
  std::string error;
};

TEST_F(TokenFile, BytesAreTokens) {
  folder.write("text", "a\xFF\n");
  EXPECT_THAT(read("text"), ElementsAre(97, 255, 10));
  EXPECT_EQ(source->format(), DataFormat::Bytes);
  folder.write("text.bin", "a\xFF\n");
  EXPECT_THAT(read("text.bin", DataFormat::Bytes), ElementsAre(97, 255, 10));
  folder.write("empty", "");
  EXPECT_EQ(fault("empty"), "the data file 'empty' is empty");
  EXPECT_EQ(fault("none"), "cannot read 'none': No such file or directory");
}

TEST_F(TokenFile, NanoGptIsKnownByItsName) {
  folder.write("train.bin", bytesOf<uint16_t>({1, 65535, 50256}));
  EXPECT_THAT(read("train.bin"), ElementsAre(1, 65535, 50256));
  EXPECT_EQ(source->format(), DataFormat::NanoGpt);
  std::vector<int64_t> last(1);
  source->read(2, last);
  EXPECT_THAT(last, ElementsAre(50256));
  folder.write("other", bytesOf<uint16_t>({7}));
  EXPECT_THAT(read("other", DataFormat::NanoGpt), ElementsAre(7));
}

TEST_F(TokenFile, NanoGptNeedsWholeTokens) {
  folder.write("odd.bin", "abc");
  EXPECT_EQ(fault("odd.bin"),
            "the data file 'odd.bin' ends in .bin and begins with no known header, but has an odd "
            "number of bytes, 3, which 16-bit tokens do not make; say by --data-format what it is");
  EXPECT_EQ(fault("odd.bin", DataFormat::NanoGpt),
            "the data file 'odd.bin' has 3 bytes, expected an even number for 16-bit tokens");
  EXPECT_THAT(read("odd.bin", DataFormat::Bytes), ElementsAre(97, 98, 99));
  folder.write("headed.bin", llmcHeader(20240520, 1, 0));
  EXPECT_EQ(fault("headed.bin", DataFormat::NanoGpt),
            "the data file 'headed.bin' begins with a header of llm.c, files of nanogpt have none");
}

TEST_F(TokenFile, LlmcIsKnownByItsHeader) {
  folder.write("gpt2.bin", llmcHeader(20240520, 1, 2) + bytesOf<uint16_t>({50256, 3}));
  EXPECT_THAT(read("gpt2.bin"), ElementsAre(50256, 3));
  EXPECT_EQ(source->format(), DataFormat::Llmc);
  folder.write("llama3", llmcHeader(20240801, 7, 2) + bytesOf<uint32_t>({128000, 4294967295}));
  EXPECT_THAT(read("llama3"), ElementsAre(128000, 4294967295));
}

TEST_F(TokenFile, LlmcRefusesWhatItsHeaderDoesNotSay) {
  folder.write("cut", llmcHeader(20240520, 1, 2).substr(0, 1023));
  EXPECT_EQ(fault("cut"),
            "the data file 'cut' has 1023 bytes, the header of llm.c alone takes 1024");
  folder.write("magic", llmcHeader(20240522, 1, 0));
  EXPECT_EQ(fault("magic", DataFormat::Llmc),
            "the data file 'magic' begins with the number 20240522, files of llm.c with 20240520 "
            "or 20240801");
  folder.write("version", llmcHeader(20240801, 1, 0));
  EXPECT_EQ(fault("version"), "the data file 'version' has version 1 of llm.c's format 20240801, "
                              "expected 7");
  for (int32_t count : {-1, 0, 1, 3, 2147483647}) {
    folder.write("count", llmcHeader(20240520, 1, count) + bytesOf<uint16_t>({5, 6}));
    EXPECT_EQ(fault("count"), "the data file 'count' has a header that says " +
                                  std::to_string(count) +
                                  " tokens of 2 bytes, but there are 4 bytes after it");
  }
}

TEST_F(TokenFile, MegatronIsKnownByEitherNameOrTheirPrefix) {
  folder.write("m.idx", Index().bytes());
  folder.write("m.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 60000}));
  for (const char *name : {"m", "m.bin", "m.idx"}) {
    EXPECT_THAT(read(name), ElementsAre(1, 2, 3, 4, 5, 60000)) << name << error;
    EXPECT_EQ(source->format(), DataFormat::Megatron);
    EXPECT_THAT(filesOf(folder.file(name), std::nullopt),
                ElementsAre(folder.file("m.idx"), folder.file("m.bin")));
  }
  EXPECT_THAT(read("m.bin", DataFormat::NanoGpt), ElementsAre(1, 2, 3, 4, 5, 60000));
  EXPECT_EQ(source->format(), DataFormat::NanoGpt);
  // A file with exactly this name comes first.
  folder.write("m", "x");
  EXPECT_THAT(read("m"), ElementsAre('x'));
}

TEST_F(TokenFile, MegatronHasTokensOfEveryWholeType) {
  const std::pair<int64_t, std::string> types[] = {
      {1, bytesOf<uint8_t>({200, 1})},       {2, bytesOf<int8_t>({-56, 1})},
      {3, bytesOf<int16_t>({-56, 1})},       {4, bytesOf<int32_t>({200000, 1})},
      {5, bytesOf<int64_t>({1LL << 40, 1})}, {8, bytesOf<uint16_t>({65535, 1})}};
  const int64_t firsts[] = {200, -56, -56, 200000, 1LL << 40, 65535};
  for (size_t i = 0; i < std::size(types); ++i) {
    Index index;
    index.code = types[i].first;
    index.sequences = 1;
    index.documents = 2;
    index.lengths = bytesOf<int32_t>({2});
    index.begins = bytesOf<int64_t>({0});
    index.entries = bytesOf<int64_t>({0, 1});
    folder.write("t.idx", index.bytes());
    folder.write("t.bin", types[i].second);
    EXPECT_THAT(read("t"), ElementsAre(firsts[i], 1)) << error;
  }
}

TEST_F(TokenFile, MegatronRefusesALyingIndex) {
  folder.write("m.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 6}));
  struct {
    void (*change)(Index &);
    const char *message;
  } cases[] = {
      {[](Index &i) { i.magic[0] = 'm'; },
       "the index 'm.idx' is not one of Megatron: it does not begin with MMIDIDX and two zeros"},
      {[](Index &i) { i.version = 2; }, "the index 'm.idx' has version 2, expected 1"},
      {[](Index &i) { i.code = 0; },
       "the index 'm.idx' has 0 as the type of tokens, expected 1 to 8"},
      {[](Index &i) { i.code = 9; },
       "the index 'm.idx' has 9 as the type of tokens, expected 1 to 8"},
      {[](Index &i) { i.code = 7; },
       "the index 'm.idx' says that tokens are of type float32, expected whole numbers"},
      {[](Index &i) { i.sequences = 4; }, "the index 'm.idx' has 94 bytes, its 4 sequences and 3 "
                                          "entries for documents take 106"},
      {[](Index &i) { i.sequences = -1; },
       "the index 'm.idx' has 94 bytes, its 18446744073709551615 sequences and 3 entries for "
       "documents take more than any file has"},
      {[](Index &i) { i.documents = 1 << 30; },
       "the index 'm.idx' has 94 bytes, its 3 sequences and 1073741824 entries for documents take "
       "8589934662"},
      {[](Index &i) { i.rest = "abc"; }, "the index 'm.idx' has a mode for each sequence, as data "
                                         "of several kinds has; expected text only"},
      {[](Index &i) { i.lengths = bytesOf<int32_t>({2, -3, 1}); },
       "the index 'm.idx' has a sequence 1 of -3 tokens"},
      {[](Index &i) { i.begins = bytesOf<int64_t>({0, 1LL << 60, 10}); },
       "the index 'm.idx' has sequence 1 begin at byte 1152921504606846976, expected 4, where the "
       "one before ends"},
      {[](Index &i) { i.begins = bytesOf<int64_t>({-2, 4, 10}); },
       "the index 'm.idx' has sequence 0 begin at byte -2, expected 0, where the one before ends"},
      {[](Index &i) { i.entries = bytesOf<int64_t>({1, 2, 3}); },
       "the index 'm.idx' has document 0 begin at sequence 1, expected 0"},
      {[](Index &i) { i.entries = bytesOf<int64_t>({0, 4, 3}); },
       "the index 'm.idx' has document 1 begin at sequence 4, expected 0 to 3"},
      {[](Index &i) { i.entries = bytesOf<int64_t>({0, 2, 2}); },
       "the index 'm.idx' has 3 sequences, its documents end at 2"},
      {[](Index &i) { i.lengths = bytesOf<int32_t>({2, 3, 2147483647}); },
       "the data file 'm.bin' has 12 bytes, expected by its index 4294967304"},
      {[](Index &i) { i.lengths = bytesOf<int32_t>({2, 3, 0}); },
       "the data file 'm.bin' has 12 bytes, expected by its index 10"},
  };
  for (const auto &broken : cases) {
    Index index;
    broken.change(index);
    EXPECT_EQ(faultOf(index), broken.message);
  }
}

TEST_F(TokenFile, MegatronNeedsBothFilesWhole) {
  std::string index = Index().bytes();
  folder.write("m.idx", index);
  EXPECT_EQ(fault("m"), "cannot read 'm.bin': No such file or directory");
  EXPECT_EQ(fault("n", DataFormat::Megatron), "cannot read 'n.idx': No such file or directory");
  folder.write("m.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 6}));
  for (size_t size = 0; size < index.size(); ++size) {
    folder.write("m.idx", index.substr(0, size));
    EXPECT_NE(fault("m"), "") << size;
  }
}

TEST_F(TokenFile, FormatsHaveNames) {
  for (DataFormat format :
       {DataFormat::Bytes, DataFormat::NanoGpt, DataFormat::Llmc, DataFormat::Megatron}) {
    EXPECT_EQ(parseDataFormat(nameOf(format)), format);
  }
  EXPECT_EQ(parseDataFormat("Bytes"), std::nullopt);
}

} // namespace
