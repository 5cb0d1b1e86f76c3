//===- ProveFunctions.h - a table, proven one function at a time ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of many layers and micro-batches calls few functions many times, and Schedule keeps the
// calls. So each function is evaluated once before Schedule and once after it, for arguments of
// which nothing is known. If both give the same results, then the calls of the two are one function
// of their arguments, and nothing has to be known of it to compare the functions that call them.
// The modules of several rank classes are evaluated together: what one receives is what another
// sends. In the end each table is compared with its module after Schedule, op by op: if it sends
// the same functions of what it receives, then all tables together do what all modules do.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_PROVEFUNCTIONS_H
#define WEFT_LIB_MEANING_PROVEFUNCTIONS_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft::meaning {

/// Returns true if `programs`, of all rank classes, compute what `local`, the module after
/// Partition, says; `scheduled` are the modules after Schedule. What variables there are is not
/// looked at. Returns false if it cannot be shown, which is also so of some right programs: those
/// in which Schedule moved what a function computes to another one.
bool proveFunctions(mlir::ModuleOp local, llvm::ArrayRef<mlir::ModuleOp> scheduled,
                    llvm::ArrayRef<rt::Program> programs);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_PROVEFUNCTIONS_H
