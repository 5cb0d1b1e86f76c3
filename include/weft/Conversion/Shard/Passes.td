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
  let summary = "says by shard.shard what the types of tensors say";
  let description = [{
    Before: what phase Plan makes, a sharding in the type of every tensor. After: the types have
    none; every tensor goes through a `shard.shard` that says how it lies, and a `weft.reshard`
    has become one with `annotate_for_users`. The mesh is a `shard.grid`, whose axes have no
    names there: `weft.axes` keeps them.

    A value that is pending has no form in the shard dialect. Where its only use is a reshard,
    that says already how it shall lie, and nothing is lost. Elsewhere it is said to be reduced
    where it arises, with a remark, or refused.

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
           "fail where a pending value would be reduced earlier than it is">,
  ];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}

def ConvertShardToWeftPass : Pass<"convert-shard-to-weft", "::mlir::ModuleOp"> {
  let summary = "writes into the types of tensors what shard.shard says";
  let description = [{
    Before: ops of this dialect on tensors without a sharding, which one `shard.grid` and
    `shard.shard` ops describe; at least arguments are described. After: what phase Plan makes.
    An op gives what its factor rule makes of its operands as they lie, pending sums among it;
    where it is said to lie otherwise, or nothing is said and it would be pending, a
    `weft.reshard` follows. Factors that no operand carries take what is said of the result, as far
    as its axes cut no other factor. A variable lies as what is read of it. Axes of the grid of one
    rank vanish; those without names in `weft.axes` are called `axis0`, `axis1`, ….

    Halos and shards of different sizes have no form in this dialect and are refused. The
    example of `convert-weft-to-shard` is turned back by this pass.
  }];
  let dependentDialects = ["::weft::WeftDialect"];
}

#endif // WEFT_CONVERSION_SHARD_PASSES_TD
