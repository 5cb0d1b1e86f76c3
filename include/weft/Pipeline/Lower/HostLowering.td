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
    The lowering of an op on local tensors to loops for the host. The files of
    `lib/Pipeline/Lower`, one for each family of ops, attach it to the ops of the `weft` dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the code that computes the results. `operands` stand for the op's operands:
        a memref of identity layout for each tensor, and other values unchanged. `results`
        holds one memref for each result; the code must write every element. A result's old
        content is undefined, unless the memref is that of an operand that `mayReuse` allows.
      }], "void", "lowerToLoops", (ins "::weft::lower::Code &":$code,
        "::mlir::ValueRange":$operands, "::mlir::ValueRange":$results)>,
    InterfaceMethod<[{
        Returns true if result number `result` may be written into the storage of operand number
        `operand`, which overwrites the operand.
      }], "bool", "mayReuse", (ins "unsigned":$operand, "unsigned":$result), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        Returns true if the code stores each element of result number `result` once, by itself, and
        never loads it. A map may then take the element before it reaches memory.
      }], "bool", "storesOnce", (ins "unsigned":$result), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        Returns true if the code loads elements of operand number `operand` only one by one. A map
        may then compute them instead.
      }], "bool", "loadsSingly", (ins "unsigned":$operand), "", [{
        return false;
      }]>,
  ];
}

#endif // WEFT_HOST_LOWERING_TD
