//===- CheckpointReader.cpp - checks and reads one checkpoint -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CheckpointReader.h"

#include "checkpoint/FiniteTensors.h"
#include "checkpoint/MappedTensors.h"
#include "program/OwnedTensors.h"
#include "support/Elements.h"
#include "support/Text.h"

#include <cstring>

using namespace weft::rt;

Status CheckpointReader::open(const std::string &folder, int64_t step, Check check) {
  path = folder;
  std::string file = path + "/manifest.json";
  MappedFile text;
  if (Status status = text.open(file); !status) {
    return status;
  }
  Result<Manifest> manifest = readManifest(text.bytes());
  if (!manifest) {
    return makeError("'", file, "' is damaged: ", manifest.error().message);
  }
  content = std::move(*manifest);
  if (content.step != step) {
    return makeError("'", file, "' is that of step ", content.step);
  }
  for (const Shard &shard : content.shards) {
    if (Status status = openShard(shard, check); !status) {
      return status;
    }
  }
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    numbers.emplace(content.tensors[i].name, i);
  }
  if (Status status = checkParts(); !status || check == Check::Form) {
    return status;
  }
  return checkFinite();
}

/// Checks that no number is infinite or NaN, as in checkpoints of programs that did not check what
/// they wrote: a run cannot go on from such weights, but from an older checkpoint.
Status CheckpointReader::checkFinite() const {
  for (const SavedTensor &tensor : content.tensors) {
    std::optional<ElementType> type = floatTypeOf(tensor.type);
    for (const auto &[region, shard] : tensor.parts) {
      std::span<const char> bytes = files[shard]->tensors.at(tensor.name).data;
      std::optional<std::string> fault;
      auto check = [&](std::span<const char> some) {
        uint64_t first = uint64_t(some.data() - bytes.data()) / sizeOf(*type);
        fault = notFiniteText(tensor.name, *type, region, some, first, content.step);
        return !fault;
      };
      if (type) {
        files[shard]->mapped().readInParts(bytes, check);
      }
      if (fault) {
        return makeError("'", path, "' is not good: ", *fault);
      }
    }
  }
  return {};
}

static Status checkBytes(const std::string &name, const Shard &shard) {
  Result<FileChecksum> found = checksumFile(name);
  if (!found) {
    return found.error();
  }
  if (found->bytes != shard.bytes) {
    return makeError("'", name, "' is damaged: it has ", found->bytes, " bytes, expected ",
                     shard.bytes);
  }
  if (found->digest != shard.digest) {
    return makeError("'", name, "' is damaged: its checksum is ", digestText(found->digest),
                     ", expected ", digestText(shard.digest));
  }
  return {};
}

Status CheckpointReader::openShard(const Shard &shard, Check check) {
  std::string name = path + "/" + shard.file;
  if (check == Check::Bytes) {
    if (Status status = checkBytes(name, shard); !status) {
      return status;
    }
  }
  SafetensorsFile &file = *files.emplace_back(std::make_unique<SafetensorsFile>());
  return file.open(name);
}

/// Checks that the metadata of each shard agrees with the manifest.
Status CheckpointReader::checkParts() const {
  size_t parts = 0, found = 0;
  for (const SavedTensor &tensor : content.tensors) {
    for (const auto &[region, shard] : tensor.parts) {
      const SafetensorsFile &file = *files[shard];
      auto held = file.tensors.find(tensor.name);
      auto place = file.metadata.find("place/" + tensor.name);
      if (held == file.tensors.end() || held->second.dtype != tensor.type ||
          held->second.shape != region.shape || place == file.metadata.end() ||
          place->second != placeText(region, tensor.shape)) {
        return makeError("'", path, "/", content.shards[shard].file, "' does not hold '",
                         tensor.name, "' as its manifest says");
      }
      ++parts;
    }
  }
  for (size_t shard = 0; shard < files.size(); ++shard) {
    found += files[shard]->tensors.size();
    auto step = files[shard]->metadata.find("step");
    if (step == files[shard]->metadata.end() || step->second != std::to_string(content.step)) {
      return makeError("'", path, "/", content.shards[shard].file, "' is not of step ",
                       content.step);
    }
  }
  if (found != parts) {
    return makeError("'", path, "/manifest.json' lists ", parts,
                     " parts of tensors, its shards hold ", found);
  }
  return {};
}

Status CheckpointReader::checkFits(const NamedTensor &tensor) const {
  auto found = numbers.find(tensor.name);
  if (found == numbers.end()) {
    return makeError("'", path, "' lacks '", tensor.name, "'");
  }
  const SavedTensor &saved = content.tensors[found->second];
  const char *type = safetensorsName(tensor.layout.type);
  if (saved.type != type) {
    return makeError("'", tensor.name, "' in '", path, "' is ", saved.type, ", expected ", type);
  }
  if (saved.shape != tensor.layout.globalShape) {
    return makeError("'", tensor.name, "' in '", path, "' has shape ", shapeText(saved.shape),
                     ", expected ", shapeText(tensor.layout.globalShape));
  }
  return {};
}

Status CheckpointReader::checkFits(std::span<const Program> programs) const {
  std::map<std::string, size_t> others = numbers;
  for (auto [tensor, owner] : savedTensorsOf(programs)) {
    if (Status status = checkFits(*tensor); !status) {
      return status;
    }
    others.erase(tensor->name);
  }
  if (!others.empty()) {
    return makeError("'", path, "' has the tensor '", others.begin()->first,
                     "', which this program does not have");
  }
  return {};
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
        const SafetensorsFile &file = *files[shard];
        MappedTensor{&file, &file.tensors.at(tensor.name), region}.copy(wanted, own.data(),
                                                                        sizeOf(tensor.layout.type));
      }
    }
  }
}
