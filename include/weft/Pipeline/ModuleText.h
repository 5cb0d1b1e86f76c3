//===- ModuleText.h - limits of MLIR's parser -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser recurses for each open bracket and for each term of an affine
// expression, without a limit, so that a deep text overflows the stack and ends the
// process. Nested aliases may stand for more characters than can be printed in any
// reasonable time. This check rejects both; modules that Weft writes stay far below
// its limits.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_MODULETEXT_H
#define WEFT_PIPELINE_MODULETEXT_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace weft {

/// Returns an error, to print after "FILE:", if MLIR's parser could not parse `text` safely: "line
/// 7: expected at most 256 open brackets". Otherwise returns nothing, although `text` may still be
/// no module. Any number of threads may call it.
std::optional<std::string> checkModuleText(llvm::StringRef text);

} // namespace weft

#endif // WEFT_PIPELINE_MODULETEXT_H
