//===- Passes.td - a sharding in the type of every tensor ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PASSES_TD
#define WEFT_PIPELINE_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def AccumulateMicroBatchesPass : Pass<"accumulate-micro-batches", "::mlir::ModuleOp"> {
  let summary = "takes a batch part after part and adds up";
  let description = [{
    Before: `?` stands for the batch. After: it stands for a micro-batch, `accumulation` of which are
    the batch. What a public function does for samples is in a private one, which it calls for each
    micro-batch with the sums so far. An input has its micro-batches as its first dimension, and
    ops that number samples know which theirs are. Sums may be pending from one micro-batch to the
    next.

    A function for which samples are no matter stays as it is. Fails where what one sample gives
    depends on what others give, as with a norm over the batch, and where a result is no sum over
    samples: a micro-batch does not know it.

    ```mlir
    weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
    …
      %0 = weft.read @x : tensor<?x4xf64>
      %1 = weft.contract "bk->k"(%0) : (tensor<?x4xf64>) -> tensor<4xf64>
      weft.observe "loss", %1 : tensor<4xf64>
    ```

    becomes, with an accumulation of 2,

    ```mlir
    weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>
    func.func private @step_micro_batch(%number: index, %sum: tensor<4xf64>) -> tensor<4xf64> {
      %0 = weft.read @x : tensor<2x?x4xf64>
      %1 = weft.select %0[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
      %2 = weft.contract "bk->k"(%1) : (tensor<?x4xf64>) -> tensor<4xf64>
      %3 = weft.map ins(%sum, %2 : …) … { … arith.addf … }
      return %3
    …
      %0 = weft.fill constant 0.0 : tensor<4xf64>
      %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0"
      %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1"
      weft.observe "loss", %2 : tensor<4xf64>
    ```
  }];
  let options = [
    Option<"accumulation", "accumulation", "int64_t", "1", "micro-batches in a step">,
    Option<"samples", "samples", "int64_t", "1", "samples in a step">,
  ];
  let dependentDialects = ["::weft::WeftDialect", "::mlir::arith::ArithDialect"];
}

def ApplyPlanPass : Pass<"apply-plan", "::mlir::ModuleOp"> {
  let summary = "writes what a plan pins into variables and ops";
  let description = [{
    Before: no tensor has a sharding, and the batch is `?`. After: the batch is a number, the module
    knows the mesh, and variables and ops have `weft.pins`: for each dimension of a variable and each
    factor of an op, the axes that the plan cuts it by, or unit where it says nothing. The plan
    speaks of dimensions by the names that variables give them; a factor has the names of the
    variables' dimensions that calls and other ops' factors join it with. An op that cannot be cut
    as the plan says is not pinned there. An optimizer state is cut as its parameter is, unless the
    plan has a home for it.

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
    …
      %0 = weft.read @w : tensor<8x4xf64>
      %1 = weft.contract "bk,nk->bn"(%x, %0) : …
    ```

    becomes, with the pin `tp=2`,

    ```mlir
    module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
      weft.variable parameter @w ["ffn", "hidden"] {weft.pins = [["tp"], unit]} : tensor<8x4xf64>
      …
        %1 = weft.contract "bk,nk->bn"(%x, %0) {weft.pins = [[], unit, ["tp"]]} : …
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
    ListOption<"pins", "pins", "std::string",
               "pins such as dp=2, in place of a plan">,
    Option<"batch", "batch", "int64_t", "1", "samples in a micro-batch, all ranks together">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def SearchShardingsPass : Pass<"search-shardings", "::mlir::ModuleOp"> {
  let summary = "chooses the sharding of every value by cost";
  let description = [{
    Before: a variable has a sharding or none, other values have none, and variables and ops may have
    pins, see apply-plan. After: every tensor has a sharding, every op keeps its factor rule, and a
    `weft.reshard` stands wherever a value is needed in another sharding than it has. Of all ways
    that factor rules and pins allow, ops and reshards take the least time on `machine`, and
    variables and what is saved for backward fit into a device's memory; without a machine, the fewest
    bytes are sent. A layer is decided once for all its calls. The function `step` decides, and
    other public functions follow with variables as they are. See `ShardingProblem.h` for how a
    function becomes a planning problem, and `Solve.h` for how that is solved.

    ```mlir
    %h = weft.contract "sk,nk->sn"(%x, %up) : (tensor<128x32xf64>, tensor<64x32xf64>) -> tensor<128x64xf64>
    %e = weft.map ins(%h : tensor<128x64xf64>) … { … math.exp … }
    %y = weft.contract "sn,kn->sk"(%e, %down) : (tensor<128x64xf64>, tensor<32x64xf64>) -> tensor<128x32xf64>
    weft.assign @x, %y : tensor<128x32xf64>
    ```

    becomes, where `up` is cut by rows over tp, `down` by columns, and links are fast,

    ```mlir
    %h = weft.contract "sk,nk->sn"(%x, %up) : … -> tensor<128x64xf64, …[{}, {"tp"} ]>
    %e = weft.map ins(%h : …) … { … math.exp … } : … -> tensor<128x64xf64, …[{}, {"tp"} ]>
    %y = weft.contract "sn,kn->sk"(%e, %down) : … -> tensor<128x32xf64, …[{}, {} ], unreduced = sum{"tp"}>
    %0 = weft.reshard %y : … -> tensor<128x32xf64, …[{}, {} ]>
    weft.assign @x, %0 : …
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
  ];
  let statistics = [
    Statistic<"numReshards", "reshards", "reshards inserted">,
    Statistic<"numNodes", "nodes", "decisions">,
    Statistic<"numOptionsLeft", "options", "options that were not struck out at once">,
    Statistic<"width", "width", "the most nodes that one table was over">,
  ];
}

def EnumerateShardingsPass : Pass<"enumerate-shardings", "::mlir::ModuleOp"> {
  let summary = "does what a step does in all shardings, to test ops and their rules";
  let description = [{
    Before: variables are whole on every rank or have no sharding, as other values. After: every op works
    on the whole; and a copy of each op of `@step` works in each way that its factor rule allows, on
    operands that are brought into the sharding that it needs. A pending operand becomes a sum of
    terms that have nothing in common. All results of an op and of its copies are observed, as
    "gradient/NAME R N WAY": result R of op number N, counted from 1, in a way that is `whole` or
    says what each axis does. Equal ops count once.

    ```mlir
    %y = weft.contract "bk->b" (%x) : (tensor<4x6xf64>) -> tensor<4xf64>
    ```

    becomes, on a mesh <"a"=2>,

    ```mlir
    %y = weft.contract "bk->b" (%x) : (tensor<4x6xf64, …[{}, {} ]>) -> tensor<4xf64, …[{} ]>
    weft.observe "gradient/weft.contract 0 1 whole", %y
    %x1 = weft.reshard %x : … -> tensor<4x6xf64, …[{}, {"a"} ]>
    %y1 = weft.contract "bk->b" (%x1) : … -> tensor<4xf64, …[{} ], unreduced = sum{"a"}>
    %z1 = weft.reshard %y1 : … -> tensor<4xf64, …[{} ]>
    weft.observe "gradient/weft.contract 0 1 a:b", %z1
    …
    ```
  }];
  let options = [
    Option<"only", "only", "std::string", "", "the ops of this name alone">,
    Option<"sample", "sample", "uint64_t", "0", "so many ways, drawn at random; 0 is all">,
    Option<"seed", "seed", "uint64_t", "0", "what the sample depends on">,
  ];
  let statistics = [
    Statistic<"numWays", "ways", "ops in ways that are allowed, before a sample is drawn">,
  ];
}

def VerifyPlanPass : Pass<"verify-plan", "::mlir::ModuleOp"> {
  let summary = "checks what the phases after Plan rely on";
  let description = [{
    Reads only. After Plan every tensor has a static shape and a sharding on the module's mesh.
    (That ops keep their rules, their own verifiers check.)

    ```mlir
    %x = weft.read @x : tensor<?x4xf64>
    // error: verify-plan: tensor<?x4xf64> has no sharding
    ```
  }];
}

#endif // WEFT_PIPELINE_PLAN_PASSES_TD
