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

class ManifestReader {
public:
  explicit ManifestReader(Manifest &manifest) : manifest(manifest) {}

  Status read(std::span<const char> text) {
    if (Status status = checkFirstLine(text); !status) {
      return status;
    }
    Result<json> root = parseObject(text, "it");
    if (!root) {
      return root.error();
    }
    JsonFields fields(*root, "it");
    for (auto readSome : {&ManifestReader::readRun, &ManifestReader::readMesh,
                          &ManifestReader::readShards, &ManifestReader::readTensors}) {
      if (Status status = (this->*readSome)(fields); !status) {
        return status;
      }
    }
    return {};
  }

private:
  static Status checkFirstLine(std::span<const char> text) {
    size_t length = firstLine({}).size();
    if (text.size() < length) {
      return makeError("it has ", text.size(), " bytes, too few for a checksum");
    }
    std::string expected = firstLine(text.subspan(length));
    if (!std::equal(expected.begin(), expected.end(), text.begin())) {
      return makeError("its first line is not the checksum of its other lines");
    }
    return {};
  }

  Status readRun(JsonFields &fields) {
    int64_t version = 0, sample = 0;
    RunIdentity &run = manifest.run;
    fields.count("version", version);
    if (fields.status() && version != Manifest::kVersion) {
      return makeError("its version is ", version, ", expected ", int64_t(Manifest::kVersion));
    }
    fields.text("model", run.model);
    fields.count("step", manifest.step);
    fields.count("sample", sample);
    fields.count("global_batch", run.globalBatch);
    fields.count("sequence_length", run.sequenceLength);
    fields.bits("seed", run.seed);
    // Older checkpoints lack this field.
    if (fields.has("document_end") && !fields.isNull("document_end")) {
      fields.count("document_end", run.documentEnd.emplace());
    }
    Status status = readData(fields);
    fields.text("plan_hash", manifest.planHash);
    fields.text("plan", manifest.planText);
    if (!status || !fields.status()) {
      return status ? fields.status() : status;
    }
    uint64_t expected = saturatingMul(uint64_t(manifest.step), uint64_t(run.globalBatch));
    if (uint64_t(sample) != expected) {
      return makeError("its sample is ", sample, ", expected ", expected, ", step ", manifest.step,
                       " of batches of ", run.globalBatch);
    }
    return {};
  }

  Status readData(JsonFields &fields) {
    if (fields.isNull("data")) {
      return {};
    }
    JsonFields of(fields.object("data"), "data");
    DataIdentity &data = manifest.run.data.emplace();
    of.text("format", data.format);
    of.bits("samples", data.samples);
    return fields.status() ? of.status() : fields.status();
  }

  Status readMesh(JsonFields &fields) {
    for (const json &element : fields.array("mesh")) {
      JsonFields of(element, concat("axis ", manifest.mesh.size()));
      Axis &axis = manifest.mesh.emplace_back();
      of.text("name", axis.name);
      of.count("size", axis.size);
      if (!of.status()) {
        return of.status();
      }
    }
    return fields.status();
  }

  Status readShards(JsonFields &fields) {
    for (const json &element : fields.array("shards")) {
      size_t i = manifest.shards.size();
      Shard &shard = manifest.shards.emplace_back();
      std::string digest;
      JsonFields of(element, concat("shard ", i));
      of.text("file", shard.file);
      of.bits("bytes", shard.bytes);
      of.text("checksum", digest);
      if (!of.status()) {
        return of.status();
      }
      if (!isShardFile(shard.file)) {
        return makeError("shard ", i, " has the file name '", shard.file, "', expected one as '",
                         shardFile(0), "'");
      }
      std::optional<Digest> parsed = parseDigest(digest);
      if (!parsed) {
        return makeError("shard ", i, " has the checksum '", digest, "', expected one as '",
                         digestText({}), "'");
      }
      shard.digest = *parsed;
      if (!numbers.emplace(shard.file, uint32_t(i)).second) {
        return makeError("it lists '", shard.file, "' twice");
      }
    }
    return fields.status();
  }

  Status readTensors(JsonFields &fields) {
    std::set<std::string> names;
    for (const json &element : fields.array("tensors")) {
      JsonFields of(element, concat("tensor ", manifest.tensors.size()));
      SavedTensor &tensor = manifest.tensors.emplace_back();
      of.text("name", tensor.name);
      of.text("type", tensor.type);
      of.counts("shape", tensor.shape);
      if (!of.status()) {
        return of.status();
      }
      if (!names.insert(tensor.name).second) {
        return makeError("it lists the tensor '", tensor.name, "' twice");
      }
      const json &parts = of.array("pieces");
      if (!of.status()) {
        return of.status();
      }
      if (Status status = readParts(parts, tensor); !status) {
        return status;
      }
    }
    return fields.status();
  }

  Status readParts(const json &list, SavedTensor &tensor) {
    std::set<uint32_t> shards;
    for (const json &element : list) {
      SavedPart &part = tensor.parts.emplace_back();
      std::string file;
      JsonFields of(element, concat("a part of '", tensor.name, "'"));
      of.counts("offset", part.region.offset);
      of.counts("shape", part.region.shape);
      of.text("file", file);
      if (!of.status()) {
        return of.status();
      }
      auto found = numbers.find(file);
      if (found == numbers.end() || !shards.insert(found->second).second) {
        return makeError("a part of '", tensor.name, "' is in '", file, "', which is ",
                         found == numbers.end() ? "no shard" : "the place of another part");
      }
      part.shard = found->second;
    }
    if (!isCovered(tensor)) {
      return makeError("the parts of '", tensor.name, "' do not make up its shape ",
                       shapeText(tensor.shape));
    }
    return {};
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
  /// The numbers of shards by file name.
  std::map<std::string, uint32_t> numbers;
};

} // namespace

Result<Manifest> weft::rt::readManifest(std::span<const char> text) {
  Manifest manifest;
  if (Status status = ManifestReader(manifest).read(text); !status) {
    return status.error();
  }
  return manifest;
}
