//===- CollectiveKinds.h - counts the collectives of a program by kind ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_COLLECTIVEKINDS_H
#define WEFT_VERIFY_COLLECTIVEKINDS_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>

namespace weft::verify {

/// Returns the kind of a collective and its axes: "all-reduce sum over tp".
std::string collectiveKind(mlir::Operation *op);

/// Returns the number of collectives of each kind in the functions of a module, each function
/// counted once. REQUIRES: the module is as Partition leaves it.
std::map<std::string, int64_t> collectiveKinds(mlir::ModuleOp module);

} // namespace weft::verify

#endif // WEFT_VERIFY_COLLECTIVEKINDS_H
