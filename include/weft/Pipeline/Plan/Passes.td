//===- Passes.td - a sharding in the type of every tensor ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PASSES_TD
#define WEFT_PIPELINE_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyPlanPass : Pass<"apply-plan", "::mlir::ModuleOp"> {
  let summary = "writes a plan into the types of variables";
  let description = [{
    Before: no tensor has a sharding, and the batch is `?`. After: the type of every variable
    has the sharding that the plan gives to its dimensions by their names; the batch is a
    number; the module knows the mesh. An optimizer state is cut as its parameter is.

    ```mlir
    weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
    ```

    becomes, with the pin `tp=2`,

    ```mlir
    module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
      weft.variable parameter @w ["ffn", "hidden"]
          : tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {} ]>>
    }
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
    ListOption<"pins", "pins", "std::string",
               "pins such as dp=2, in place of a plan">,
    Option<"batch", "batch", "int64_t", "1", "sequences in a micro-batch, all ranks together">,
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def PropagateShardingsPass : Pass<"propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "carries the shardings of variables through the program";
  let description = [{
    Before: variables have shardings, other values have none. After: every tensor has one,
    every op keeps its factor rule, and a `weft.reshard` stands wherever a value is needed
    in another sharding than it has.

    Works from the first op to the last. A factor takes the axes that the operands which carry
    it have; where they disagree the largest operand decides, and the others are resharded.
    Pending sums are carried as far as ops are additive in them. A sum of scalars of which only
    some are pending stays pending: making the others so costs nothing, and one reduction at
    the end serves all. A layer is made once for each combination of argument types that it
    is called with.

    ```mlir
    %w = weft.read @w : tensor<8x4xf64>
    %y = weft.contract "bk,nk->bn" (%x, %w) : …
    %z = weft.contract "bn,nk->bk" (%y, %w) : …
    %e = weft.map ins(%z : tensor<2x4xf64>) … { … math.exp … }
    ```

    becomes

    ```mlir
    %w = weft.read @w : tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {} ]>>
    %y = weft.contract "bk,nk->bn" (%x, %w) : … -> tensor<2x8xf64, …[{}, {"tp"} ]>
    %z = weft.contract "bn,nk->bk" (%y, %w) : … -> tensor<2x4xf64, …[{}, {} ], unreduced = sum{"tp"}>
    %0 = weft.reshard %z : … -> tensor<2x4xf64, …[{}, {} ]>
    %e = weft.map ins(%0 : …) … { … math.exp … }
    ```
  }];
  let statistics = [
    Statistic<"numReshards", "reshards", "reshards inserted">,
    Statistic<"numSpecialized", "specialized-layers", "layers copied for other argument types">,
  ];
}

def SearchShardingsPass : Pass<"search-shardings", "::mlir::ModuleOp"> {
  let summary = "chooses the sharding of every value by cost";
  let description = [{
    Before: variables have shardings, other values have none. After: every tensor has one, every
    op keeps its factor rule, and a `weft.reshard` stands wherever a value is needed in another
    sharding than it has. Of all ways that factor rules allow, ops and reshards take the least time
    on `machine`; without one, the fewest bytes are sent. A layer is decided once for all its calls.
    See `ShardingProblem.h` for how a module becomes a planning problem.

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
    Before: variables are whole on every rank, other values have no sharding. After: every op works
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
