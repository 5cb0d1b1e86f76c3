//===- Manifest.h - what a checkpoint says of itself ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file manifest.json of a checkpoint: one JSON object whose first line is the
// checksum of all that follows it. docs/Checkpoints.md shows one.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_MANIFEST_H
#define WEFT_RT_CHECKPOINT_MANIFEST_H

#include "program/Shards.h"
#include "support/Checksum.h"

#include <optional>

namespace weft::rt {

/// What tells the data of one run from that of another at no cost.
struct DataIdentity {
  /// How tokens are stored: "bytes".
  std::string format;
  /// Samples to train on, without those that are for validation.
  uint64_t samples = 0;
  bool operator==(const DataIdentity &) const = default;
};

/// What a run must share with the one that it goes on from, or it would train on other samples,
/// or draw other random numbers, than the unbroken run.
struct RunIdentity {
  std::string model;
  uint64_t seed = 0;
  int64_t globalBatch = 0, sequenceLength = 0;
  /// Of `Program`, which attention depends on.
  std::optional<int64_t> documentEnd;
  /// Absent if the run reads none.
  std::optional<DataIdentity> data;
};

/// All that differs, for a reader: "seed 7, now 8"; empty if nothing does. Data that one of the two
/// does not have is no difference.
std::string differences(const RunIdentity &saved, const RunIdentity &now);

/// One file of tensors in a checkpoint.
struct Shard {
  /// "rank-00003.safetensors".
  std::string file;
  uint64_t bytes = 0;
  Digest digest;
};

/// A region of a tensor, and the number of the shard that holds it under the tensor's name.
struct SavedPart {
  Region region;
  uint32_t shard = 0;
};

struct SavedTensor {
  std::string name;
  /// As safetensors name it: "F32".
  std::string type;
  std::vector<int64_t> shape;
  /// Equal parts that cover the tensor, each element once.
  std::vector<SavedPart> parts;
};

struct Manifest {
  static constexpr int64_t kVersion = 1;

  /// The number of steps that the tensors have seen: the step to go on with.
  int64_t step = 0;
  RunIdentity run;
  std::string planHash, planText;
  std::vector<Axis> mesh;
  std::vector<SavedTensor> tensors;
  std::vector<Shard> shards;
};

/// The name of the file that a rank writes.
std::string shardFile(int64_t rank);

/// Where a part lies, as each shard says it of each of its tensors: "[128, 0] of [256, 8]".
std::string placeText(const Region &region, std::span<const int64_t> shape);

std::string toText(const Manifest &manifest);

/// Reads what `toText` wrote. Fails, and safely, on anything else: damaged bytes, another version,
/// parts that do not make up their tensor, files that are not in the checkpoint's folder.
bool readManifest(std::span<const char> text, Manifest &manifest, std::string &error);

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_MANIFEST_H
