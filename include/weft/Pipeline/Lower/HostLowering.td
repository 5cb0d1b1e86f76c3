//===- HostLowering.td - how an op becomes loops -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_HOST_LOWERING_TD
#define WEFT_HOST_LOWERING_TD

include "mlir/IR/OpBase.td"

def Weft_HostLoweringOpInterface : OpInterface<"HostLoweringOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    How an op on local tensors becomes loops for the host. Attached to the ops of the
    `weft` dialect in `lib/Pipeline/Lower`, one file for each family of ops.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the code that computes the results. `operands` stand for the op's operands:
        a memref of identity layout for each tensor, and the others as they are. `results`
        holds one memref for each result, to be written whole; its old content means
        nothing, except where it is the memref of an operand that `mayReuse` allows.
      }], "void", "lowerToLoops", (ins "::weft::lower::Code &":$code,
        "::mlir::ValueRange":$operands, "::mlir::ValueRange":$results)>,
    InterfaceMethod<[{
        Whether result number `result` may be written into the storage of operand number
        `operand`, which is then lost.
      }], "bool", "mayReuse", (ins "unsigned":$operand, "unsigned":$result), "", [{
        return false;
      }]>,
  ];
}

#endif // WEFT_HOST_LOWERING_TD
