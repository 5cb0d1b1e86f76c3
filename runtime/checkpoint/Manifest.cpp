//===- Manifest.cpp - the description of a checkpoint ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Manifest.h"

#include "support/CheckedMath.h"
#include "support/Json.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>

using namespace weft::rt;
using nlohmann::json;

std::string weft::rt::differences(const RunIdentity &saved, const RunIdentity &now) {
  std::string text;
  auto compare = [&](const char *what, const auto &before, const auto &after) {
    if (before != after) {
      text += concat(text.empty() ? "" : "; ", what, " ", before, ", now ", after);
    }
  };
  compare("model", saved.model, now.model);
  compare("seed", saved.seed, now.seed);
  compare("global batch", saved.globalBatch, now.globalBatch);
  compare("sequence length", saved.sequenceLength, now.sequenceLength);
  auto endText = [](std::optional<int64_t> end) { return end ? std::to_string(*end) : "nowhere"; };
  compare("documents end at", endText(saved.documentEnd), endText(now.documentEnd));
  if (saved.data && now.data) {
    compare("data format", saved.data->format, now.data->format);
    compare("samples", saved.data->samples, now.data->samples);
  }
  return text;
}

std::string weft::rt::shardFile(int64_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "rank-%05lld.safetensors", static_cast<long long>(rank));
  return name;
}

std::string weft::rt::placeText(const Region &region, std::span<const int64_t> shape) {
  return shapeText(region.offset) + " of " + shapeText(shape);
}

/// Returns the first line, the checksum of `rest`.
static std::string firstLine(std::span<const char> rest) {
  Checksum checksum;
  checksum.add(rest);
  return "{\"checksum\": \"" + digestText(checksum.digest()) + "\",\n";
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Returns a list with one element per line, for readability.
template <typename T, typename Make>
static std::string lines(const std::vector<T> &elements, const Make &make) {
  std::string text = "[";
  for (const T &element : elements) {
    text += (text.size() > 1 ? ",\n  " : "\n  ") + toJsonText(make(element));
  }
  return text + "]";
}

static json dataJson(const std::optional<DataIdentity> &data) {
  return data ? json{{"format", data->format}, {"samples", data->samples}} : json();
}

std::string weft::rt::toText(const Manifest &manifest) {
  std::string text;
  auto add = [&](const char *name, const std::string &value) {
    text += concat(text.empty() ? "" : ",\n", "\"", name, "\": ", value);
  };
  const RunIdentity &run = manifest.run;
  add("version", std::to_string(Manifest::kVersion));
  add("model", toJsonText(run.model));
  add("step", std::to_string(manifest.step));
  add("sample", std::to_string(manifest.step * run.globalBatch));
  add("global_batch", std::to_string(run.globalBatch));
  add("sequence_length", std::to_string(run.sequenceLength));
  add("document_end", run.documentEnd ? std::to_string(*run.documentEnd) : "null");
  add("seed", std::to_string(run.seed));
  add("data", toJsonText(dataJson(run.data)));
  add("plan_hash", toJsonText(manifest.planHash));
  add("plan", toJsonText(manifest.planText));
  add("mesh", lines(manifest.mesh, [](const Axis &axis) {
        return json{{"name", axis.name}, {"size", axis.size}};
      }));
  add("shards", lines(manifest.shards, [](const Shard &shard) {
        return json{
            {"file", shard.file}, {"bytes", shard.bytes}, {"checksum", digestText(shard.digest)}};
      }));
  add("tensors", lines(manifest.tensors, [&](const SavedTensor &tensor) {
        json parts = json::array();
        for (const SavedPart &part : tensor.parts) {
          parts.push_back({{"offset", part.region.offset},
                           {"shape", part.region.shape},
                           {"file", manifest.shards[part.shard].file}});
        }
        return json{{"name", tensor.name},
                    {"type", tensor.type},
                    {"shape", tensor.shape},
                    {"pieces", std::move(parts)}};
      }));
  text += "}\n";
  return firstLine(text) + text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Every method returns false after putting the reason into `error`.
class ManifestReader {
public:
  ManifestReader(Manifest &manifest, std::string &error) : manifest(manifest), error(error) {}

  bool read(std::span<const char> text) {
    json root;
    if (!checkFirstLine(text) || !parseObject(text, "it", root, error)) {
      return false;
    }
    JsonFields fields(root, "it", error);
    return readRun(fields) && readMesh(fields) && readShards(fields) && readTensors(fields);
  }

private:
  bool checkFirstLine(std::span<const char> text) {
    size_t length = firstLine({}).size();
    if (text.size() < length) {
      return fail(error, "it has ", text.size(), " bytes, too few for a checksum");
    }
    std::string expected = firstLine(text.subspan(length));
    return std::equal(expected.begin(), expected.end(), text.begin()) ||
           fail(error, "its first line is not the checksum of its other lines");
  }

  bool readRun(JsonFields &fields) {
    int64_t version = 0, sample = 0;
    RunIdentity &run = manifest.run;
    if (!fields.count("version", version)) {
      return false;
    }
    if (version != Manifest::kVersion) {
      return fail(error, "its version is ", version, ", expected ", int64_t(Manifest::kVersion));
    }
    if (!fields.text("model", run.model) || !fields.count("step", manifest.step) ||
        !fields.count("sample", sample) || !fields.count("global_batch", run.globalBatch) ||
        !fields.count("sequence_length", run.sequenceLength) || !fields.bits("seed", run.seed) ||
        !readDocuments(fields) || !readData(fields) ||
        !fields.text("plan_hash", manifest.planHash) || !fields.text("plan", manifest.planText)) {
      return false;
    }
    uint64_t expected = saturatingMul(uint64_t(manifest.step), uint64_t(run.globalBatch));
    return uint64_t(sample) == expected ||
           fail(error, "its sample is ", sample, ", expected ", expected, ", step ", manifest.step,
                " of batches of ", run.globalBatch);
  }

  /// Older checkpoints lack the field.
  bool readDocuments(JsonFields &fields) {
    if (!fields.has("document_end") || fields.isNull("document_end")) {
      return true;
    }
    return fields.count("document_end", manifest.run.documentEnd.emplace());
  }

  bool readData(JsonFields &fields) {
    std::optional<DataIdentity> &data = manifest.run.data;
    if (fields.isNull("data")) {
      return true;
    }
    const json *object = fields.object("data");
    if (!object) {
      return false;
    }
    data.emplace();
    JsonFields of(*object, "data", error);
    return of.text("format", data->format) && of.bits("samples", data->samples);
  }

  bool readMesh(JsonFields &fields) {
    const json *list = fields.array("mesh");
    for (size_t i = 0; list && i < list->size(); ++i) {
      Axis &axis = manifest.mesh.emplace_back();
      JsonFields of((*list)[i], concat("axis ", i), error);
      if (!of.text("name", axis.name) || !of.count("size", axis.size)) {
        return false;
      }
    }
    return list != nullptr;
  }

  bool readShards(JsonFields &fields) {
    const json *list = fields.array("shards");
    for (size_t i = 0; list && i < list->size(); ++i) {
      Shard &shard = manifest.shards.emplace_back();
      std::string digest;
      JsonFields of((*list)[i], concat("shard ", i), error);
      if (!of.text("file", shard.file) || !of.bits("bytes", shard.bytes) ||
          !of.text("checksum", digest)) {
        return false;
      }
      if (!isShardFile(shard.file)) {
        return fail(error, "shard ", i, " has the file name '", shard.file, "', expected one as '",
                    shardFile(0), "'");
      }
      if (!parseDigest(digest, shard.digest)) {
        return fail(error, "shard ", i, " has the checksum '", digest, "', expected one as '",
                    digestText({}), "'");
      }
      if (!numbers.emplace(shard.file, uint32_t(i)).second) {
        return fail(error, "it lists '", shard.file, "' twice");
      }
    }
    return list != nullptr;
  }

  bool readTensors(JsonFields &fields) {
    const json *list = fields.array("tensors");
    std::set<std::string> names;
    for (size_t i = 0; list && i < list->size(); ++i) {
      SavedTensor &tensor = manifest.tensors.emplace_back();
      JsonFields of((*list)[i], concat("tensor ", i), error);
      if (!of.text("name", tensor.name) || !of.text("type", tensor.type) ||
          !of.counts("shape", tensor.shape)) {
        return false;
      }
      if (!names.insert(tensor.name).second) {
        return fail(error, "it lists the tensor '", tensor.name, "' twice");
      }
      const json *parts = of.array("pieces");
      if (!parts || !readParts(*parts, tensor)) {
        return false;
      }
    }
    return list != nullptr;
  }

  bool readParts(const json &list, SavedTensor &tensor) {
    std::set<uint32_t> shards;
    for (const json &element : list) {
      SavedPart &part = tensor.parts.emplace_back();
      std::string file;
      JsonFields of(element, concat("a part of '", tensor.name, "'"), error);
      if (!of.counts("offset", part.region.offset) || !of.counts("shape", part.region.shape) ||
          !of.text("file", file)) {
        return false;
      }
      auto found = numbers.find(file);
      if (found == numbers.end() || !shards.insert(found->second).second) {
        return fail(error, "a part of '", tensor.name, "' is in '", file, "', which is ",
                    found == numbers.end() ? "no shard" : "the place of another part");
      }
      part.shard = found->second;
    }
    return isCovered(tensor) || fail(error, "the parts of '", tensor.name,
                                     "' do not make up its shape ", shapeText(tensor.shape));
  }

  /// Returns true if the parts form a grid without gaps: they are equal, but the last in each
  /// dimension may be shorter.
  static bool isCovered(const SavedTensor &tensor) {
    size_t rank = tensor.shape.size();
    std::vector<int64_t> size(rank, 0);
    for (const auto &[region, shard] : tensor.parts) {
      if (region.shape.size() != rank || region.offset.size() != rank) {
        return false;
      }
      for (size_t dim = 0; dim < rank; ++dim) {
        size[dim] = std::max(size[dim], region.shape[dim]);
      }
    }
    std::set<std::vector<int64_t>> offsets;
    for (const auto &[region, shard] : tensor.parts) {
      if (!offsets.insert(region.offset).second) {
        return false;
      }
      for (size_t dim = 0; dim < rank; ++dim) {
        int64_t left = tensor.shape[dim] - region.offset[dim];
        if (size[dim] == 0 || region.offset[dim] % size[dim] != 0 || left <= 0 ||
            region.shape[dim] != std::min(size[dim], left)) {
          return false;
        }
      }
    }
    uint64_t places = 1;
    for (size_t dim = 0; !tensor.parts.empty() && dim < rank; ++dim) {
      places = saturatingMul(places, uint64_t((tensor.shape[dim] - 1) / size[dim] + 1));
    }
    return places == tensor.parts.size();
  }

  /// Keeps names inside the checkpoint's folder.
  static bool isShardFile(const std::string &name) {
    constexpr size_t kDigits = 5; // Behind "rank-".
    int64_t rank = -1;
    return name.size() > kDigits &&
           std::from_chars(name.data() + kDigits, name.data() + name.size(), rank).ec ==
               std::errc() &&
           rank >= 0 && name == shardFile(rank);
  }

  Manifest &manifest;
  std::string &error;
  /// The numbers of shards by file name.
  std::map<std::string, uint32_t> numbers;
};

} // namespace

bool weft::rt::readManifest(std::span<const char> text, Manifest &manifest, std::string &error) {
  return ManifestReader(manifest, error).read(text);
}
