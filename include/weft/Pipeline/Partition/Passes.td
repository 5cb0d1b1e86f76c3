//===- Passes.td - from shardings to the code of one rank ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PARTITION_PASSES_TD
#define WEFT_PIPELINE_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def BalanceSequencesPass : Pass<"balance-sequences", "::mlir::ModuleOp"> {
  let summary = "stores causal sequences so that shards of them are equal work";
  let description = [{
    Before: tensors are whole, with shardings, and a query of causal attention sees the more
    keys the further on it is, so that of n shards the last is twice the average work. After, in
    modules whose attention is all causal, without windows, and cut into n shards alike: the
    sequence is stored in zigzag order, first chunk, last chunk, second, last but one, …, of
    2n chunks, so that each shard has one from either side. Inputs and what is made from
    nothing, as rotary tables, are reordered; attention and dropout know positions by the order; all
    else does not ask for positions. What is observed is reordered back. A module where
    anything else asks is left as it is.

    ```mlir
    %0 = weft.read @tokens : tensor<4x8xi32, …[{}, {"cp"} ]>
    ```

    becomes, for two shards,

    ```mlir
    %0 = weft.read @tokens : tensor<4x8xi32, …[{}, {"cp"} ]>
    %1 = weft.reshard %0 : tensor<4x8xi32, …[{}, {"cp"} ]> -> tensor<4x8xi32, …[{}, {} ]>
    %2 = weft.reorder %1 dim 1 order <4 x 2> : tensor<4x8xi32, …[{}, {} ]> -> tensor<4x8xi32, …[{}, {"cp"} ]>
    ```
  }];
  let statistics = [
    Statistic<"reordered", "reordered", "modules whose sequences are stored in another order">,
  ];
}

def ReshardToCollectivesPass : Pass<"reshard-to-collectives", "::mlir::ModuleOp"> {
  let summary = "turns every reshard into collectives, slices and partial sums";
  let description = [{
    Before: `weft.reshard` stands where a value changes its sharding. After: there is none; each
    became the steps that cost least together, of all-reduces, reduce-scatters, all-gathers,
    all-to-alls, permutes, slices and partial sums, as `weft/Planner/Reshard.h` finds them. They
    cost what `machine` is predicted to take for them, or, without one, the bytes that a rank
    sends. Of a `weft.constrain` nothing is left: what it asks for has been done.

    ```mlir
    %1 = weft.reshard %0 : tensor<4x8xf64, …[{"dp"}, {} ], unreduced = sum{"tp"}> -> tensor<4x8xf64, …[{}, {"tp"} ]>
    ```

    becomes

    ```mlir
    %1 = weft.reduce_scatter sum %0 dim 1 over ["tp"] of #mesh : … -> tensor<4x8xf64, …[{"dp"}, {"tp"} ]>
    %2 = weft.all_gather %1 dim 0 over ["dp"] of #mesh : … -> tensor<4x8xf64, …[{}, {"tp"} ]>
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
    Option<"narrowReductions", "narrow-reductions", "bool", "false",
           "float32 is going to be reduced as bf16, see narrow-reductions">,
  ];
}

def LocalizePass : Pass<"localize", "::mlir::ModuleOp"> {
  let summary = "gives every tensor the shape of one rank's shard";
  let description = [{
    Before: tensors are whole, with shardings. After: they are one rank's shards, without;
    ops whose results depend on where their shard lies have got its offsets, from this
    rank's coordinates. Variables keep the whole type, and observations remember it, for they
    tell the runtime how shards lie.

    ```mlir
    %1 = weft.iota : tensor<8xi32, #weft.sharding<#mesh, [{"cp"} ]>>
    ```

    becomes, for four ranks,

    ```mlir
    %0 = weft.axis_index "cp" of #mesh
    %c2 = arith.constant 2 : index
    %1 = arith.muli %0, %c2 : index
    %2 = weft.iota offset %1 : tensor<2xi32>
    ```
  }];
}

def ExpandLogSumExpPass : Pass<"expand-log-sum-exp", "::mlir::ModuleOp"> {
  let summary = "makes a log-sum-exp reduction from a maximum and a sum";
  let description = [{
    No library reduces by log-sum-exp. With the greatest term m: m + log(sum of exp(term - m)),
    which cannot overflow.

    ```mlir
    %1 = weft.all_reduce logsumexp %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    ```

    becomes

    ```mlir
    %m = weft.all_reduce max %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    %e = weft.map ins(%0, %m : …) … { … math.exp … }
    %s = weft.all_reduce sum %e over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    %1 = weft.map ins(%m, %s : …) … { … math.log … }
    ```
  }];
}

def ExpandPermutationsPass : Pass<"expand-permutations", "::mlir::ModuleOp"> {
  let summary = "lets shards go from rank to rank, and each rank work on them in turn";
  let description = [{
    Before: tensors are local, and an op that is over the shards of a group's ranks says so. After:
    there is none. For n ranks there are n turns, each on the shard that is here, and n - 1
    permutes of every operand that goes round, each sent before the turn that goes on meanwhile:
    the least that lets every rank see all shards. Results that lack the permuted factor are
    joined turn by turn; sums that have it travel with their shard, and go home by a permute more.

    ```mlir
    %output, %lse = weft.attention(%q, %k, %v) … offsets(%o, %o) of [8, 8] over ["cp"] of #mesh : …
    ```

    becomes, for two ranks,

    ```mlir
    %k1 = weft.permute %k over ["cp"] of #mesh from [1, 0] : …
    %v1 = weft.permute %v over ["cp"] of #mesh from [1, 0] : …
    %output0, %lse0 = weft.attention(%q, %k, %v) … offsets(%o, %o) of [8, 8] turn %c0 : …
    %output1, %lse1 = weft.attention(%q, %k1, %v1) … offsets(%o, %o) of [8, 8] turn %c1 : …
    %lse, %share0, %share1 = weft.map ins(%lse0, %lse1 : …) … { … math.log … }
    %output = weft.map ins(%output0, %output1, %share0, %share1 : …) … { … arith.mulf … }
    ```
  }];
  let statistics = [
    Statistic<"expanded", "expanded", "ops that became turns">,
  ];
}

def NarrowReductionsPass : Pass<"narrow-reductions", "::mlir::ModuleOp"> {
  let summary = "lets ranks exchange bf16 where they add up float32";
  let description = [{
    Before: tensors are local. After: all-reduces and reduce-scatters that sum float32 sum bf16,
    each rank's part rounded before and the sum widened after, except of single numbers: losses
    and norms stay exact.

    ```mlir
    %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
    ```

    becomes

    ```mlir
    %1 = weft.map ins(%0 : tensor<4xf32>) … { … arith.truncf … }
    %2 = weft.all_reduce sum %1 over ["tp"] of #mesh : tensor<4xbf16> -> tensor<4xbf16>
    %3 = weft.map ins(%2 : tensor<4xbf16>) … { … arith.extf … }
    ```
  }];
  let statistics = [
    Statistic<"narrowed", "narrowed", "reductions that became ones of bf16">,
  ];
}

def MutateCollectivePass : Pass<"mutate-collective", "::mlir::ModuleOp"> {
  let summary = "plants a mistake in one reduction, to test the tests";
  let description = [{
    Takes the all-reduce number `index`, counted over the functions of the module in order, after
    `localize`, and drops it (`drop`: what this rank has stands for the whole), does it twice
    (`double`), halves its result (`scale`), takes the other axes of the mesh (`axis`), or the maximum
    for a sum and the sum for a maximum (`operator`), or gives the result only to the first rank along each
    axis, so that others keep what they have (`root`), or multiplies it by infinity (`infinite`). Fails with "no collective number N" if there
    are fewer. If some all-reduces have the attribute `weft.mutated`, those are meant, and `index` is
    not looked at.

    ```mlir
    %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    %2 = weft.all_reduce sum %1 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    ```

    is what `double` makes of the first line alone.
  }];
  let options = [
    Option<"index", "index", "int64_t", "0", "number of the reduction, from 0">,
    Option<"kind", "kind", "std::string", "\"drop\"", "the mistake">,
  ];
}

def VerifyPartitionPass : Pass<"verify-partition", "::mlir::ModuleOp"> {
  let summary = "checks what the phases after Partition rely on";
  let description = [{
    Reads only. After Partition no tensor but a variable's has an encoding, there is no
    reshard, no constraint and no op over the shards of several ranks, and collectives reduce by a sum or a
    maximum.

    ```mlir
    %1 = weft.reshard %0 : …
    // error: verify-partition: a reshard is left, expected reshard-to-collectives to replace it
    ```
  }];
}

#endif // WEFT_PIPELINE_PARTITION_PASSES_TD
