//===- ModuleText.h - what MLIR's parser must not see ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser calls itself for each bracket that is open and for each term of an
// affine expression, however many there are, and ends the process where the stack
// ends. An alias may stand for more characters than there is time to print. No
// module that we write comes near these limits.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_MODULETEXT_H
#define WEFT_PIPELINE_MODULETEXT_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace weft {

/// Why `text` cannot be given to MLIR's parser, for "FILE:": "line 7: expected at most 256 open
/// brackets"; nothing if it can, which does not mean that it is a module. Any number of threads may
/// call it.
std::optional<std::string> checkModuleText(llvm::StringRef text);

} // namespace weft

#endif // WEFT_PIPELINE_MODULETEXT_H
