//===- WeftOps.td - all ops, by family ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_OPS_TD
#define WEFT_OPS_TD

include "weft/Dialect/Weft/IR/WeftComputeOps.td"
include "weft/Dialect/Weft/IR/WeftModelOps.td"
include "weft/Dialect/Weft/IR/WeftOptimizerOp.td"
include "weft/Dialect/Weft/IR/WeftExpertOps.td"
include "weft/Dialect/Weft/IR/WeftShapeOps.td"
include "weft/Dialect/Weft/IR/WeftQuantizeOps.td"
include "weft/Dialect/Weft/IR/WeftStructureOps.td"
include "weft/Dialect/Weft/IR/WeftVisionOps.td"
include "weft/Dialect/Weft/IR/WeftCollectiveOps.td"

#endif // WEFT_OPS_TD
