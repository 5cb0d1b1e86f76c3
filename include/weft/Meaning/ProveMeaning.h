//===- ProveMeaning.h - the parallel program computes what the model says --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MEANING_PROVEMEANING_H
#define WEFT_MEANING_PROVEMEANING_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Proves that a program after Partition computes on its ranks what the program before Plan
/// computes on one rank: each variable's new value and each observed value, in exact arithmetic.
/// `docs/Meaning.md` says how, and what it assumes.
///
/// Prints an error at the op that computes something else, and fails. Reads both modules and
/// changes neither. They must be of one context; several threads may call it for other modules.
llvm::LogicalResult proveMeaning(mlir::ModuleOp whole, mlir::ModuleOp parallel);

} // namespace weft

#endif // WEFT_MEANING_PROVEMEANING_H
