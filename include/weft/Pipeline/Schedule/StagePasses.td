//===- StagePasses.td - from all pipeline stages to one ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_STAGEPASSES_TD
#define WEFT_SCHEDULE_STAGEPASSES_TD

include "mlir/Pass/PassBase.td"

def ObserveInStagesPass : Pass<"observe-in-stages", "::mlir::ModuleOp"> {
  let summary = "lets the first pipeline stage observe scalars of all stages";
  let description = [{
    Before: a value is observed in the stage that computes it. After: scalars, which are for
    reports, are also transferred to the first stage, which makes these, and observed there. A
    stage still observes "loss", "gradient_norm" and "validation_loss" where it computes them, since
    its ranks end the run if one is not finite. Modules without stages do not change.

    ```mlir
    weft.observe "loss", %0 {weft.stage = 1 : i64} : tensor<f64>
    ```

    becomes

    ```mlir
    %1 = weft.transfer %0 from 1 to 0 : tensor<f64>
    weft.observe "loss", %1 {weft.stage = 0 : i64} : tensor<f64>
    weft.observe "loss", %0 {weft.stage = 1 : i64} : tensor<f64>
    ```
  }];
}

def OrderStagesPass : Pass<"order-stages", "::mlir::ModuleOp"> {
  let summary = "orders the work of pipeline stages on micro-batches by a schedule";
  let description = [{
    Before: each micro-batch goes through all stages before the next begins. After: calls stand in
    the order in which they begin when all stages work by the schedule, and calls take times in
    proportion to their floating-point operations. A transfer stands between the call that makes its
    operand and the first that needs its result, where its two stages meet: see `TransferOrder.h`.
    Other ops on what a transfer brings stand where the call begins that needs them, and what a
    transfer sends is made where the call ends that it comes from. Behind all calls, and before the
    ranks agree to go on, ops that wait for no other stage, such as reductions of gradients, come
    before transfers, as the stages are done with their calls at different times. The list is one
    linear order of all communication; each stage's own is what it has of it. See
    `weft/Description/StageOrder.h`. In `@evaluate` stages do what the schedule has of forward.
    Modules without stages do not change.

    Where a schedule has `UNSHARD` of a chunk, calls of a function take the place of the ops that
    gather its parameters, from the reads of their shards to what its calls get; where it has
    `REDUCE_GRAD`, a call takes that of the reductions of its sums of gradients: see
    `StageCollectives.h`. They are actions as the others.

    A schedule is `1f1b`, with several chunks a stage interleaved, `gpipe`, `zbh1`, `zbv`, or any
    other: the actions of each stage, chunk, F for forward, B for backward or I and W for its parts,
    and micro-batch, with a semicolon between stages. Where split-backward has cut a chunk's
    backward, and the schedule has B, calls of both parts stand together. With `gather`, schedules by
    name gather parameters anew for each `run` of actions of a chunk, or each `micro-batch`. The
    order below is that of `schedule=0F0,0F1,0B0,0B1;1F0,1B0,1F1,1B1`.

    ```mlir
    %0 = weft.call @step_forward_0(%c0)
    %1 = weft.transfer %0 from 0 to 1
    %2 = weft.call @step_forward_1(%c0, %1)
    %3 = weft.call @step_backward_1(%c0, %2)
    %4 = weft.call @step_forward_0(%c1)
    ```

    becomes

    ```mlir
    %0 = weft.call @step_forward_0(%c0)
    %1 = weft.transfer %0 from 0 to 1
    %2 = weft.call @step_forward_1(%c0, %1)
    %4 = weft.call @step_forward_0(%c1)
    %3 = weft.call @step_backward_1(%c0, %2)
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"",
           "1f1b, gpipe, zbh1, zbv, or the actions of each stage">,
    Option<"gather", "gather", "std::string", "\"step\"",
           "how long schedules by name keep gathered parameters: step, run or micro-batch">,
  ];
}

def TakeStagePass : Pass<"take-stage", "::mlir::ModuleOp"> {
  let summary = "keeps what the ranks of one pipeline stage hold and do";
  let description = [{
    Before: a module of several stages. After: variables, functions and ops of other stages are
    gone, and with them ops on inputs and constants that only these used. A transfer from the stage
    is a send, a transfer to it a receive. Transfers are numbered over all stages: those of one
    result of one function, in all micro-batches, have one number.

    ```mlir
    %0 = weft.call @step_forward_0(%c0) {weft.stage = 0 : i64}
    %1 = weft.transfer %0 from 0 to 1 : tensor<2x4xf64>
    %2 = weft.call @step_forward_1(%c0, %1) {weft.stage = 1 : i64}
    ```

    becomes, for stage 1,

    ```mlir
    %0 = weft.receive from 0 number 1 : tensor<2x4xf64>
    %1 = weft.call @step_forward_1(%c0, %0)
    ```
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "0", "the stage to keep">,
  ];
}

def SeparateStagesPass : Pass<"separate-stages", "::mlir::ModuleOp"> {
  let summary = "makes a module for each pipeline stage";
  let description = [{
    Before: a module of several stages. After: it holds a module for each stage, in order, which
    take-stage says the contents of, with the attributes of the module around it. The passes that
    follow work on these modules, each by itself. A module without stages stays as it is.

    ```mlir
    module {
      func.func @step() {
        %0 = weft.call @step_forward_0(%c0) {weft.stage = 0 : i64}
        %1 = weft.transfer %0 from 0 to 1 : tensor<2x4xf64>
        %2 = weft.call @step_forward_1(%c0, %1) {weft.stage = 1 : i64}
    ```

    becomes

    ```mlir
    module {
      module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64} {
        func.func @step() {
          %0 = weft.call @step_forward_0(%c0)
          weft.send %0 to 1 number 1 : tensor<2x4xf64>
      …
      module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64} {
        func.func @step() {
          %0 = weft.receive from 0 number 1 : tensor<2x4xf64>
          %1 = weft.call @step_forward_1(%c0, %0)
    ```
  }];
}

def ShareKernelsPass : Pass<"share-kernels", "::mlir::ModuleOp"> {
  let summary = "gives equal kernels of all pipeline stages one name";
  let description = [{
    Before: kernels of the modules of stages have names of their own in each. After: two kernels have
    the same name just if they are equal, up to locations, so that an executable has each once. A
    kernel that differs from all before it keeps its name, or gets the next number if it is taken.
    Launches follow.

    ```mlir
    module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64} {
      func.func private @kernel_map_0(…  // adds
    …
    module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64} {
      func.func private @kernel_map_0(…  // multiplies
      func.func private @kernel_map_1(…  // adds
    ```

    becomes

    ```mlir
    module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64} {
      func.func private @kernel_map_0(…  // adds
    …
    module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64} {
      func.func private @kernel_map_1(…  // multiplies
      func.func private @kernel_map_0(…  // adds
    ```
  }];
}

#endif // WEFT_SCHEDULE_STAGEPASSES_TD
