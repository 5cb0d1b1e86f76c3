//===- ValueNumbering.h - values by the ops that give them ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The number of a value is a print of the op that gives it and of the numbers of its operands. So
// the module after Schedule and its instruction table are compared op by op, whatever the order of
// the instructions and their buffers, and without a look into kernels. What is received from
// another rank class is named by its transfer, and by how many of this came before.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_VALUENUMBERING_H
#define WEFT_LIB_MEANING_VALUENUMBERING_H

#include "LocalProgram.h"

namespace weft::meaning {

/// Returns true if the instructions of `program` are uses of the ops of `scheduled`, the module
/// after Schedule, such that all variables end with the same values and the same values are
/// observed and sent. Returns false if that cannot be shown. `ops`, of `arrays`, says what matmuls
/// and collectives compute.
bool isTableOf(mlir::ModuleOp scheduled, const rt::Program &program, Arrays &arrays, LocalOps &ops);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_VALUENUMBERING_H
