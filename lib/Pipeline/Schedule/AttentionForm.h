//===- AttentionForm.h - attention for a library --------------------------===//
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

/// Returns the attention of a device's library that `kernel` computes by its last op, `work`, with
/// a workspace if the module is for devices. Returns nothing if `work` is no attention, or one that
/// libraries do not support: not of bf16; with dropout, since this dialect has a generator of its
/// own; with two positions that are unknown before the run; or with shards of queries over whole
/// keys that are stored in another order.
std::optional<rt::Attention> classifyAttention(mlir::func::FuncOp kernel, mlir::Operation *work,
                                               MeshAttr mesh);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_ATTENTIONFORM_H
