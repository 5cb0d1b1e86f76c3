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

/// A checkpoint that has been read and checked. Plain to read for any number of threads; owns the
/// files that it maps.
class Folder {
public:
  /// Reads config.json, and, if there are weights, checks that each parameter has its tensor of the
  /// right shape and of a type that we read, and that there is no other tensor. Fails with all that
  /// is wrong.
  static desc::Result<Folder> open(const std::string &path);

  Folder(Folder &&) noexcept;
  Folder &operator=(Folder &&) noexcept;
  ~Folder();

  const std::string &getPath() const { return path; }
  const Config &getConfig() const { return config; }
  /// False where there is only a description.
  bool hasWeights() const { return weights != nullptr; }
  /// The places of all parameters, see parameterSlots.
  const std::vector<Slot> &getSlots() const { return slots; }
  size_t countTensors() const;
  size_t countFiles() const;

  /// Writes all parameters to `path` in float32, as compiled programs load them, whole or not at
  /// all. Empty if all went well.
  /// REQUIRES: hasWeights().
  desc::Diagnostics writeParameters(const std::string &path) const;

  /// Writes this folder anew into the empty folder `target`, with the parameters of the file
  /// `source`, which a compiled program or writeParameters has saved, in the place of its own:
  /// names, shapes, types, and the order and the split into files stay. Optimizer state in `source`
  /// is passed over. config.json and what else there is in text are copied. Empty if all went well;
  /// else the target is to be thrown away.
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
