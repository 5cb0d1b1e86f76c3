//===- WeftOpBase.td - traits and types that all op definitions share --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_OP_BASE_TD
#define WEFT_OP_BASE_TD

include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "weft/Dialect/Weft/IR/WeftAttributes.td"
include "weft/Dialect/Weft/IR/WeftInterfaces.td"

class Weft_Op<string mnemonic, list<Trait> traits = []> : Op<Weft_Dialect, mnemonic, traits>;

def Weft_Differentiable : DeclareOpInterfaceMethods<Weft_DifferentiableOpInterface>;
/// An op with a factor rule, that is additive in no operand.
def Weft_Shardable : DeclareOpInterfaceMethods<Weft_ShardableOpInterface>;
/// An op with a factor rule, that says which operands it is additive in.
def Weft_Additive : DeclareOpInterfaceMethods<Weft_ShardableOpInterface, ["isAdditiveIn"]>;
def Weft_Cost : DeclareOpInterfaceMethods<Weft_CostOpInterface>;
def Weft_Position : DeclareOpInterfaceMethods<Weft_PositionOpInterface>;
def Weft_Order : DeclareOpInterfaceMethods<Weft_OrderOpInterface>;
def Weft_UnpaddedSizes : DeclareOpInterfaceMethods<Weft_UnpaddedSizesOpInterface>;
def Weft_KernelNumbers : DeclareOpInterfaceMethods<Weft_KernelNumbersOpInterface>;
def Weft_Permutation : DeclareOpInterfaceMethods<Weft_PermutationOpInterface>;

/// An op that implements the methods `overrides` of PaddingOpInterface.
class Weft_Padding<list<string> overrides>
    : DeclareOpInterfaceMethods<Weft_PaddingOpInterface, overrides>;

/// Values of a narrow type, bf16 or f16, are computed in its wide type, f32. The wide type of any
/// other float type is the type itself.
def Weft_Float : AnyTypeOf<[F32, F64, BF16, F16]>;
def Weft_FloatTensor : RankedTensorOf<[Weft_Float]>;
def Weft_IdTensor : RankedTensorOf<[I32]>;
def Weft_Tensor : RankedTensorOf<[F32, F64, BF16, F16, I32, I64]>;
def Weft_CounterTensor : 0DTensorOf<[I64]>;
def Weft_Fp8Tensor : RankedTensorOf<[F8E4M3FN, F8E5M2]>;
/// Results of kernels. Kernels for devices also make FP8 operands of matmuls.
def Weft_KernelTensor : AnyTypeOf<[Weft_Tensor, Weft_Fp8Tensor]>;

#endif // WEFT_OP_BASE_TD
