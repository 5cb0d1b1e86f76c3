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
  let summary = "makes the step from the loss: forward, and backward to every parameter";
  let description = [{
    Before: `@loss()` returns one number and calls layers. After: there is `@step()` instead,
    which computes the loss, observes it, and then computes and observes the gradient of every
    parameter that the loss depends on. A layer `@layer` becomes `@layer_forward`, which also
    returns what backward needs of its values, and `@layer_backward`; both exist once,
    however often the layer is called. What takes hardly longer to compute than to read, such as
    an activation function, is not kept: backward has a copy of the op, marked
    `weft.recomputed`, if its operands are parameters or kept anyway, or are computed again
    themselves. In a step without layers, backward is the part behind the loss.

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
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def DelayScalingPass : Pass<"delay-scaling", "::mlir::ModuleOp"> {
  let summary = "scales FP8 numbers by what they were in the steps before";
  let description = [{
    Before: a `weft.amax` may name a history. After: none does. What it gave is now the greatest of
    a variable that holds its values of the steps before, step s at s modulo their number; as long
    as that is 0 it is the greatest number of the format, for a scale of 1. `@step` puts its own
    value there, which nothing waits for; `@evaluate` reads only. Functions that are called take the
    greatest and give the value for each of theirs; their variables are named by the label of the
    call, without " backward".

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
  let summary = "lets parameters follow their gradients, by the module's optimizer";
  let description = [{
    Before: `@step` observes gradients, and the module has a `weft.optimizer`. After: the step
    also computes the global gradient norm and observes it, then the learning rate, and
    assigns new values to parameters and optimizer states; the states exist as variables and
    `@init` sets them to zero; the `weft.optimizer` is gone. Parameters that one call of a
    layer uses are updated by one function, which layers of the same kind share.

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
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def VerifyDifferentiatePass : Pass<"verify-differentiate", "::mlir::ModuleOp"> {
  let summary = "checks what the phases after Differentiate rely on";
  let description = [{
    Reads only. After Differentiate:

    - `@init()` and `@step()` take and give nothing, and there is no `@loss` and no optimizer;
    - `@init` assigns once to every variable that is no input, and `@step` at most once;
    - `@evaluate()`, if there is one, takes and gives nothing, assigns to no variable, and observes
      the validation loss, perhaps the logits, and nothing else;
    - `@step` observes the loss, the gradient norm and the gradient of every parameter that it
      assigns.

    ```mlir
    func.func @step() -> tensor<f64>
    // error: verify-differentiate: expected @step to take and give nothing
    ```
  }];
}

#endif // WEFT_PIPELINE_DIFFERENTIATE_PASSES_TD
