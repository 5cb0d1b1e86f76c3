//===- WeftScalarInterfaces.td - what a scalar op inside a map says of itself ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCALAR_INTERFACES_TD
#define WEFT_SCALAR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Weft_ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Attached to those ops of `arith` and `math` that may stand in the region of a
    `weft.map`, in `lib/Interfaces/ExternalModels`.
  }];
  let methods = [
    InterfaceMethod<[{
        How the result depends on a chosen set of map operands, given how the op's operands
        do.
      }], "::weft::Linearity", "getLinearity",
      (ins "::llvm::ArrayRef<::weft::Linearity>":$operands), "", [{
        return ::weft::joinNonlinear(operands);
      }]>,
    InterfaceMethod<[{
        Whether the result is zero where those operands are for which `zeros` says so, and all
        others are finite, and no divisors of zero. True only where that is certain.
      }], "bool", "isZero", (ins "::llvm::ArrayRef<bool>":$zeros), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        Builds the contribution of the result's gradient to each operand's; leaves null
        where there is none.
      }], "void", "buildScalarGradient", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::Value":$gradient, "::llvm::SmallVectorImpl<::mlir::Value> &":$operands)>,
    InterfaceMethod<"Floating-point operations that the op counts as.",
      "double", "getFlops", (ins), "", [{ return 1; }]>,
  ];
}

#endif // WEFT_SCALAR_INTERFACES_TD
