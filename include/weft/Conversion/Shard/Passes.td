//===- Passes.td - to MLIR's shard dialect and back ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_CONVERSION_SHARD_PASSES_TD
#define WEFT_CONVERSION_SHARD_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertWeftToShardPass : Pass<"convert-weft-to-shard", "::mlir::ModuleOp"> {
  let summary = "converts shardings in the types of tensors to shard.shard ops";
  let description = [{
    Before: the output of phase Plan, with a sharding in the type of every tensor. After: types have
    no shardings; a `shard.shard` on every tensor states its sharding, and a `weft.reshard` has
    become a `shard.shard` with `annotate_for_users`. The mesh is a `shard.grid`, whose axes have no
    names; the attribute `weft.axes` keeps them.

    The shard dialect cannot express a pending value. If its only use is a reshard, that states the
    sharding, and nothing is lost. Otherwise the pass states that the value is reduced where it
    arises, with a remark, or refuses it.

    ```mlir
    %p = weft.contract "bn,nk->bk" (%y, %w) :
        (tensor<2x8xf64, #weft.sharding<#mesh, [{}, {"tp"} ]>>,
         tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {} ]>>)
        -> tensor<2x4xf64, #weft.sharding<#mesh, [{}, {} ], unreduced = sum{"tp"}>>
    %z = weft.reshard %p : … -> tensor<2x4xf64, #weft.sharding<#mesh, [{}, {} ]>>
    ```

    becomes

    ```mlir
    %whole = shard.sharding @mesh split_axes = [[]] : !shard.sharding
    %p = weft.contract "bn,nk->bk" (%y, %w) : (tensor<2x8xf64>, tensor<8x4xf64>) -> tensor<2x4xf64>
    %z = shard.shard %p to %whole : tensor<2x4xf64>
    ```
  }];
  let options = [
    Option<"refusePending", "refuse-pending", "bool", "false",
           "fail if a pending value would be reduced earlier than in the input">,
  ];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}

def ConvertShardToWeftPass : Pass<"convert-shard-to-weft", "::mlir::ModuleOp"> {
  let summary = "converts shard.shard ops to shardings in the types of tensors";
  let description = [{
    Before: ops of the weft dialect on tensors without a sharding, with one `shard.grid` and with
    `shard.shard` ops, at least on arguments. After: the form of the output of phase Plan. The
    factor rule of an op and the shardings of its operands give the sharding of its results, which
    may be pending. A `weft.reshard` follows if a `shard.shard` states another sharding, or if none
    does and the result would be pending. Factors that no operand carries take the sharding stated
    for the result, as far as its axes cut no other factor. A variable has the sharding of its
    reads. Axes of the grid of one rank are removed; axes without names in `weft.axes` are called
    `axis0`, `axis1`, ….

    Halos and shards of different sizes cannot be expressed in this dialect and are refused. This
    pass is the inverse of the example of `convert-weft-to-shard`.
  }];
  let dependentDialects = ["::weft::WeftDialect"];
}

#endif // WEFT_CONVERSION_SHARD_PASSES_TD
