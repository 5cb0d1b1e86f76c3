//===- HuggingFaceFolders.cpp - folders of transformers with a damaged file ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small GPT-2 in two files: "c" damages config.json, "i" the index, and "s" the second
// file. A folder that can be opened is imported and exported again.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "Patch.h"

#include "support/Safetensors.h"
#include "tests/TemporaryFolder.h"
#include "weft/HuggingFace/Folder.h"

#include "llvm/Support/JSON.h"

using namespace weft;

namespace {

constexpr const char *kConfig = "config.json", *kIndex = "model.safetensors.index.json";
constexpr const char *kShards[] = {"model-1.safetensors", "model-2.safetensors"};
constexpr const char *kConfigText =
    R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 4,)"
    R"( "vocab_size": 5})";

/// The tensors of a config, each once.
std::map<std::string, std::vector<int64_t>> tensorsOf(const hf::Config &config) {
  std::map<std::string, std::vector<int64_t>> tensors;
  for (const hf::Slot &slot : hf::parameterSlots(config, /*hasPrefix=*/true)) {
    tensors.emplace(slot.tensor, slot.tensorShape);
  }
  return tensors;
}

Files makeFolder() {
  std::vector<rt::TensorHeader> headers[2];
  uint64_t elements[2] = {};
  llvm::json::Object places;
  for (const auto &[name, shape] : tensorsOf(*hf::parseConfig(kConfigText, kConfig, "name"))) {
    size_t shard = places.size() % 2;
    headers[shard].push_back({name, rt::ElementType::F32, shape});
    uint64_t count = 1;
    for (int64_t dim : shape) {
      count *= uint64_t(dim);
    }
    elements[shard] += count;
    places[name] = kShards[shard];
  }
  Files files = {{kConfig, kConfigText}};
  llvm::raw_string_ostream(files[kIndex])
      << llvm::json::Value(llvm::json::Object{{"weight_map", std::move(places)}});
  for (size_t i = 0; i < std::size(kShards); ++i) {
    files[kShards[i]] = rt::safetensorsHeader(headers[i], {{"format", "pt"}}) +
                        std::string(size_t(4 * elements[i]), '\0');
  }
  return files;
}

/// Imports the folder, and exports what it was imported as.
void importAndExport(const hf::Folder &folder, const rt::TemporaryFolder &place) {
  std::string imported = place.file("imported"), exported = place.file("exported");
  require(folder.writeParameters(imported).empty(), "what was checked can be imported");
  std::filesystem::create_directory(exported);
  require(folder.writeLike(imported, exported).empty(), "and exported again");
  require(bool(hf::Folder::open(exported)), "and imported again");
  std::filesystem::remove_all(exported);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const rt::TemporaryFolder place;
  static const Files whole = makeFolder();
  std::optional<Patch> patch = Patch::read(data, size);
  const std::map<char, const char *> names = {{'c', kConfig}, {'i', kIndex}, {'s', kShards[1]}};
  if (!patch || !names.count(patch->file)) {
    return 0;
  }
  std::filesystem::path path = place.path / "folder";
  std::filesystem::create_directory(path);
  Files files = whole;
  patch->apply(files[names.at(patch->file)]);
  for (const auto &[name, content] : files) {
    place.write("folder/" + name, content);
  }
  desc::Result<hf::Folder> folder = hf::Folder::open(path);
  require(bool(folder) == folder.diagnostics().empty(), "either a result or a reason");
  for (const desc::Diagnostic &diagnostic : folder.diagnostics()) {
    require(!diagnostic.str().empty() && diagnostic.str().find('\n') == std::string::npos,
            "each mistake is explained in one line");
  }
  if (folder && folder->hasWeights()) {
    importAndExport(*folder, place);
  }
  return 0;
}
