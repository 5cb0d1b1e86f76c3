//===- CollectiveKinds.h - what kinds of collectives a program has --------===//
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

/// "all-reduce sum over tp": what a collective does and over which axes.
std::string collectiveKind(mlir::Operation *op);

/// How many collectives of each kind stand in the functions of a module, whatever calls them.
/// REQUIRES: the module is as Partition leaves it.
std::map<std::string, int64_t> collectiveKinds(mlir::ModuleOp module);

} // namespace weft::verify

#endif // WEFT_VERIFY_COLLECTIVEKINDS_H
