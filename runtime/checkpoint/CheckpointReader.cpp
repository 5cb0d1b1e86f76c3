//===- CheckpointReader.cpp - checks and reads one checkpoint -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CheckpointReader.h"

#include "support/Text.h"

#include <cstring>

using namespace weft::rt;

bool CheckpointReader::open(const std::string &folder, int64_t step, Check check,
                            std::string &error) {
  path = folder;
  std::string file = path + "/manifest.json";
  MappedFile text;
  if (!succeeds(text.open(file), error)) {
    return false;
  }
  Result<Manifest> manifest = readManifest(text.bytes());
  if (!manifest) {
    return fail(error, "'", file, "' is damaged: ", manifest.error().message);
  }
  content = std::move(*manifest);
  if (content.step != step) {
    return fail(error, "'", file, "' is that of step ", content.step);
  }
  for (const Shard &shard : content.shards) {
    if (!openShard(shard, check, error)) {
      return false;
    }
  }
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    numbers.emplace(content.tensors[i].name, i);
  }
  return checkParts(error);
}

static bool checkBytes(const std::string &name, const Shard &shard, std::string &error) {
  Result<FileChecksum> found = checksumFile(name);
  if (!found) {
    return fail(error, found.error().message);
  }
  if (found->bytes != shard.bytes) {
    return fail(error, "'", name, "' is damaged: it has ", found->bytes, " bytes, expected ",
                shard.bytes);
  }
  return found->digest == shard.digest ||
         fail(error, "'", name, "' is damaged: its checksum is ", digestText(found->digest),
              ", expected ", digestText(shard.digest));
}

bool CheckpointReader::openShard(const Shard &shard, Check check, std::string &error) {
  std::string name = path + "/" + shard.file;
  if (check == Check::Bytes && !checkBytes(name, shard, error)) {
    return false;
  }
  SafetensorsFile &file = *files.emplace_back(std::make_unique<SafetensorsFile>());
  return succeeds(file.open(name), error);
}

/// Checks that the metadata of each shard agrees with the manifest.
bool CheckpointReader::checkParts(std::string &error) const {
  size_t parts = 0, found = 0;
  for (const SavedTensor &tensor : content.tensors) {
    for (const auto &[region, shard] : tensor.parts) {
      const SafetensorsFile &file = *files[shard];
      auto held = file.tensors.find(tensor.name);
      auto place = file.metadata.find("place/" + tensor.name);
      if (held == file.tensors.end() || held->second.dtype != tensor.type ||
          held->second.shape != region.shape || place == file.metadata.end() ||
          place->second != placeText(region, tensor.shape)) {
        return fail(error, "'", path, "/", content.shards[shard].file, "' does not hold '",
                    tensor.name, "' as its manifest says");
      }
      ++parts;
    }
  }
  for (size_t shard = 0; shard < files.size(); ++shard) {
    found += files[shard]->tensors.size();
    auto step = files[shard]->metadata.find("step");
    if (step == files[shard]->metadata.end() || step->second != std::to_string(content.step)) {
      return fail(error, "'", path, "/", content.shards[shard].file, "' is not of step ",
                  content.step);
    }
  }
  return found == parts || fail(error, "'", path, "/manifest.json' lists ", parts,
                                " parts of tensors, its shards hold ", found);
}

bool CheckpointReader::fits(const NamedTensor &tensor, std::string &error) const {
  auto found = numbers.find(tensor.name);
  if (found == numbers.end()) {
    return fail(error, "'", path, "' lacks '", tensor.name, "'");
  }
  const SavedTensor &saved = content.tensors[found->second];
  const char *type = safetensorsName(tensor.layout.type);
  if (saved.type != type) {
    return fail(error, "'", tensor.name, "' in '", path, "' is ", saved.type, ", expected ", type);
  }
  return saved.shape == tensor.layout.globalShape ||
         fail(error, "'", tensor.name, "' in '", path, "' has shape ", shapeText(saved.shape),
              ", expected ", shapeText(tensor.layout.globalShape));
}

bool CheckpointReader::fits(const Program &program, std::string &error) const {
  std::map<std::string, size_t> others = numbers;
  for (const auto *list : {&program.parameters, &program.optimizerState}) {
    for (const NamedTensor &tensor : *list) {
      if (!fits(tensor, error)) {
        return false;
      }
      others.erase(tensor.name);
    }
  }
  return others.empty() || fail(error, "'", path, "' has the tensor '", others.begin()->first,
                                "', which this program does not have");
}

void CheckpointReader::load(const Program &program, Executor &executor) const {
  for (const auto *list : {&program.parameters, &program.optimizerState}) {
    for (const NamedTensor &tensor : *list) {
      BufferDraft own = executor.draft(tensor.buffer);
      if (!tensor.layout.paddedShape.empty()) {
        std::memset(own.data(), 0, own.bytes().size());
      }
      Region wanted = localRegion(tensor.layout, program.mesh, executor.coordinates());
      for (const auto &[region, shard] : content.tensors[numbers.at(tensor.name)].parts) {
        copyOverlap(region, files[shard]->tensors.at(tensor.name).data.data(), wanted, own.data(),
                    sizeOf(tensor.layout.type));
      }
    }
  }
}
