//===- AttentionForm.h - attention as a library does it ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_ATTENTIONFORM_H
#define WEFT_LIB_PIPELINE_SCHEDULE_ATTENTIONFORM_H

#include "weft-rt/Attention.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// What `kernel`, whose last op is `work`, is for a device's library, with a workspace in a module
/// for devices. Nothing where it is no attention, or one that libraries do not do: not of bf16,
/// with dropout, which here has a generator of its own, with a pair of positions that nobody knows
/// before the run, or of shards of queries over keys that are whole but stored in another order.
std::optional<rt::Attention> classifyAttention(mlir::func::FuncOp kernel, mlir::Operation *work,
                                               MeshAttr mesh);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_ATTENTIONFORM_H
