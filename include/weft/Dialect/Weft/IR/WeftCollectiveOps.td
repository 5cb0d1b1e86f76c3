//===- WeftCollectiveOps.td - reshards and collectives -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COLLECTIVE_OPS_TD
#define WEFT_COLLECTIVE_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_ReshardOp : Weft_Op<"reshard", [Pure]> {
  let summary = "the same value under another sharding";
  let description = [{
    The only op that changes a sharding before Partition, which turns it into collectives.

    **Constraints:**
    - reshard_c1: both types have a sharding, on the same mesh, and differ in nothing else.
    - reshard_c2: axes become unreduced only by a sum, and the operator of axes that stay unreduced
      does not change.
  }];
  let arguments = (ins Weft_Tensor:$input);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

/// A movement between the ranks of a group: ranks whose coordinates differ only in `axes`. A rank's
/// number in its group is row-major in its coordinates, the first axis major.
class Weft_GroupOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, [Pure] # traits> {
  let results = (outs Weft_Tensor:$output);
  let hasVerifier = 1;
}

def Weft_AllReduceOp : Weft_GroupOp<"all_reduce"> {
  let summary = "the reduced value of all ranks of a group, on each rank";
  let description = [{
    Before Partition makes tensors local, the op removes `axes` from the unreduced axes.

    **Constraints:**
    - all_reduce_c1: sharded, the input is pending by `reduction` over `axes`, and the output
      is the same without them.
    - all_reduce_c2: local, input and output have the same type.
    - group_c1: `axes` are distinct axes of the mesh, and there is at least one.
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_MeshAttr:$mesh, StrArrayAttr:$axes,
                       Weft_ReductionKindAttr:$reduction);
  let assemblyFormat = [{
    `` $reduction $input `over` custom<GroupAxes>($axes, $mesh) attr-dict `:` type($input) `->` type($output)
  }];
}

def Weft_AllGatherOp : Weft_GroupOp<"all_gather"> {
  let summary = "the shards of all ranks of a group, joined along a dimension";
  let description = [{
    **Constraints:**
    - all_gather_c1: sharded, `axes` are the last (minor) axes of the input's dimension `dim`,
      and the output is the same without them.
    - all_gather_c2: local, the output has the input's type, but is n times as long in `dim`, where
      the group has n ranks.
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_MeshAttr:$mesh, StrArrayAttr:$axes,
                       I64Attr:$dim);
  let assemblyFormat = [{
    $input `dim` $dim `over` custom<GroupAxes>($axes, $mesh) attr-dict `:` type($input) `->` type($output)
  }];
}

def Weft_ReduceScatterOp : Weft_GroupOp<"reduce_scatter"> {
  let summary = "each rank's shard of the reduced value";
  let description = [{
    The result of an all-reduce and a slice, for half the time of an all-reduce.

    **Constraints:**
    - reduce_scatter_c1: sharded, the input is pending by `reduction` over `axes`; the output
      has them as the last (minor) axes of dimension `dim` instead.
    - reduce_scatter_c2: local, the input has the output's type, but is n times as long in `dim`,
      where the group has n ranks.
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_MeshAttr:$mesh, StrArrayAttr:$axes,
                       I64Attr:$dim, Weft_ReductionKindAttr:$reduction);
  let assemblyFormat = [{
    `` $reduction $input `dim` $dim `over` custom<GroupAxes>($axes, $mesh) attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Weft_AllToAllOp : Weft_GroupOp<"all_to_all"> {
  let summary = "change of the dimension that is cut";
  let description = [{
    Each rank cuts its shard along `split` and sends one part to each rank of the group. It joins
    the parts that it receives along `concat`.

    **Constraints:**
    - all_to_all_c1: sharded, `axes` are the last (minor) axes of the input's dimension
      `concat` and of the output's dimension `split`, which are distinct dimensions.
    - all_to_all_c2: local, the output is 1/n as long in `split` and n times as long in
      `concat`.
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_MeshAttr:$mesh, StrArrayAttr:$axes,
                       I64Attr:$split, I64Attr:$concat);
  let assemblyFormat = [{
    $input `split` $split `concat` $concat `over` custom<GroupAxes>($axes, $mesh) attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Weft_PermuteOp : Weft_GroupOp<"permute"> {
  let summary = "each rank's shard, on another rank of the group";
  let description = [{
    Rank i of a group gets the shard of rank `sources[i]` of the group. This changes the axes that
    cut a dimension, or their order, but not the number of shards.

    `weft.permute %x over ["dp", "tp"] of #mesh from [0, 2, 1, 3]` takes four ranks from
    `[{"dp","tp"} ]` to `[{"tp","dp"} ]`.

    **Constraints:**
    - permute_c1: `sources` names each rank of the group once.
    - permute_c2: sharded, input and output cut each dimension in the same number of shards and have
      the same unreduced axes, and each rank gets its shard of the output's sharding.
    - permute_c3: local, input and output have the same type.
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_MeshAttr:$mesh, StrArrayAttr:$axes,
                       DenseI32ArrayAttr:$sources);
  let assemblyFormat = [{
    $input `over` custom<GroupAxes>($axes, $mesh) `from` $sources attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Weft_SliceOp : Weft_GroupOp<"slice"> {
  let summary = "this rank's shard of a value that all ranks of a group hold";
  let description = [{
    Moves nothing between ranks.

    **Constraints:**
    - slice_c1: sharded, the output has `axes` as the last (minor) axes of dimension `dim`, and
      the input is the same without them.
    - slice_c2: local, the output is 1/n as long in `dim`.
    - slice_c3: local, `index` is given, this rank's number in its group.
  }];
  let arguments = (ins Weft_Tensor:$input, Optional<Index>:$index, Weft_MeshAttr:$mesh,
                       StrArrayAttr:$axes, I64Attr:$dim);
  let assemblyFormat = [{
    $input `dim` $dim `over` custom<GroupAxes>($axes, $mesh) (`index` $index^)? attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Weft_PartialOp : Weft_GroupOp<"partial"> {
  let summary = "a value that all ranks of a group hold, made a pending sum";
  let description = [{
    The first rank of each group keeps the value, the others have zero. Moves nothing between ranks.

    **Constraints:**
    - partial_c1: sharded, the output is pending by a sum over `axes` and over the input's unreduced
      axes.
    - partial_c2: local, input and output have the same type, and `index` is given.
  }];
  let arguments = (ins Weft_FloatTensor:$input, Optional<Index>:$index, Weft_MeshAttr:$mesh,
                       StrArrayAttr:$axes);
  let assemblyFormat = [{
    $input `over` custom<GroupAxes>($axes, $mesh) (`index` $index^)? attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Weft_AxisIndexOp : Weft_Op<"axis_index", [Pure]> {
  let summary = "this rank's coordinate on a mesh axis";
  let description = [{
    **Constraints:**
    - axis_index_c1: the axis exists in the mesh.
  }];
  let arguments = (ins StrAttr:$axis, Weft_MeshAttr:$mesh);
  let results = (outs Index:$output);
  let assemblyFormat = "$axis `of` $mesh attr-dict";
  let hasVerifier = 1;
}

#endif // WEFT_COLLECTIVE_OPS_TD
