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

} // namespace weft

#endif // WEFT_PIPELINE_LOWER_HOSTLOWERING_H
