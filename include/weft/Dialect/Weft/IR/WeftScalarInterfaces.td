//===- WeftScalarInterfaces.td - interface of the scalar ops inside a map -===//
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
    Describes the ops of `arith` and `math` that may occur in the region of a `weft.map`.
    `lib/Interfaces/ExternalModels` implements it.
  }];
  let methods = [
    InterfaceMethod<[{
        Returns how the result depends on a chosen set of map operands, given how the op's operands
        depend on them.
      }], "::weft::Linearity", "getLinearity",
      (ins "::llvm::ArrayRef<::weft::Linearity>":$operands), "", [{
        return ::weft::joinNonlinear(operands);
      }]>,
    InterfaceMethod<[{
        Returns true if the result is certainly zero, given that the operands marked in `zeros` are
        zero and all others are finite and no divisor is zero.
      }], "bool", "isZero", (ins "::llvm::ArrayRef<bool>":$zeros), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        Builds, for each operand, the term that the result's gradient adds to the operand's
        gradient; leaves null where there is none.
      }], "void", "buildScalarGradient", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::Value":$gradient, "::llvm::SmallVectorImpl<::mlir::Value> &":$operands)>,
    InterfaceMethod<"Floating-point operations that the op counts as.",
      "double", "getFlops", (ins), "", [{ return 1; }]>,
  ];
}

#endif // WEFT_SCALAR_INTERFACES_TD
