//===- WeftDialect.td - the weft dialect --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_TD
#define WEFT_DIALECT_TD

include "mlir/IR/OpBase.td"

def Weft_Dialect : Dialect {
  let name = "weft";
  let cppNamespace = "::weft";
  let summary = "training steps of models, sharded over a mesh of ranks";
  let description = [{
    Holds a training step from Import to Schedule. Up to Plan, tensors have no encoding and are
    whole (global). From Plan to Partition, the encoding of every tensor is a `#weft.sharding`. From
    Partition on, tensors are local to a rank and have no encoding again.

    A dimension of unknown size (`?`) is the batch, which is symbolic until Plan substitutes it. No
    other dimension may be unknown.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerAttributes();";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // WEFT_DIALECT_TD
