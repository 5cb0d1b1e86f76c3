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
    next. Of what is the greatest of samples (`weft.amax`) the greatest is kept.

    A function for which samples are no matter stays as it is. Fails where what one sample gives
    depends on what others give, as with a norm over the batch, and where a result is neither a sum
    nor the greatest of samples: a micro-batch does not know it.

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

def SubstituteBatchPass : Pass<"substitute-batch", "::mlir::ModuleOp"> {
  let summary = "makes the batch a number";
  let description = [{
    Before: `?` stands for the micro-batch. After: every size is known.

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
  let summary = "makes dimensions longer where a plan's shards would not be equal";
  let description = [{
    Before: no tensor has a sharding, and every size is known. After: dimensions that the plan cuts
    are multiples of all numbers of shards that it cuts them into, those of values that belong
    together alike; and variables and observed values know the shape that they had (`unpadded`), and
    so do ops whose result depends on it, as random numbers do. With a plan that refuses padding
    nothing is done. Fails where an op depends on the length of such a dimension in another way, as
    a norm does. What padding holds is seen to by mask-padding.

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
  ];
  let dependentDialects = ["::weft::WeftDialect"];
  let statistics = [
    Statistic<"numPadded", "padded", "classes of dimensions that were padded">,
  ];
}

def MaskPaddingPass : Pass<"mask-padding", "::mlir::ModuleOp"> {
  let summary = "makes values zero in their padding where that changes what they become";
  let description = [{
    Before: tensors are padded, see pad-dimensions; padding of parameters and optimizer states is
    taken for zero, other padding for any finite numbers. After: nothing is added to a sum from
    padding, and what is assigned to a parameter or state is zero there. Ops say themselves what
    follows from zeros; where that does not do, the values are masked that together have the fewest
    bytes. See `Padding.h`.

    ```mlir
    %0 = weft.contract "bs->"(%losses) : (tensor<4x8xf64>) -> tensor<f64>
    ```

    becomes, where the batch is 3,

    ```mlir
    %0 = weft.iota : tensor<4xi32>
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
  let summary = "writes what a plan pins into variables and ops";
  let description = [{
    Before: no tensor has a sharding, and every size is known. After: the module knows the mesh, and
    variables and ops have `weft.pins`: for each dimension of a variable and each factor of an op,
    the axes that the plan cuts it by, or unit where it says nothing. The plan
    speaks of dimensions by the names that variables give them; a factor has the names of the
    variables' dimensions that calls and other ops' factors join it with. An op that cannot be cut
    as the plan says is not pinned there. Where the plan speaks of terms, the pins of an op end in a
    dictionary of the axes over which its operands are pending. An optimizer state is cut as its parameter is, unless the
    plan has a home for it. Where entries of a plan cannot hold together, as one axis cannot cut two
    dimensions of a variable, the stronger holds, and a warning shows both; of a variable, equally strong
    ones are an error. (Of an op then the factor holds that results have.)

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
    Option<"origins", "origins", "bool", "false", "say beside pins which entries they come from">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def ResolveConstraintsPass : Pass<"resolve-constraints", "::mlir::ModuleOp"> {
  let summary = "makes pins of constraints, and sees to it that they agree";
  let description = [{
    Before: values may be constrained, see `weft.constrain`. After: a constraint has its dimensions as
    `weft.pins`, and no two speak of one value differently. Values are one where a constraint, a call or a
    return passes them on, and where the same variable is read. Of two constraints that do not
    agree, that of the higher priority number is taken away, with a warning; equal ones are an error.
    Both show where each comes from and where they meet. Fails where an axis is none of the mesh, or
    does not divide.

    A plan says how an op is cut, or how a variable lies between steps, and a constraint how a value
    lies: they do not contradict each other, as a reshard can stand between.

    ```mlir
    %1 = weft.constrain %0 [["dp"], unit] : tensor<4x8xf64>
    ```

    becomes

    ```mlir
    %1 = weft.constrain %0 [["dp"], unit] {weft.pins = [["dp"], unit, {} ]} : tensor<4x8xf64>
    ```
  }];
  let statistics = [
    Statistic<"numDropped", "dropped", "constraints that a stronger one overrules">,
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
    variables and what is saved for backward fit into a device's memory but `reserve`; without a machine, the fewest
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
    Option<"fp8Matmuls", "fp8-matmuls", "bool", "false",
           "price matmuls of quantized numbers as of bytes, where the machine has such">,
    Option<"why", "why", "bool", "false",
           "say of ops, variables and arguments why they are sharded as they are, as `weft.why`">,
    Option<"reserve", "reserve", "int64_t", "0",
           "bytes of a device's memory to leave for what is not counted: what ops need besides">,
    Option<"problem", "problem", "std::string", "",
           "a file for the planning problem that is solved, see ProblemText.h">,
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

def PricePlanPass : Pass<"price-plan", "::mlir::ModuleOp"> {
  let summary = "computes what a planned module takes, beside what is said of it";
  let description = [{
    Reads only. The module is as Plan leaves it. Sums up what `@step` takes on one rank, from ops and
    types alone (see `PricePlan.h`), and fails where that is not what the search or the options say;
    where nothing is said, prints it as a remark.

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
    Option<"seconds", "seconds", "double", "-1", "what a step shall take; less than 0 for anything">,
    Option<"bytes", "bytes", "double", "-1", "what a rank shall hold; less than 0 for anything">,
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
