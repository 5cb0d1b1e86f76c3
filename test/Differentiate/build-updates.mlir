// RUN: weft-opt %s -split-input-file -build-updates | FileCheck %s

// The example of the pass's description.

weft.variable parameter @w ["hidden"] : tensor<4xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
func.func @init() {
  return
}
func.func @step() {
  %w = weft.read @w : tensor<4xf64>
  weft.observe "gradient/w", %w : tensor<4xf64>
  return
}
