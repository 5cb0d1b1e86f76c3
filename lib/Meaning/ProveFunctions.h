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
// In the end the table is compared with the module after Schedule, op by op.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_PROVEFUNCTIONS_H
#define WEFT_LIB_MEANING_PROVEFUNCTIONS_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft::meaning {

/// Returns true if `program` computes what `local`, the module after Partition, says; `scheduled`
/// is the module after Schedule. Layouts of variables are not looked at. Returns false if that
/// cannot be shown, which is also so of some right programs: those in which Schedule moved what a
/// function computes to another one.
bool proveFunctions(mlir::ModuleOp local, mlir::ModuleOp scheduled, const rt::Program &program);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_PROVEFUNCTIONS_H
