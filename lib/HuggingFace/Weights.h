//===- Weights.h - the tensors of a checkpoint folder ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_HUGGINGFACE_WEIGHTS_H
#define WEFT_LIB_HUGGINGFACE_WEIGHTS_H

#include "Json.h"
#include "support/Safetensors.h"
#include "weft/HuggingFace/Folder.h"

#include "llvm/ADT/StringRef.h"

namespace weft::hf {

/// The mapped weight files of a folder. Owns them; any thread may read.
struct Weights {
  struct Entry {
    /// Number of the file.
    size_t file;
    const rt::SafetensorsFile::Tensor *tensor;
  };

  std::vector<std::string> fileNames;
  std::vector<std::unique_ptr<rt::SafetensorsFile>> files;
  std::map<std::string, Entry> tensors;

  /// Returns the tensor of a slot. REQUIRES: the weights have been checked.
  const rt::SafetensorsFile::Tensor &tensorOf(const Slot &slot) const {
    return *tensors.at(slot.tensor).tensor;
  }
};

/// Maps the weight files in `folder` and lists their tensors. Returns null if there are none, or if
/// something is wrong, which it adds to the diagnostics.
std::unique_ptr<Weights> openWeights(const std::string &folder, desc::Diagnostics &diagnostics);

/// Checks that the tensors fit the model: none is missing or unknown, and all have the right shape
/// and a supported type.
void checkWeights(const std::string &folder, const Config &config, const std::vector<Slot> &slots,
                  const Weights &weights, desc::Diagnostics &diagnostics);

/// Returns the path of `name` in `folder`.
std::string inFolder(const std::string &folder, llvm::StringRef name);

/// Makes a diagnostic of `field` in `file`; either may be empty.
desc::Diagnostic inFile(const std::string &file, const std::string &field,
                        const std::string &message);

/// Reads a whole file.
desc::Result<std::string> readText(const std::string &file);

inline constexpr const char *kConfigName = "config.json";
inline constexpr const char *kWeightsName = "model.safetensors";
inline constexpr const char *kIndexName = "model.safetensors.index.json";

} // namespace weft::hf

#endif // WEFT_LIB_HUGGINGFACE_WEIGHTS_H
