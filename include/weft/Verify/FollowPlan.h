//===- FollowPlan.h - one program split as another one is -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search that prices a small model splits it in another way than the large model that it was made
// of. `weft verify` wants the large one's way: every op of the small program gets the sharding that
// the op it stands for has in the large one, and what moves a value between ranks there moves it
// here.
//
// Ops are told by their names and places in the model. The two modules may have different sizes,
// numbers of layers, precisions and sizes of mesh axes; nothing else of them may differ.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_FOLLOWPLAN_H
#define WEFT_VERIFY_FOLLOWPLAN_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <vector>

namespace weft::verify {

/// Writes shardings into the types of `module`, and what moves values between ranks into its
/// functions, as they are in `planned`. Layer i of `module` stands for layer `layers[i]` of
/// `planned`; a model without layers has none.
///
/// REQUIRES: `module` is as apply-plan leaves it, with a mesh of the same axes, and `planned` as
/// search-shardings or reshard-to-collectives leave it; both are of one context.
///
/// Fails, with a diagnostic, where an op of `module` stands for none of `planned`; `module` is then
/// unspecified.
llvm::LogicalResult followPlan(mlir::ModuleOp module, mlir::ModuleOp planned,
                               const std::vector<int64_t> &layers);

} // namespace weft::verify

#endif // WEFT_VERIFY_FOLLOWPLAN_H
