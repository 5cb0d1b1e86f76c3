//===- ProveTable.h - the instruction table computes what Partition left ------===//
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

/// Proves that a rank that runs the instructions of `program` one after the other computes what
/// `local`, the module after Partition, says: the same new values of all variables, and the same
/// observed values. `scheduled` is the module after Schedule, which has the code of the kernels; it
/// must be of the same context. Fails with an error that names the first instruction that computes
/// something else. docs/Meaning.md says how it works and what it assumes. Changes nothing; for one
/// thread.
mlir::LogicalResult proveTable(mlir::ModuleOp local, mlir::ModuleOp scheduled,
                               const rt::Program &program);

} // namespace weft

#endif // WEFT_MEANING_PROVETABLE_H
