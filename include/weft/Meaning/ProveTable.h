//===- ProveTable.h - instruction tables compute what Partition left ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MEANING_PROVETABLE_H
#define WEFT_MEANING_PROVETABLE_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Proves that ranks which run the instructions of `programs` one after the other, one rank of each
/// class, compute together what `local`, the module after Partition, says: the same new values of
/// all variables, each of which one class has, and the same observed values, in each class that
/// observes them. Programs are in the order of their classes; `scheduled` are the modules after
/// Schedule of which they were made, which have the code of kernels under the names that the
/// programs use. All modules must be of one context. Fails with an error that names the first
/// instruction that computes something else. docs/Meaning.md says how it works and what it assumes.
/// Changes nothing; for one thread.
mlir::LogicalResult proveTable(mlir::ModuleOp local, llvm::ArrayRef<mlir::ModuleOp> scheduled,
                               llvm::ArrayRef<rt::Program> programs);

} // namespace weft

#endif // WEFT_MEANING_PROVETABLE_H
