//===- MutationTest.cpp - no input brings the import down -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/HuggingFace/Folder.h"

#include "../Mutation.h"
#include "Configs.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace weft;
using namespace weft::hf;
using namespace weft::hf::test;
namespace fs = std::filesystem;

/// The number of inputs to try, which the environment variable can raise.
static int tries(int unless) {
  const char *factor = std::getenv("WEFT_MUTATIONS");
  return factor ? unless * std::max(1, std::atoi(factor)) : unless;
}

static std::string mutate(const std::string &text, std::mt19937_64 &random) {
  static const std::string words[] = {"-1",      "9223372036854775807",
                                      "1e999",   "null",
                                      "{",       "}",
                                      "[",       "]",
                                      "\"",      ":",
                                      "0",       "\xff",
                                      "true",    ",",
                                      "[[[[",    "1e-9",
                                      "\\u0000", "\\ud8",
                                      "{}",      "\"llama\""};
  return weft::test::mutate(text, words, random);
}

/// Every failure has a message of one line.
static void check(const desc::Diagnostics &diagnostics) {
  for (const desc::Diagnostic &diagnostic : diagnostics) {
    EXPECT_FALSE(diagnostic.message.empty());
    EXPECT_EQ(diagnostic.str().find('\n'), std::string::npos);
  }
}

static std::string allKeys(const std::string &type) {
  return llamaText(type, R"(, "head_dim": 8, "rms_norm_eps": 1e-5, "rope_parameters": {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8, "low_freq_factor": 1,
    "high_freq_factor": 4, "original_max_position_embeddings": 32}, "use_sliding_window": true,
    "sliding_window": 7, "layer_types": ["sliding_attention", "sliding_attention"],
    "tie_word_embeddings": true, "attention_dropout": 0.5)");
}

TEST(Mutation, Configs) {
  const std::string texts[] = {gpt2Text, allKeys("qwen2"), allKeys("qwen3"), llamaText("mistral")};
  for (const std::string &text : texts) {
    desc::Result<Config> config = parseConfig(text, "c", "n");
    EXPECT_TRUE(bool(config)) << desc::str(config.diagnostics());
  }
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int i = 0, end = tries(8000); i < end; ++i) {
    desc::Result<Config> config =
        parseConfig(mutate(texts[size_t(i) % std::size(texts)], random), "c", "n");
    EXPECT_EQ(bool(config), config.diagnostics().empty());
    check(config.diagnostics());
    if (config) {
      ++accepted;
      // An accepted config gives a valid description.
      std::string printed = desc::printModel(config->model);
      EXPECT_TRUE(bool(desc::parseModel(printed))) << printed;
    }
  }
  EXPECT_GT(accepted, 50); // Some must come through, or little was tried.
}

namespace {

/// A checkpoint of one layer in two files, in a folder of its own.
class FolderMutation : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("weft-mutation-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::string config =
        with(allKeys("llama"), "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    // Llama has no windows.
    size_t begin = config.find("\"use_sliding_window\"");
    config.erase(begin, config.find("\"tie_word") - begin);
    write("config.json", config);
    std::vector<Slot> slots = parameterSlots(*parseConfig(config, "c", "n"), true);
    std::string map;
    for (size_t file = 0; file < 2; ++file) {
      std::string header, data;
      for (size_t i = file; i < slots.size(); i += 2) {
        std::string shape;
        int64_t bytes = 2;
        for (int64_t size : slots[i].tensorShape) {
          shape += (shape.empty() ? "" : ",") + std::to_string(size);
          bytes *= size;
        }
        std::string begin = std::to_string(data.size());
        data.append(size_t(bytes), '\1');
        header += (header.empty() ? "{\"" : ",\"") + slots[i].tensor +
                  R"(": {"dtype": "BF16", "shape": [)" + shape + R"(], "data_offsets": [)" + begin +
                  ", " + std::to_string(data.size()) + "]}";
        map += (map.empty() ? "\"" : ",\n\"") + slots[i].tensor + "\": \"" + names[file] + "\"";
      }
      headers[file] = header + "}";
      contents[file] = data;
      writeWeights(file, headers[file]);
    }
    index = "{\"metadata\": {}, \"weight_map\": {" + map + "}}";
    write(kIndex, index);
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  void writeWeights(size_t file, const std::string &header) {
    uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char *>(&length), sizeof(length));
    write(names[file], bytes + header + contents[file]);
  }
  /// Reads the folder, and writes it both ways if it can be read.
  bool read() {
    desc::Result<Folder> read = Folder::open(folder);
    check(read.diagnostics());
    if (!read) {
      return false;
    }
    std::string weights = folder / "out.bin";
    EXPECT_TRUE(read->writeParameters(weights).empty());
    return true;
  }

  static constexpr const char *kIndex = "model.safetensors.index.json";
  const std::string names[2] = {"a.safetensors", "b.safetensors"};
  fs::path folder;
  std::string headers[2], contents[2], index;
};

} // namespace

TEST_F(FolderMutation, Index) {
  ASSERT_TRUE(read());
  std::mt19937_64 random(2);
  for (int i = 0, end = tries(500); i < end; ++i) {
    write(kIndex, mutate(index, random));
    read();
  }
}

TEST_F(FolderMutation, Headers) {
  ASSERT_TRUE(read());
  std::mt19937_64 random(3);
  for (int i = 0, end = tries(500); i < end; ++i) {
    writeWeights(0, mutate(headers[0], random));
    read();
  }
}

TEST_F(FolderMutation, Lengths) {
  std::string whole;
  {
    std::ifstream file(folder / names[0], std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 200) {
    write(names[0], whole.substr(0, length));
    EXPECT_FALSE(read()) << length;
  }
  std::mt19937_64 random(4);
  for (int i = 0, end = tries(300); i < end; ++i) {
    std::string changed = whole;
    changed[random() % 9] = char(random()); // The length of the header, mostly.
    write(names[0], changed);
    read();
  }
}
