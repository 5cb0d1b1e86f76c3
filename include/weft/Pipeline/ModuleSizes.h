//===- ModuleSizes.h - the model's sizes in a module ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_MODULESIZES_H
#define WEFT_PIPELINE_MODULESIZES_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace weft {

/// Sizes of a module's variables. 0 if the variable is missing, or its size is still unknown, as
/// the batch is before Plan.
struct ModuleSizes {
  /// Sequences in a batch, and tokens in a sequence: the shape of `tokens`.
  int64_t batch = 0, sequence = 0;
  /// Micro-batches in a batch: 1 until Plan has divided it.
  int64_t microBatches = 1;
  /// Number of token values or classes: what the import of a graph noted, else the rows of
  /// `embed.tokens.weight`.
  int64_t vocabulary = 0;
};

ModuleSizes sizesOf(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_PIPELINE_MODULESIZES_H
