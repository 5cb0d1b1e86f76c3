//===- CollectiveKinds.h - counts the collectives of a program by kind ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_COLLECTIVEKINDS_H
#define WEFT_VERIFY_COLLECTIVEKINDS_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Mesh/MeshParts.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>

namespace weft::verify {

/// Returns the kind of a collective and its axes: "all-reduce sum over tp". Axes have the names
/// that `named`, a mesh of as many parts, gives their places; thus the sub-axes of a small model
/// have the names of those of the large one.
std::string collectiveKind(mlir::Operation *op, const MeshParts &named);

/// Returns the stages of a transfer: "transfer from stage 0 to stage 1".
std::string transferKind(TransferOp op);

/// Returns the number of collectives and transfers of each kind in the functions of a module, each
/// function counted once. REQUIRES: the module is as Partition leaves it.
std::map<std::string, int64_t> collectiveKinds(mlir::ModuleOp module, const MeshParts &named);

} // namespace weft::verify

#endif // WEFT_VERIFY_COLLECTIVEKINDS_H
