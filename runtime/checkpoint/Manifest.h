//===- Manifest.h - the description of a checkpoint -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file manifest.json of a checkpoint: one JSON object whose first line is the
// checksum of the rest. docs/Checkpoints.md shows an example.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_MANIFEST_H
#define WEFT_RT_CHECKPOINT_MANIFEST_H

#include "program/Shards.h"
#include "support/Checksum.h"

#include <optional>

namespace weft::rt {

/// Properties by which the data of two runs are compared at no cost.
struct DataIdentity {
  /// The format of the samples: "bytes".
  std::string format;
  /// The number of training samples, without those for validation.
  uint64_t samples = 0;
  bool operator==(const DataIdentity &) const = default;
};

/// The properties that a resumed run must share with the first run. If they differ, it trains on
/// other samples, or draws other random numbers, than an uninterrupted run.
struct RunIdentity {
  std::string model;
  uint64_t seed = 0;
  int64_t globalBatch = 0, sequenceLength = 0;
  /// `Program::documentEnd`, which attention depends on.
  std::optional<int64_t> documentEnd;
  /// Absent if the run reads no data.
  std::optional<DataIdentity> data;
};

/// Returns all differences, for the user: "seed 7, now 8"; empty if there are none. Data that only
/// one of the two has is no difference.
std::string differences(const RunIdentity &saved, const RunIdentity &now);

/// One file of tensors in a checkpoint.
struct Shard {
  /// "rank-00003.safetensors".
  std::string file;
  uint64_t bytes = 0;
  Digest digest;
};

/// A region of a tensor, and the number of the shard that holds it, under the tensor's name.
struct SavedPart {
  Region region;
  uint32_t shard = 0;
};

struct SavedTensor {
  std::string name;
  /// The type's name in safetensors: "F32".
  std::string type;
  std::vector<int64_t> shape;
  /// Parts of equal shape that cover each element of the tensor once.
  std::vector<SavedPart> parts;
};

struct Manifest {
  static constexpr int64_t kVersion = 1;

  /// The number of steps done, which is the step to continue with.
  int64_t step = 0;
  RunIdentity run;
  std::string planHash, planText;
  std::vector<Axis> mesh;
  std::vector<SavedTensor> tensors;
  std::vector<Shard> shards;
};

/// Returns the name of the file that a rank writes.
std::string shardFile(int64_t rank);

/// Returns the place of a part, as the metadata of a shard states it for each of its tensors:
/// "[128, 0] of [256, 8]".
std::string placeText(const Region &region, std::span<const int64_t> shape);

std::string toText(const Manifest &manifest);

/// Reads the text that `toText` wrote. Safe on any bytes: fails on damaged text, on another
/// version, on parts that do not make up their tensor, and on files outside the checkpoint's
/// folder.
Result<Manifest> readManifest(std::span<const char> text);

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_MANIFEST_H
