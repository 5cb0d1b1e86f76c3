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

/// The files with weights of one folder, mapped. Owns them; any thread may read.
struct Weights {
  struct Entry {
    /// Number of the file.
    size_t file;
    const rt::SafetensorsFile::Tensor *tensor;
  };

  std::vector<std::string> fileNames;
  std::vector<std::unique_ptr<rt::SafetensorsFile>> files;
  std::map<std::string, Entry> tensors;

  /// The tensor of a slot. REQUIRES: the weights have been checked.
  const rt::SafetensorsFile::Tensor &tensorOf(const Slot &slot) const {
    return *tensors.at(slot.tensor).tensor;
  }
};

/// Maps the files with weights in `folder`, if there are any, and lists their tensors; null where
/// there are none, or where something is wrong.
std::unique_ptr<Weights> openWeights(const std::string &folder, desc::Diagnostics &diagnostics);

/// Finds what does not fit the model: tensors that lack, are too many, or have another shape or a
/// type that is not read.
void checkWeights(const std::string &folder, const Config &config, const std::vector<Slot> &slots,
                  const Weights &weights, desc::Diagnostics &diagnostics);

/// `name` in `folder`.
std::string inFolder(const std::string &folder, llvm::StringRef name);

/// A diagnostic of `field` in `file`; either may be empty.
desc::Diagnostic inFile(const std::string &file, const std::string &field,
                        const std::string &message);

/// The text of a file that is to be read as a whole.
desc::Result<std::string> readText(const std::string &file);

inline constexpr const char *kConfigName = "config.json";
inline constexpr const char *kWeightsName = "model.safetensors";
inline constexpr const char *kIndexName = "model.safetensors.index.json";

} // namespace weft::hf

#endif // WEFT_LIB_HUGGINGFACE_WEIGHTS_H
