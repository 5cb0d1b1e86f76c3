//===- WeftInterfaces.td - what ops say of themselves, one thing each -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_INTERFACES_TD
#define WEFT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Weft_ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Says how an op may be sharded. Verification, propagation and partitioning ask every op by it.
    The other interfaces of this file are for ops that have more to say: without them, an op has the
    cost of `costOf` and the padding of its rule (`mayBePadded`, `isNothingBeyond`), and its result
    depends neither on the position of its shard nor on its length.
  }];
  let methods = [
    InterfaceMethod<"The factors of the op and the dimensions that carry them.",
      "::weft::FactorRule", "getFactorRule">,
    InterfaceMethod<[{
        Returns true if f(a + b) = f(a) + f(b), where a and b stand for the given operands taken
        together and all others are held fixed. Only then may these operands be pending sums.
      }], "bool", "isAdditiveIn", (ins "::llvm::ArrayRef<unsigned>":$operands), "", [{
        return false;
      }]>,
  ];
  let verify = [{ return ::weft::verifyFactorRule($_op); }];
}

def Weft_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::weft";
  let description = "Says what an op costs. Ask by `costOf`, which answers for all ops.";
  let methods = [
    InterfaceMethod<"Operations and bytes of memory traffic, as functions of the batch.",
      "::weft::OpCost", "getCost">,
  ];
}

def Weft_PositionOpInterface : OpInterface<"PositionOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose result depends on an element's position in the whole tensor. When it works on a
    shard, it needs the shard's position.
  }];
  let methods = [
    InterfaceMethod<"The factors whose global offset the op needs when it works on a shard.",
      "::llvm::SmallVector<unsigned>", "getPositionFactors">,
    InterfaceMethod<[{
        Sets the global offset (type `index`) and the global size of each factor of
        getPositionFactors. Called when the op has just been made local to a shard.
      }], "void", "setPosition", (ins "::mlir::ValueRange":$offsets,
                                      "::llvm::ArrayRef<int64_t>":$globalSizes)>,
    InterfaceMethod<[{
        Returns the offsets and sizes that setPosition set, or sizes without offsets, which
        setUnpaddedSizes set. An op on a whole tensor has a position too if that tensor is part of a
        larger one, as that of a micro-batch.
      }], "::weft::Position", "getPosition">,
  ];
}

def Weft_OrderOpInterface : OpInterface<"OrderOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op that takes elements by their position even if its tensors are stored in another order.
  }];
  let methods = [
    InterfaceMethod<[{
        Sets the order in which the op's tensors are stored along `factor`, one of its position
        factors.
      }], "void", "setOrder", (ins "unsigned":$factor, "::weft::ZigzagAttr":$order)>,
  ];
}

def Weft_PaddingOpInterface : OpInterface<"PaddingOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Says more about padding than follows from an op's factor rule. Ask by `mayBePadded` and
    `isNothingBeyond`, which answer for all ops.
  }];
  let methods = [
    InterfaceMethod<[{
        Returns true if tensors may be padded along `factor`: elements of results outside of the
        padding then do not depend on padding of operands. If a result lacks the factor,
        isNothingBeyond must hold as well.
      }], "bool", "mayBePadded", (ins "unsigned":$factor), "", [{
        return ::weft::mayBePaddedByRule($_op, factor);
      }]>,
    InterfaceMethod<[{
        Returns true if padding along `factor` adds nothing to result number `result`: the result is
        zero in the padding, or, if it lacks the factor, the padding of operands does not change it.
        Assumes that the operands numbered `zeros` are zero in the padding and all others are finite
        there.
      }], "bool", "isNothingBeyond", (ins "unsigned":$factor, "::llvm::ArrayRef<unsigned>":$zeros,
                                          "unsigned":$result), "", [{
        return ::weft::isAdditiveInSome($_op, zeros);
      }]>,
  ];
}

def Weft_UnpaddedSizesOpInterface : OpInterface<"UnpaddedSizesOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op that numbers elements by the sizes of the whole, or leaves out the padding: it needs the
    sizes of padded tensors without their padding.
  }];
  let methods = [
    InterfaceMethod<"The factors whose sizes without padding the op needs.",
      "::llvm::SmallVector<unsigned>", "getSizedFactors">,
    InterfaceMethod<[{
        Sets the size without padding of each factor of getSizedFactors. Called when tensors of an
        op that is not local yet have just been padded.
      }], "void", "setUnpaddedSizes", (ins "::llvm::ArrayRef<int64_t>":$sizes)>,
    InterfaceMethod<"Returns the sizes that the op has been given, or nothing.",
      "::llvm::ArrayRef<int64_t>", "getUnpaddedSizes">,
  ];
}

def Weft_KernelNumbersOpInterface : OpInterface<"KernelNumbersOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op with an attribute that often differs where all else is equal. In kernels it is an operand,
    so that one kernel serves all of them.
  }];
  let methods = [
    InterfaceMethod<"Replaces such attributes by operands, whose constants precede the op.", "void",
      "turnNumbersIntoOperands">,
  ];
}

def Weft_PermutationOpInterface : OpInterface<"PermutationOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op with a permutation among its factors (see FactorRule.h). Once it is local and its permuted
    factor is cut, it stands for the work of a whole group, as if it saw the shards of all its
    ranks. Partition expands it by this interface: one op for each shard, a turn, and ops that join
    the turns' results.
  }];
  let methods = [
    InterfaceMethod<"The axes along which shards are passed on, or null.", "::mlir::ArrayAttr",
      "getPermutedAxes">,
    InterfaceMethod<"The mesh of these axes, or null.", "::weft::MeshAttr", "getPermutedMesh">,
    InterfaceMethod<"Sets both. Called when the op has just been made local.", "void",
      "setPermutation", (ins "::weft::MeshAttr":$mesh, "::mlir::ArrayAttr":$axes)>,
    InterfaceMethod<[{
        Returns true if later positions of the partner need more shards, as in causal attention:
        equal shards in the order of positions are then unequal work.
      }], "bool", "growsWithPosition">,
    InterfaceMethod<[{
        Builds the op of one turn. Those of `operands` that have the permuted factor are shards that
        were passed on by `turn` ranks. Results may have wider float types.
      }], "::mlir::Operation *", "createTurn", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::ValueRange":$operands, "::mlir::Value":$turn)>,
    InterfaceMethod<[{
        Joins the results `some` of some turns with the results `others` of other turns. Both hold,
        in order, only the results that lack the permuted factor.
      }], "::llvm::SmallVector<::mlir::Value>", "joinTurns", (ins
        "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$some, "::mlir::ValueRange":$others)>,
  ];
}

def Weft_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Builds the derivative of an op as ops. Differentiate calls it from the last op to the first.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradient of a scalar with respect to each operand from its gradients with respect
        to the results (null for a result that the scalar does not depend on; at least one is not
        null). Leaves null for operands that have no gradient. Fails, with an error, if a result
        with a gradient is not differentiable. The forward pass has to keep the operands and results
        that the derivative uses.

        A gradient has its value's shape, but may have a wider or narrower float type. An op that
        needs a certain type casts (`createCast`).
      }], "::llvm::LogicalResult", "buildGradient", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::ValueRange":$resultGradients,
        "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>,
  ];
}

#endif // WEFT_INTERFACES_TD
