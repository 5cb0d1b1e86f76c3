//===- BatchSize.h - the batch as a number --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_BATCHSIZE_H
#define WEFT_PIPELINE_BATCHSIZE_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Replaces every dynamic dimension by `batch`, in every type of the module.
void substituteBatch(mlir::ModuleOp module, int64_t batch);

} // namespace weft

#endif // WEFT_PIPELINE_BATCHSIZE_H
