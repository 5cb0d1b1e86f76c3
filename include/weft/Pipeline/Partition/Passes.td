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
  let summary = "reorders causal sequences so that their shards are equal work";
  let description = [{
    Before: tensors are whole, with shardings. A later query of causal attention sees more keys, so
    that the last of n shards is twice the average work. After: the sequence is stored in zigzag
    order: first chunk, last chunk, second, last but one, …, of 2n chunks. So each shard has one
    chunk from either end. Inputs are reordered, and so are values without operands, such as rotary
    tables. Attention and dropout compute positions from the order. Observed values are reordered
    back. The pass leaves a module unchanged if some attention is not causal or has a window, if
    attentions are cut into different numbers of shards, or if another op depends on positions.

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
    Before: `weft.reshard` stands where a value changes its sharding. After: each became the
    cheapest sequence of all-reduces, reduce-scatters, all-gathers, all-to-alls, permutes, slices
    and partial sums, as `weft/Planner/Reshard.h` finds it. The cost of a step is its predicted time
    on `machine` or, without a machine, the bytes that a rank sends. Every `weft.constrain` is
    removed, as the shardings already fulfil it.

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
           "price sums of float32 as sums of bf16, see narrow-reductions">,
  ];
}

def LocalizePass : Pass<"localize", "::mlir::ModuleOp"> {
  let summary = "gives every tensor the shape of one rank's shard";
  let description = [{
    Before: tensors are whole, with shardings. After: tensors are one rank's shards, without
    shardings. Ops whose results depend on the position of their shard have its offsets as
    operands, computed from this rank's coordinates. Variables keep the whole type, and observations
    record it: the runtime learns the positions of shards from them.

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
    No library reduces by log-sum-exp. So the pass computes m + log(sum of exp(term - m)), where m
    is the greatest term. That cannot overflow.

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
  let summary = "sends shards around the ranks of a group, so that each rank works on all in turn";
  let description = [{
    Before: tensors are local, and an op may name a group whose ranks' shards it is over. After: no
    op does. A group of n ranks takes n turns, each on the shard that a rank holds then. Every
    operand with the permuted factor is permuted n - 1 times, the least that shows every shard to
    every rank, and each permute stands before the turn that it overlaps with. Results without the
    permuted factor are joined turn by turn. Sums with this factor travel with their shard, and one
    more permute brings them back.

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
  let summary = "lets ranks exchange bf16 where they sum float32";
  let description = [{
    Before: tensors are local. After: all-reduces and reduce-scatters that summed float32 sum bf16.
    Each rank rounds its operand before and widens the sum after. Sums of single numbers stay as
    they are, so that losses and norms stay exact.

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

def SplitBackwardPass : Pass<"split-backward", "::mlir::ModuleOp"> {
  let summary = "makes functions of their own of gradients of weights";
  let description = [{
    Before: backward of a chunk of layers is one function of a micro-batch. After: backward of each
    of `chunks` is two functions, of which the second computes gradients of weights, for which no
    other stage waits, and is marked with `weft.weight_gradients`. Its calls stand right behind
    those of the first, and a schedule may move them further. What the first computes and the second
    uses are results and arguments. Functions of layers are cut in the same way. What belongs to
    which says `BackwardParts.h`: the second keeps what only gradients of weights need, unless it is
    cheap and keeping its operands would take more memory.

    A chunk that sends no gradients on, as the first one, has nothing for the first function: its
    backward is marked as a whole. Modules without stages do not change.

    ```mlir
    func.func private @step_backward_1(%b: index, %sum: …, %w: …, %x: …, %dy: …) {
      %0 = weft.contract "sn,nk->sk"(%dy, %w)
      %1 = weft.contract "sn,sk->nk"(%dy, %x)
      %2 = weft.map ins(%sum, %1 : …) … { … arith.addf … }
      return %0, %2
    }
    …
      %4:2 = weft.call @step_backward_1(%c0, %sum, %w, %x, %dy)
    ```

    becomes

    ```mlir
    func.func private @step_backward_1_inputs(%b: index, %w: …, %dy: …) {
      %0 = weft.contract "sn,nk->sk"(%dy, %w)
      return %0
    }
    func.func private @step_backward_1_weights(%b: index, %sum: …, %x: …, %dy: …) {
      %1 = weft.contract "sn,sk->nk"(%dy, %x)
      %2 = weft.map ins(%sum, %1 : …) … { … arith.addf … }
      return %2
    }
    …
      %4 = weft.call @step_backward_1_inputs(%c0, %w, %dy)
      %5 = weft.call @step_backward_1_weights(%c0, %sum, %x, %dy)
    ```
  }];
  let options = [
    ListOption<"chunks", "chunks", "int64_t", "the chunks whose backward is cut">,
  ];
}

def MutateCollectivePass : Pass<"mutate-collective", "::mlir::ModuleOp"> {
  let summary = "plants a mistake in one collective, to test the tests";
  let description = [{
    Runs after `localize`. Changes number `index` of the all-reduces and transfers, counted over the
    functions of the module in order, by `kind`:

    - `drop` removes it, so that each rank keeps its own operand, or what an earlier transfer of the
      same stages and type brought;
    - `double` repeats it;
    - `scale` halves its result;
    - `axis` reduces over the other axes of the mesh;
    - `operator` takes the maximum for a sum, and the sum for a maximum;
    - `root` gives the result to the first rank along each axis only, and others keep their operand;
    - `infinite` multiplies its result by infinity.

    A transfer can only be dropped. Fails with "no collective number N" if there are fewer. If some
    have the attribute `weft.mutated`, the pass changes these and ignores `index`.

    ```mlir
    %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    %2 = weft.all_reduce sum %1 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    ```

    is what `double` makes of the first line alone.
  }];
  let options = [
    Option<"index", "index", "int64_t", "0", "number of the all-reduce or transfer, from 0">,
    Option<"kind", "kind", "std::string", "\"drop\"", "the mistake">,
  ];
}

def VerifyPartitionPass : Pass<"verify-partition", "::mlir::ModuleOp"> {
  let summary = "checks the conditions that the phases after Partition rely on";
  let description = [{
    Reads only. After Partition only variables' tensors have an encoding, there is no reshard, no
    constraint and no op over the shards of several ranks, and collectives reduce by a sum or a
    maximum.

    ```mlir
    %1 = weft.reshard %0 : …
    // error: verify-partition: a reshard is left, expected reshard-to-collectives to replace it
    ```
  }];
}

#endif // WEFT_PIPELINE_PARTITION_PASSES_TD
