//===- Passes.h - to MLIR's shard dialect and back ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shard dialect of MLIR expresses shardings by ops on tensors (`shard.shard`), Weft by the
// types of tensors. docs/Interchange.md compares the two. Neither pass belongs to a phase:
// `weft-opt` runs them on the output of phase Plan, and on modules to continue with after Plan.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_CONVERSION_SHARD_PASSES_H
#define WEFT_CONVERSION_SHARD_PASSES_H

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// On a `shard.grid`: the names of its axes, an array of strings.
inline constexpr llvm::StringLiteral kAxesAttrName = "weft.axes";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Conversion/Shard/Passes.h.inc"

} // namespace weft

#endif // WEFT_CONVERSION_SHARD_PASSES_H
