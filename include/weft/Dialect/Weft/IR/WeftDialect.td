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
    The one dialect that a training step lives in from Import to Schedule. Up to
    Plan its tensors have no encoding and describe the whole (global) value; from
    Plan to Partition every tensor carries a `#weft.sharding` as its encoding; from
    Partition on tensors are local to a rank and have no encoding again.

    A dimension of unknown size (`?`) is the batch, which stays symbolic until Plan
    substitutes it. No other dimension may be unknown.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerAttributes();";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // WEFT_DIALECT_TD
