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

/// The options of `weft import`.
struct ImportFilesOptions {
  /// A checkpoint folder of Hugging Face transformers, or an ONNX file.
  std::string source;
  /// A new folder, or an empty one.
  std::string output;
};

/// Writes the description and the weights of the source into the folder `output`, whole or not at
/// all, and prints a summary. Prints errors in the source to standard error.
llvm::Error importFiles(const ImportFilesOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_IMPORTFILES_H
