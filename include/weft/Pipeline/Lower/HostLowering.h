//===- HostLowering.h - how an op becomes loops --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_LOWER_HOSTLOWERING_H
#define WEFT_PIPELINE_LOWER_HOSTLOWERING_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Lower/Code.h"

#include "weft/Pipeline/Lower/HostLowering.h.inc"

namespace weft {

/// Attaches HostLoweringOpInterface to the ops of the `weft` dialect.
void registerHostLoweringModels(mlir::DialectRegistry &registry);

/// Returns the map of two ops, the first of which computes `value` and the second reads it by `use`
/// alone, if the map can take the elements where the first op stores them, or compute them where
/// the second loads them. The value then needs no memory. Returns null if there is no such map.
/// `use` may stand in another function, whose argument is the value.
mlir::Operation *findInlinedMap(mlir::OpResult value, mlir::OpOperand &use);

} // namespace weft

#endif // WEFT_PIPELINE_LOWER_HOSTLOWERING_H
