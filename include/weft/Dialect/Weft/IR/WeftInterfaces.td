//===- WeftInterfaces.td - what an op says of itself --------------------===//
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
    How an op may be sharded, what it costs and what depends on where its shard lies.
    Verification, propagation, partitioning and the cost model ask only this.
  }];
  let methods = [
    InterfaceMethod<"The factors of the op and the dimensions that carry them.",
      "::weft::FactorRule", "getFactorRule">,
    InterfaceMethod<[{
        Whether f(a + b) = f(a) + f(b) where a and b stand for the given operands taken
        together and all others are held fixed. Only then may these operands be
        pending sums.
      }], "bool", "isAdditiveIn", (ins "::llvm::ArrayRef<unsigned>":$operands), "", [{
        return false;
      }]>,
    InterfaceMethod<"Operations and bytes of memory traffic, as functions of the batch.",
      "::weft::OpCost", "getCost", (ins), "", [{
        return ::weft::elementwiseCost($_op, /*flopsPerElement=*/1);
      }]>,
    InterfaceMethod<[{
        The factors whose global offset the op needs once it works on a shard, because
        its result depends on where in the whole tensor an element stands.
      }], "::llvm::SmallVector<unsigned>", "getPositionFactors", (ins), "", [{
        return {};
      }]>,
    InterfaceMethod<[{
        Receives the global offset (type `index`) and the global size of each factor of
        getPositionFactors, when the op has just been made one for a shard.
      }], "void", "setPosition", (ins "::mlir::ValueRange":$offsets,
                                      "::llvm::ArrayRef<int64_t>":$globalSizes), "", [{
        llvm_unreachable("the op has no position factors");
      }]>,
    InterfaceMethod<[{
        What setPosition gave: the op works on a shard of a tensor that is larger than the whole
        that its type says, as that of a micro-batch is, and a rank's shard lies from there on. Or
        sizes without offsets, what setUnpaddedSizes gave.
      }], "::weft::Position", "getPosition", (ins), "", [{
        return {};
      }]>,
    InterfaceMethod<[{
        Receives the size without padding of each factor of getPositionFactors, when tensors of an
        op that is not local yet have just been padded. Kept by ops that number elements by the
        sizes of the whole, or leave out what lies beyond them.
      }], "void", "setUnpaddedSizes", (ins "::llvm::ArrayRef<int64_t>":$sizes), "", [{
        return; // Does not depend on them.
      }]>,
    InterfaceMethod<[{
        Whether tensors may be padded along `factor`, so that elements of results before the end
        do not depend on those of operands beyond it; but what isNothingBeyond asks for must hold
        where results lack the factor.
      }], "bool", "mayBePadded", (ins "unsigned":$factor), "", [{
        const ::weft::FactorRule rule = $_op.getFactorRule();
        const ::weft::Factor &one = rule.factors[factor];
        return one.hasOneLength && (one.kind == ::weft::FactorKind::PassThrough ||
                                    one.kind == ::weft::FactorKind::Reduction);
      }]>,
    InterfaceMethod<[{
        Whether result number `result` is zero beyond the end of `factor`, or, where it lacks
        the factor, nothing is added to it from there: given that the operands numbered `zeros`
        are zero beyond the end, and that there all others are finite.
      }], "bool", "isNothingBeyond", (ins "unsigned":$factor, "::llvm::ArrayRef<unsigned>":$zeros,
                                          "unsigned":$result), "", [{
        return ::weft::isAdditiveInSome($_op, zeros);
      }]>,
    InterfaceMethod<[{
        Receives the order in which the op's tensors are going to be stored along `factor`, one
        of getPositionFactors; null for that of positions. Returns whether the op can do with
        others.
      }], "bool", "setOrder", (ins "unsigned":$factor, "::weft::ZigzagAttr":$order), "", [{
        return false;
      }]>,
  ];
  let verify = [{ return ::weft::verifyFactorRule($_op); }];
}

def Weft_PermutationOpInterface : OpInterface<"PermutationOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op with a permutation among its factors (see FactorRule.h). When it has been made
    local with that cut, it stands for all that the ranks of a group do together, as if it
    saw the shards of all. Partition writes it out, with this: a turn for each shard, and
    what joins the turns.
  }];
  let methods = [
    InterfaceMethod<"The axes that shards go round on, or null.", "::mlir::ArrayAttr",
      "getPermutedAxes">,
    InterfaceMethod<"The mesh of these axes, or null.", "::weft::MeshAttr", "getPermutedMesh">,
    InterfaceMethod<"Receives both, when the op has just been made local.", "void",
      "setPermutation", (ins "::weft::MeshAttr":$mesh, "::mlir::ArrayAttr":$axes)>,
    InterfaceMethod<[{
        Whether the further on a position of the partner is, the more shards it has to do with:
        equal shards, in the order of positions, are then unequal work.
      }], "bool", "growsWithPosition">,
    InterfaceMethod<[{
        Builds the same op for `operands` alone, of which those that have the permuted factor
        are the shards that came `turn` ranks on. Results may have wider float types.
      }], "::mlir::Operation *", "createTurn", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::ValueRange":$operands, "::mlir::Value":$turn)>,
    InterfaceMethod<[{
        Builds the results of shards that were seen in turns, from those of some and those of
        others: those results only that lack the permuted factor, in order.
      }], "::llvm::SmallVector<::mlir::Value>", "joinTurns", (ins
        "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$some, "::mlir::ValueRange":$others)>,
  ];
}

def Weft_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    The derivative of an op, as ops. Differentiate asks it from the last op to the
    first.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradient of a scalar with respect to each operand, given that with
        respect to each result (null where the scalar does not depend on it; at least
        one is not null). Leaves null for operands that have no gradient. Fails, with an
        error, if it has no derivative of a result that has a gradient. The operands and
        results that it uses are what the forward pass has to keep.

        A gradient has its value's shape, but may have another float type, wider or narrower:
        the one that it is known in. An op that needs a certain one casts (`createCast`).
      }], "::llvm::LogicalResult", "buildGradient", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::ValueRange":$resultGradients,
        "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>,
  ];
}

#endif // WEFT_INTERFACES_TD
