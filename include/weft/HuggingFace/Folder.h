//===- Folder.h - a checkpoint folder of transformers ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The folder as `save_pretrained` writes it: config.json, and the weights in
// model.safetensors or in several files that model.safetensors.index.json names.
// Weights are memory-mapped; at most one tensor at a time is in memory besides.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_HUGGINGFACE_FOLDER_H
#define WEFT_HUGGINGFACE_FOLDER_H

#include "weft/HuggingFace/Tensors.h"

#include <memory>

namespace weft::hf {

struct Weights;

/// A checkpoint that has been read and checked. Owns the files that it maps. Any number of threads
/// may read it.
class Folder {
public:
  /// Reads config.json, and, if there are weights, checks that each parameter has its tensor of the
  /// right shape and of a supported type, and that there is no other tensor. Fails with all errors.
  static desc::Result<Folder> open(const std::string &path);

  Folder(Folder &&) noexcept;
  Folder &operator=(Folder &&) noexcept;
  ~Folder();

  const std::string &getPath() const { return path; }
  const Config &getConfig() const { return config; }
  /// False if the folder has no weights, only config.json.
  bool hasWeights() const { return weights != nullptr; }
  /// Returns the places of all parameters, see parameterSlots.
  const std::vector<Slot> &getSlots() const { return slots; }
  size_t countTensors() const;
  size_t countFiles() const;

  /// Writes all parameters to `path` in float32, as compiled programs load them. Leaves no
  /// incomplete file. Returns the errors, none on success.
  /// REQUIRES: hasWeights().
  desc::Diagnostics writeParameters(const std::string &path) const;

  /// Copies this folder into the empty folder `target`, with its parameters replaced by those of
  /// the file `source`, which a compiled program or writeParameters has saved. Names, shapes and
  /// types of tensors, their order and the split into files stay the same. Optimizer state in
  /// `source` is ignored. config.json and other text files are copied. Symbolic links may lead to
  /// files of this folder, and of the model in a cache of the Hugging Face hub. Returns the errors,
  /// none on success; after an error `target` is incomplete.
  /// REQUIRES: hasWeights().
  desc::Diagnostics writeLike(const std::string &source, const std::string &target) const;

private:
  Folder();

  std::string path;
  Config config;
  std::vector<Slot> slots;
  std::unique_ptr<Weights> weights;
};

} // namespace weft::hf

#endif // WEFT_HUGGINGFACE_FOLDER_H
