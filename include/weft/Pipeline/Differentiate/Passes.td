//===- Passes.td - from the loss to the training step -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_DIFFERENTIATE_PASSES_TD
#define WEFT_PIPELINE_DIFFERENTIATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildGradientsPass : Pass<"build-gradients", "::mlir::ModuleOp"> {
  let summary = "replaces the loss by the step: forward, and backward to every parameter";
  let description = [{
    Before: `@loss()` returns one number and calls layers. After: `@step()` stands in its place.
    It computes and observes the loss, then the gradient of every parameter that the loss depends
    on. A layer `@layer` becomes `@layer_forward`, which also returns the values that backward
    needs, and `@layer_backward`. Both exist once, however often the layer is called. Values that
    take hardly longer to compute than to read, such as results of an activation function, are not
    kept: backward has a copy of the op, marked `weft.recomputed`, if the op's operands are
    parameters, kept anyway, or recomputed themselves. In a step without layers, backward is the
    part after the loss. If the module has names of ops as `weft.recomputes`, backward recomputes
    those instead. An `activation` entry of the plan says for values that it names whether they are
    kept or recomputed; layers with other entries have functions of their own. The module has the
    entries as `weft.activations` then.

    ```mlir
    func.func @loss() -> tensor<f64> {
      %w = weft.read @w : tensor<4xf64>
      %0 = weft.contract "a,a->" (%w, %w) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
      return %0 : tensor<f64>
    }
    ```

    becomes

    ```mlir
    func.func @step() {
      %w = weft.read @w : tensor<4xf64>
      %0 = weft.contract "a,a->" (%w, %w) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
      weft.observe "loss", %0 : tensor<f64>
      %1 = weft.map maps [] -> tensor<f64> { … 1.0 … }
      %2 = weft.contract ",a->a" (%1, %w) : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
      %3 = weft.contract ",a->a" (%1, %w) : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
      %4 = weft.map ins(%2, %3 : …) … { … arith.addf … }
      weft.observe "gradient/w", %4 : tensor<4xf64>
      return
    }
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
    ListOption<"pins", "pins", "std::string",
               "pins such as recompute=full, in place of a plan">,
  ];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def DelayScalingPass : Pass<"delay-scaling", "::mlir::ModuleOp"> {
  let summary = "scales FP8 numbers by the greatest values of earlier steps";
  let description = [{
    Before: a `weft.amax` may name a history. After: no `weft.amax` does. A variable holds the
    results of the last n steps, that of step s at index s modulo n, and the users of `weft.amax`
    read the maximum of this variable. While the maximum is 0, they read the greatest number of the
    format, for a scale of 1. `@step` writes its own result to the variable, and nothing waits for
    it; `@evaluate` only reads. A called function takes the maximum as an argument and returns the
    new result, for each `weft.amax` in it. Its variables are named after the label of the call,
    without " backward".

    ```mlir
    func.func @step() {
      %w = weft.read @w : tensor<4xf32>
      %0 = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4xf32> -> tensor<f32>
      %1 = weft.quantize e4m3 %w by %0 : …
    ```

    becomes

    ```mlir
    weft.variable optimizer @"amax/w" ["history"] : tensor<8xf32>
    func.func @step() {
      %w = weft.read @w : tensor<4xf32>
      %0 = weft.amax %w : tensor<4xf32> -> tensor<f32>
      %h = weft.read @"amax/w" : tensor<8xf32>
      %m = weft.amax %h : tensor<8xf32> -> tensor<f32>
      %s = weft.map ins(%m : …) … { … arith.select … 448.0 … }
      %n = weft.map ins(%h, %0, … : …) … { … arith.select … }
      weft.assign @"amax/w", %n : tensor<8xf32>
      %1 = weft.quantize e4m3 %w by %s : …
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
}

def BuildUpdatesPass : Pass<"build-updates", "::mlir::ModuleOp"> {
  let summary = "updates parameters from their gradients, by the module's optimizer";
  let description = [{
    Before: `@step` observes gradients, and the module has a `weft.optimizer`. After: the step
    also computes and observes the global norm of the gradients, computes the learning rate, and
    assigns new values to parameters and optimizer states. The states are variables that `@init`
    sets to zero. The `weft.optimizer` is gone. With `gradients_in_bf16` the step rounds each gradient
    before it is observed. One function updates all parameters of a call of a
    layer, and layers of the same kind share it. Muon orthogonalizes matrices of several layers
    together, those of one pipeline stage of the plan: so no other stage needs their gradients.

    ```mlir
    weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
    func.func @step() {
      …
      weft.observe "gradient/w", %4 : tensor<4xf64>
      return
    }
    ```

    becomes

    ```mlir
    func.func @step() {
      …
      weft.observe "gradient/w", %4 : tensor<4xf64>
      %5 = weft.call @square_norm(%4) label "update" : (tensor<4xf64>) -> tensor<f64>
      %6 = weft.map ins(%5 : tensor<f64>) … { … math.sqrt … }
      weft.observe "gradient_norm", %6 : tensor<f64>
      %7 = …                                              // learning rate, in f64
      %8 = weft.call @update(%7, %w, %4) label "update" : (…) -> tensor<4xf64>
      weft.assign @w, %8 : tensor<4xf64>
      return
    }
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", "", "the plan, as the text of a plan.proto message">,
  ];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def VerifyDifferentiatePass : Pass<"verify-differentiate", "::mlir::ModuleOp"> {
  let summary = "checks the conditions that the phases after Differentiate rely on";
  let description = [{
    Reads only. After Differentiate:

    - `@init()` and `@step()` have no arguments and no results, and there is no `@loss` and no
      optimizer;
    - `@init` assigns exactly once to every variable that is no input, and `@step` at most once;
    - `@evaluate()`, if there is one, has no arguments and no results, assigns to no variable, and
      observes the validation loss, perhaps the logits, and nothing else;
    - `@step` observes the loss, the gradient norm and the gradient of every parameter that it
      assigns.

    ```mlir
    func.func @step() -> tensor<f64>
    // error: verify-differentiate: expected @step to have no arguments and no results
    ```
  }];
}

#endif // WEFT_PIPELINE_DIFFERENTIATE_PASSES_TD
