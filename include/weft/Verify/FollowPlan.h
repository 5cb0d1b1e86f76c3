//===- FollowPlan.h - shards one program like another ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `weft verify` runs a small model in place of a large one. A search for the small model would
// choose other shardings. So each op of the small program gets the sharding of its counterpart in
// the large program, and the same collectives and reshards.
//
// Counterparts have equal names and places in the model. The two modules may differ only in sizes,
// numbers and order of layers, precisions and sizes of mesh axes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_FOLLOWPLAN_H
#define WEFT_VERIFY_FOLLOWPLAN_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <vector>

namespace weft::verify {

/// Copies the shardings of `planned` to the types of `module`, and its collectives and reshards to
/// the functions of `module`. Layer i of `module` stands for layer `layers[i]` of `planned`;
/// `layers` is empty for a model without layers.
///
/// REQUIRES: `module` is as apply-plan leaves it, with a mesh of the same axes, and `planned` as
/// search-shardings or reshard-to-collectives leave it; both are of one context.
///
/// Fails, with a diagnostic, if an op of `module` has no counterpart in `planned`; `module` is then
/// unspecified.
llvm::LogicalResult followPlan(mlir::ModuleOp module, mlir::ModuleOp planned,
                               const std::vector<int64_t> &layers);

} // namespace weft::verify

#endif // WEFT_VERIFY_FOLLOWPLAN_H
