//===- ImportFiles.h - models of other programs as ours ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_IMPORTFILES_H
#define WEFT_DRIVER_IMPORTFILES_H

#include "llvm/Support/Error.h"

#include <string>

namespace weft {

/// What `weft import` was asked for.
struct ImportFilesOptions {
  /// A checkpoint folder of Hugging Face transformers, or an ONNX file.
  std::string source;
  /// A new folder, or an empty one.
  std::string output;
};

/// Writes the description and the weights of the source into the folder `output`, which is there
/// whole or not at all, and prints what it has written. What is wrong with the source is printed to
/// standard error.
llvm::Error importFiles(const ImportFilesOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_IMPORTFILES_H
