// RUN: weft-opt %s -split-input-file -verify-diagnostics -accumulate-micro-batches="accumulation=2 samples=8"
// RUN: not weft-opt %s -split-input-file -accumulate-micro-batches="accumulation=3 samples=8" 2>&1 | FileCheck %s
// CHECK: error: accumulate-micro-batches: expected an accumulation that divides the batch of 8, got 3

// A sample takes the mean over all, which no part of the batch knows.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  %0 = weft.contract "bk->k"(%x) : (tensor<?x4xf64>) -> tensor<4xf64>
  // expected-error @unknown {{accumulate-micro-batches: 'batch_norm' needs all samples of a step at once, expected an accumulation of 1}}
  %1 = weft.contract "bk,k->"(%x, %0) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<f64> loc("batch_norm")
  weft.observe "loss", %1 : tensor<f64>
  return
}

// -----

// The same in a function.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func private @layer(%x: tensor<?x4xf64>, %y: tensor<4xf64>) -> tensor<f64> {
  // expected-error @unknown {{'norm' needs all samples of a step at once}}
  %0 = weft.contract "bk,k->"(%x, %y) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<f64> loc("norm")
  return %0 : tensor<f64>
}
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  %0 = weft.contract "bk->k"(%x) : (tensor<?x4xf64>) -> tensor<4xf64>
  %1 = weft.call @layer(%x, %0) label "layer" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<f64>
  weft.observe "loss", %1 : tensor<f64>
  return
}

// -----

// Samples are added up one after the other: where a micro-batch begins, the others count.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  // expected-error @unknown {{'capacity' needs all samples of a step at once}}
  %0 = weft.cumulative_sum %x along 0 : tensor<?x4xf64> -> tensor<?x4xf64> loc("capacity")
  %1 = weft.contract "bk->"(%0) : (tensor<?x4xf64>) -> tensor<f64>
  weft.observe "loss", %1 : tensor<f64>
  return
}

// -----

// The root of a sum is no sum of roots.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func private @layer(%x: tensor<?x4xf64>) -> tensor<f64> {
  %0 = weft.contract "bk->"(%x) : (tensor<?x4xf64>) -> tensor<f64>
  %1 = weft.map ins(%0 : tensor<f64>) maps [affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64):
    %b = math.sqrt %a : f64
    weft.yield %b : f64
  }
  return %1 : tensor<f64>
}
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  // expected-error @+1 {{result 0 needs all samples of a step at once, expected a sum or the greatest of samples or an accumulation of 1}}
  %0 = weft.call @layer(%x) label "layer" : (tensor<?x4xf64>) -> tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  return
}

// -----

// A row takes its scale from the greatest of all, which no part of the batch knows.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf32>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  %0 = weft.amax %x : tensor<?x4xf32> -> tensor<f32>
  // expected-error @unknown {{'scaled' needs all samples of a step at once}}
  %1 = weft.quantize e4m3 %x by %0 : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32> loc("scaled")
  %2 = weft.contract "bk->"(%1) : (tensor<?x4xf32>) -> tensor<f32>
  weft.observe "loss", %2 : tensor<f32>
  return
}

// -----

// The root of the greatest is not taken for it.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf32>
func.func private @layer(%x: tensor<?x4xf32>) -> tensor<f32> {
  %0 = weft.amax %x : tensor<?x4xf32> -> tensor<f32>
  %1 = weft.map ins(%0 : tensor<f32>) maps [affine_map<() -> ()>] -> tensor<f32> {
  ^bb0(%a: f32):
    %b = math.sqrt %a : f32
    weft.yield %b : f32
  }
  return %1 : tensor<f32>
}
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  // expected-error @+1 {{result 0 needs all samples of a step at once, expected a sum or the greatest of samples or an accumulation of 1}}
  %0 = weft.call @layer(%x) label "layer" : (tensor<?x4xf32>) -> tensor<f32>
  weft.observe "loss", %0 : tensor<f32>
  return
}

// -----

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  // expected-error @+1 {{has a row for each sample, expected a sum over samples or an accumulation of 1}}
  weft.observe "logits", %x : tensor<?x4xf64>
  return
}

// -----

// expected-error @+1 {{'x' of 'tensor<4x?xf64>' has a row for each sample, expected an input whose first dimension is the batch}}
weft.variable input @x ["hidden", "batch"] : tensor<4x?xf64>
