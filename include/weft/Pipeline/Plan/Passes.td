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
  let summary = "divides the batch into micro-batches and sums their results";
  let description = [{
    Before: `?` is the size of the batch. After: `?` is the size of a micro-batch, and the batch is
    `accumulation` micro-batches. The ops of a public function that depend on samples move into a
    private function, which the public one calls for each micro-batch with the sums so far. The
    first dimension of an input counts micro-batches, and ops that number samples have the number
    of their micro-batch. Sums may be pending from one micro-batch to the next; they are wide, but
    the sum of a gradient that the step rounds has the rounded type. Of maxima over samples
    (`weft.amax`) the maximum is kept. Narrow values that do not depend on samples, such as weights
    rounded to bf16, are computed once and passed to all micro-batches; other such values are
    computed by each.

    A function that does not depend on samples stays as it is. Fails where a sample's values depend
    on other samples, as in a norm over the batch, and where a result is neither a sum nor a maximum
    over samples: no micro-batch could compute it.

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
    func.func private @step_micro_batch(%number: index, %sum: tensor<4xf64>) -> tensor<4xf64>
        attributes {weft.micro_batch} {
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

def SplitStagesPass : Pass<"split-stages", "::mlir::ModuleOp"> {
  let summary = "splits a step into pipeline stages";
  let description = [{
    Before: a step has two micro-batches or more, each a call of one function, and no stages. After:
    the function of a micro-batch is one function for each chunk of layers and direction, and each op
    of a root, each variable and each such function has the number of its stage as `weft.stage`.
    Functions and variables also have that of their chunk as `weft.chunk`, where it is another. Where
    a stage uses a value of another, a `weft.transfer` stands in the root; nothing else differs, and
    the module computes what it computed before. With fewer than two stages nothing happens.

    The model's layers are cut into chunks: chunk c has the next `layers[c]` layers, and lies in
    stage `placement[c]`, or without placements in stage c. Without layers each chunk has equally
    many, or the first ones one more. A micro-batch passes through 2C positions: forward of
    chunks 0 to C - 1, then backward of chunks C - 1 to 0. Calls of layers lie at the positions of
    their layers, and each other op lies as early as its operands and variables allow: so the first
    stage has the embedding, and the last one the head, the loss and backward of the head, in its
    forward function. A variable belongs to the chunk of the first op that uses it; see below for
    others that use it, too. Ops on inputs
    and constants alone, such as masks and tables, belong to all stages: each position that uses one
    has a copy, and in roots they have no `weft.stage`. Reads have copies, too. What backward of a
    stage needs of its forward is a result of one function and an argument of the other. See
    `StagePositions.h`.

    In roots an op lies in the stage of the variables that it reads, else in that of its tensors, and
    scalars are transferred: each stage adds up its own terms of the norm of all gradients, the last
    stage adds up these sums (see `ScalarSums.h`), and the others get the factor that clips them. A
    call with tensors of several stages, such as the update of all that is outside of layers, is
    inlined.

    Fails if the stages do not have the model's layers.

    ```mlir
    func.func private @step_micro_batch(%number: index, %sum: tensor<f64>) -> tensor<f64>
        attributes {weft.micro_batch} {
      %0 = weft.read @x : tensor<2x?x4xf64>
      %1 = weft.select %0[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
      %2 = weft.call @layer(%1) label "layers.0"
      %3 = weft.call @layer(%2) label "layers.1"
      %4 = weft.contract "bk->"(%3) : (tensor<?x4xf64>) -> tensor<f64>
      %5 = weft.map ins(%sum, %4 : …) … { … arith.addf … }
      return %5
    …
      %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0"
      %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1"
    ```

    becomes, with `layers=1,1`,

    ```mlir
    func.func private @step_forward_0(%number: index) -> tensor<?x4xf64>
        attributes {weft.micro_batch, weft.stage = 0 : i64} {
      %0 = weft.read @x : tensor<2x?x4xf64>
      %1 = weft.select %0[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
      %2 = weft.call @layer(%1) label "layers.0"
      return %2
    func.func private @step_forward_1(%number: index, %sum: tensor<f64>, %x: tensor<?x4xf64>) -> tensor<f64>
        attributes {weft.micro_batch, weft.stage = 1 : i64} {
      %0 = weft.call @layer(%x) label "layers.1"
      %1 = weft.contract "bk->"(%0) : (tensor<?x4xf64>) -> tensor<f64>
      %2 = weft.map ins(%sum, %1 : …) … { … arith.addf … }
      return %2
    …
      %1 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64}
      %2 = weft.transfer %1 from 0 to 1 : tensor<?x4xf64>
      %3 = weft.call @step_forward_1(%c0, %0, %2) label "micro-batch 0" {weft.stage = 1 : i64}
      %4 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64}
      %5 = weft.transfer %4 from 0 to 1 : tensor<?x4xf64>
      %6 = weft.call @step_forward_1(%c1, %3, %5) label "micro-batch 1" {weft.stage = 1 : i64}
    ```

    A parameter that two stages use, such as an embedding that is the head, is read in the root and
    transferred once. Of its gradient, a sum over micro-batches of terms of both, each stage adds up
    its own terms, and the sums are added up after the last micro-batch. See `StageSums.h`.

    ```mlir
    func.func private @step_micro_batch(%number: index, %sum: tensor<4xf64>) -> tensor<4xf64>
      …
      %head = weft.contract "b,bk->k"(%z, %y)        // in stage 1
      %embed = weft.contract "b,bk->k"(%x, %dx)      // in stage 0
      %term = weft.map ins(%embed, %head : …) … { … arith.addf … }
      %next = weft.map ins(%sum, %term : …) … { … arith.addf … }
      return %next
    ```

    becomes

    ```mlir
    func.func private @step_forward_1(%number: index, %sum: tensor<4xf64>, %w: tensor<4xf64>, …)
      …
      %next = weft.map ins(%sum, %head : …) … { … arith.addf … }
    func.func private @step_backward_0(%number: index, %sum: tensor<4xf64>, …)
      …
      %next = weft.map ins(%sum, %embed : …) … { … arith.addf … }
    …
      %1 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
      %2 = weft.transfer %1 from 0 to 1 : tensor<4xf64>
      %3:2 = weft.call @step_forward_1(%c0, %0, %2, …) label "micro-batch 0" {weft.stage = 1 : i64}
      …
      %9:2 = weft.call @step_forward_1(%c1, %3#0, %2, …) label "micro-batch 1" {weft.stage = 1 : i64}
      …
      %12 = weft.transfer %9#0 from 1 to 0 : tensor<4xf64>
      %13 = weft.map ins(%11, %12 : …) … { … arith.addf … } {weft.stage = 0 : i64}
    ```
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t", "the number of layers of each chunk">,
    Option<"stages", "stages", "int64_t", "1",
           "without `layers` and `placement`, the number of stages, which get equally many layers">,
    ListOption<"placement", "placement", "int64_t",
               "the stage of each chunk; without it, each stage has one">,
    Option<"ownSums", "own-sums", "bool", "true",
           "lets each stage add up its own terms of a gradient; if not, wide sums stay as narrow ones do">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def VerifyStagesPass : Pass<"verify-stages", "::mlir::ModuleOp"> {
  let summary = "checks that stages use their own values";
  let description = [{
    Reads only. Requires a module as split-stages leaves it, and is its last step. An op of stage s
    uses variables, functions and values of stage s, those of no stage, and what a `weft.transfer`
    sends to s. An op of a root that later passes insert need not be marked: it belongs to the stage
    of its operands.

    ```mlir
    %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
    weft.observe "w", %0 {weft.stage = 1 : i64} : tensor<4xf64>
    // error: verify-stages: uses a value of stage 0, but belongs to stage 1
    ```
  }];
}

def SeparateLayersPass : Pass<"separate-layers", "::mlir::ModuleOp"> {
  let summary = "gives layers that a plan splits differently functions of their own";
  let description = [{
    Before: all equal layers are calls of one function, labelled "layers.N", "layers.N backward",
    "layers.N update". After: only layers share functions for which the same `sharding` and `home`
    entries of the plan hold; calls of others go to copies. Calls inside of a layer are of that
    layer. A copy has the name of its original as `weft.copy_of`, by which its ops have the names of
    the original's in plans. The module has the layers of each kind as `weft.layer_borders`: the first
    ones of runs of layers. Nothing happens if the same entries hold for all layers.

    ```mlir
      %1 = weft.call @layer(%0) label "layers.0"
      %2 = weft.call @layer(%1) label "layers.1"
      %3 = weft.call @layer(%2) label "layers.2"
    ```

    becomes, with `sharding { dimension: "ffn" axes: ["tp"] first_layer: 1 }`,

    ```mlir
    module attributes {weft.layer_borders = [[0], [1]]}
    func.func private @layer …
    func.func private @layer.2 … attributes {weft.copy_of = "layer"}
    …
      %1 = weft.call @layer(%0) label "layers.0"
      %2 = weft.call @layer.2(%1) label "layers.1"
      %3 = weft.call @layer.2(%2) label "layers.2"
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "text of the plan">,
    ListOption<"pins", "pins", "std::string", "pins, which make a plan if it has no text">,
  ];
  let statistics = [Statistic<"numCopies", "num-copies", "copies of functions">];
}

def SubstituteBatchPass : Pass<"substitute-batch", "::mlir::ModuleOp"> {
  let summary = "replaces the unknown size of the batch by a number";
  let description = [{
    Before: `?` is the size of the micro-batch. After: every size is known.

    ```mlir
    weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
    ```

    becomes, with a batch of 3,

    ```mlir
    weft.variable input @x ["batch", "hidden"] : tensor<3x4xf64>
    ```
  }];
  let options = [
    Option<"batch", "batch", "int64_t", "1", "samples in a micro-batch, all ranks together">,
  ];
}

def PadDimensionsPass : Pass<"pad-dimensions", "::mlir::ModuleOp"> {
  let summary = "pads dimensions that the plan's axes do not cut into equal shards, or that make "
                "rows of matmuls unaligned";
  let description = [{
    Before: no tensor has a sharding, and every size is known. After: each dimension of inputs and
    ops on samples that the plan cuts is a multiple of every number of shards that the entries which
    hold for it cut it into. What only homes cut is left to pad-variables.

    With `align-rows`, rows of matmuls also begin at multiples of 16 bytes, as libraries of devices
    ask: a dimension of variables that is contiguous in memory is padded so that every shard of it
    is such a multiple, and the whole one of 128 bytes where that takes at most 1 % more. Dimensions
    that cannot be padded stay as they are, and so do those over which padding would add more
    operations than the unaligned matmuls have. See `MatmulRows.h`.

    Dimensions of one class
    (`weft/Pipeline/Dimensions.h`) are padded alike. Variables, observed values, and ops whose
    results depend on the shape, as random numbers do, record the shape without padding
    (`unpadded`). The pass does nothing if the plan refuses padding. Fails where an op depends on
    the length of a padded dimension in another way, as a norm does. The pass mask-padding then sees
    to the values in the padding.

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] : tensor<7x4xf64>
    ```

    becomes, with the pin `tp=2`,

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] unpadded [7, 4] : tensor<8x4xf64>
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
    ListOption<"pins", "pins", "std::string",
               "pins such as dp=2, in place of a plan">,
    Option<"alignRows", "align-rows", "bool", "false", "pad for aligned rows of matmuls">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
  let statistics = [
    Statistic<"numPadded", "padded", "classes of dimensions that were padded">,
  ];
}

def PadVariablesPass : Pass<"pad-variables", "::mlir::ModuleOp"> {
  let summary = "pads variables, between steps, that homes do not cut into equal shards";
  let description = [{
    Before: dimensions that ops on samples cut divide, see pad-dimensions. After: so do those that the plan's
    homes cut, of variables, of rounded copies and of sums of gradients, as the variables are
    longer: they record their shape without padding (`unpadded`). Ops on samples get tensors
    without it, by `weft.extract`, and their gradients get it, by `weft.pad`; both need the padded
    dimension whole, so all-gathers come before and reduce-scatters after them. `StoredValues.h`
    says which values are padded. Any dimension may be padded, hidden too, and axes may be larger
    than a dimension. With `open`, the pass also pads variables that the plan leaves open, so that
    the search may cut them over all ranks. The pass does nothing if the plan refuses padding.

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
    …
      %0 = weft.read @w : tensor<8x4xf64>
      %1 = weft.contract "bk,nk->bn"(%x, %0) : …
    ```

    becomes, with the pin `fsdp=3`,

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] unpadded [8, 4] : tensor<8x6xf64>
    …
      %0 = weft.read @w : tensor<8x6xf64>
      %1 = weft.extract %0 from [0, 0] by [1, 1] {weft.of_padding} : tensor<8x6xf64> -> tensor<8x4xf64>
      %2 = weft.contract "bk,nk->bn"(%x, %1) : …
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
    ListOption<"pins", "pins", "std::string",
               "pins such as dp=2, in place of a plan">,
    Option<"open", "open", "bool", "false", "pad variables that the plan leaves open, too">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
  let statistics = [
    Statistic<"numPadded", "padded", "variables that were padded, along all dimensions">,
  ];
}

def MaskPaddingPass : Pass<"mask-padding", "::mlir::ModuleOp"> {
  let summary = "sets padding to zero where it would change results";
  let description = [{
    Before: tensors are padded, see pad-dimensions. The padding of parameters and optimizer states
    is zero, other padding may hold any finite numbers. After: padding adds nothing to any sum, and
    values that are assigned to parameters or states are zero in their padding. Each op states which
    results have zeros in their padding if its operands do. Where this does not suffice, the pass
    masks the values that have the fewest bytes together. See `Padding.h`.

    ```mlir
    %0 = weft.contract "bs->"(%losses) : (tensor<4x8xf64>) -> tensor<f64>
    ```

    becomes, where the batch is 3,

    ```mlir
    %0 = weft.iota {weft.of_padding} : tensor<4xi32>
    %1 = weft.map ins(%losses, %0 : tensor<4x8xf64>, tensor<4xi32>) … { … arith.select … }
    %2 = weft.contract "bs->"(%1) : (tensor<4x8xf64>) -> tensor<f64>
    ```
  }];
  let dependentDialects = ["::weft::WeftDialect", "::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numMasks", "masks", "values that were masked">,
  ];
}

def ApplyPlanPass : Pass<"apply-plan", "::mlir::ModuleOp"> {
  let summary = "writes the pins of a plan into variables and ops";
  let description = [{
    Before: no tensor has a sharding, and every size is known. After: the module has the mesh, and
    variables and ops have `weft.pins`: for each dimension of a variable and each factor of an op,
    the axes that the plan cuts it by, or unit where the plan does not mention it. The plan names
    dimensions as variables do; a factor has the names of all dimensions of variables in its class
    (`weft/Pipeline/Dimensions.h`). A factor is not pinned if the op cannot be cut as the plan says.
    Where the plan mentions terms, the pins of an op end in a dictionary of the axes over which its
    operands are pending. An optimizer state is cut as its parameter is, unless the plan has a home
    for the state.

    Homes are those of variables and of two kinds of values (`lib/Pipeline/Plan/HomedValues.h`). If
    ops read a parameter only through a copy that is rounded to fewer bits, a `weft.constrain` holds
    the copy in the home of the parameter's name, and the variable has the home `master/NAME`. The
    sum of a parameter's gradients over micro-batches has the home `gradient/NAME`: the argument and
    the result of the micro-batch's function have these pins.

    Entries of a plan may contradict each other: one axis cannot cut two dimensions of a variable.
    Then the stronger entry holds, and a warning shows both. Equally strong entries of a variable
    are an error; of an op, the entry for a factor of its results holds.

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
    Option<"origins", "origins", "bool", "false", "write beside pins which entries they come from">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def ResolveConstraintsPass : Pass<"resolve-constraints", "::mlir::ModuleOp"> {
  let summary = "turns constraints into pins, and removes those that a stronger one contradicts";
  let description = [{
    Before: values may be constrained, see `weft.constrain`. After: a constraint has its dimensions
    as `weft.pins`, and no two constraints of one value disagree. A value stays the same when a
    constraint, a call or a return passes it on, and when the same variable is read again. Of two
    constraints that disagree, the pass removes the one of the higher priority number, with a
    warning; with equal numbers it fails. Both messages show where each constraint comes from and
    where they meet. Fails also if the mesh lacks an axis of a constraint, or if axes do not divide
    a dimension.

    A plan cannot contradict a constraint: a plan shards ops, and variables between steps, and a
    constraint shards a value. A reshard can stand between them.

    ```mlir
    %1 = weft.constrain %0 [["dp"], unit] : tensor<4x8xf64>
    ```

    becomes

    ```mlir
    %1 = weft.constrain %0 [["dp"], unit] {weft.pins = [["dp"], unit, {} ]} : tensor<4x8xf64>
    ```
  }];
  let statistics = [
    Statistic<"numDropped", "dropped", "constraints removed, as a stronger one contradicts them">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def SearchShardingsPass : Pass<"search-shardings", "::mlir::ModuleOp"> {
  let summary = "chooses the sharding of every value by cost";
  let description = [{
    Before: a variable may have a sharding, other values have none, and variables and ops may have
    pins, see apply-plan. After: every tensor has a sharding, every op keeps its factor rule, and a
    `weft.reshard` stands wherever an op needs a value in another sharding. A constraint that holds a
    rounded copy of a weight names the axes that were chosen. Among the shardings that
    factor rules and pins allow, the pass chooses those whose ops and reshards take the least time
    on `machine`, while variables and values saved for backward fit into a device's memory less
    `reserve`. Without a machine it chooses those that send the fewest bytes. All calls of a layer
    share one decision. On more than four parts of a mesh it considers only shardings that use
    neighboring parts alike, as `LayoutSpaces.h` says. The function `step` decides first; other
    public functions keep the shardings that it chose for variables. `ShardingProblem.h` says how a
    function becomes a planning problem, and `Solve.h` how a problem is solved.

    ```mlir
    %h = weft.contract "sk,nk->sn"(%x, %up) : (tensor<128x32xf64>, tensor<64x32xf64>) -> tensor<128x64xf64>
    %e = weft.map ins(%h : tensor<128x64xf64>) … { … math.exp … }
    %y = weft.contract "sn,kn->sk"(%e, %down) : (tensor<128x64xf64>, tensor<32x64xf64>) -> tensor<128x32xf64>
    weft.assign @x, %y : tensor<128x32xf64>
    ```

    becomes, if tp cuts the rows of `up` and the columns of `down`, and links are fast,

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
    Option<"fp8Matmuls", "fp8-matmuls", "bool", "false",
           "price matmuls of quantized numbers as of bytes, where the machine has such">,
    Option<"why", "why", "bool", "false",
           "write into `weft.why` of ops, variables and arguments why they have their sharding">,
    Option<"reserve", "reserve", "int64_t", "0",
           "bytes of a device's memory to leave for uses that the search does not count">,
    Option<"problem", "problem", "std::string", "",
           "file to write the planning problem to, see ProblemText.h">,
  ];
  let statistics = [
    Statistic<"numReshards", "reshards", "reshards inserted">,
    Statistic<"numNodes", "nodes", "decisions">,
    Statistic<"numOptionsLeft", "options", "options that were never struck out">,
    Statistic<"width", "width", "the most nodes that one table was over">,
  ];
}

def EnumerateShardingsPass : Pass<"enumerate-shardings", "::mlir::ModuleOp"> {
  let summary = "computes each op of the step in all shardings, to test ops and their factor rules";
  let description = [{
    Before: variables are whole on every rank or have no sharding, and other values have none.
    After: every op works on whole tensors, and a copy of each op of `@step` works in each sharding
    that its factor rule allows, on resharded operands. A pending operand is a sum of terms that
    differ at random. The module observes all results of an op and of its copies, as
    "gradient/NAME R N WAY": result R of op number N, counted from 1, in a way that is `whole` or
    names the factor that each axis cuts. Equal ops count once.

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
    Option<"only", "only", "std::string", "", "copies only ops of this name">,
    Option<"sample", "sample", "uint64_t", "0", "number of ways to draw at random; 0 takes all">,
    Option<"seed", "seed", "uint64_t", "0", "seed of the random sample">,
  ];
  let statistics = [
    Statistic<"numWays", "ways", "allowed ways of all ops, before a sample is drawn">,
  ];
}

def PricePlanPass : Pass<"price-plan", "::mlir::ModuleOp"> {
  let summary = "prices a planned module again, to check the search's numbers";
  let description = [{
    Reads only. Requires a module as Plan leaves it. Computes the seconds and bytes of `@step` on
    one rank from ops and types alone (see `PricePlan.h`), and fails if they differ from those of
    the search or of the options. Without either, prints them as a remark.

    ```mlir
    // -price-plan="seconds=1.0 bytes=1"
    // error: price-plan: internal error: the search says 1.000000E+00 seconds and 1 bytes, but its
    //   module takes 1.310720E-04 seconds and 65536 bytes
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
    Option<"fp8Matmuls", "fp8-matmuls", "bool", "false",
           "price matmuls of quantized numbers as of bytes, where the machine has such">,
    Option<"seconds", "seconds", "double", "-1", "expected seconds of a step; negative for any">,
    Option<"bytes", "bytes", "double", "-1", "expected bytes of a rank; negative for any">,
  ];
}

def VerifyPlanPass : Pass<"verify-plan", "::mlir::ModuleOp"> {
  let summary = "checks the conditions that the phases after Plan rely on";
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
