//===- Passes.h - the proof of a program's meaning ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MEANING_PASSES_H
#define WEFT_MEANING_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Meaning/Passes.h.inc"

} // namespace weft

#endif // WEFT_MEANING_PASSES_H
