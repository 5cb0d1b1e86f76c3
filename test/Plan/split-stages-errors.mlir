// RUN: weft-opt %s -split-input-file -verify-diagnostics -split-stages=layers=1,1
// RUN: not weft-opt %s -split-input-file -split-stages=layers=0,2 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: split-stages: stage 0 has 0 layers, expected at least 1
// RUN: not weft-opt %s -split-input-file -split-stages=layers=3,-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: split-stages: stage 1 has -1 layers, expected at least 1
// RUN: not weft-opt %s -split-input-file -split-stages=stages=3 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: split-stages: stage 2 has 0 layers, expected at least 1

// Embedding and head are one parameter.

#id = affine_map<() -> ()>
weft.variable input @x ["micro_batch", "batch"] : tensor<2x?xf64>
// expected-error @+1 {{split-stages: 'w' is used in stages 0 and 1; tied parameters across stages are not supported yet}}
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  return %x : tensor<?x4xf64>
}
func.func private @step_micro_batch(%number: index, %sum: tensor<f64>) -> tensor<f64> attributes {weft.micro_batch} {
  %0 = weft.read @x : tensor<2x?xf64>
  %1 = weft.select %0[%number] : tensor<2x?xf64> -> tensor<?xf64>
  %w = weft.read @w : tensor<4xf64>
  %2 = weft.contract "b,k->bk"(%1, %w) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %3 = weft.call @layer(%2) label "layers.0" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %4 = weft.call @layer(%3) label "layers.1" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %5 = weft.contract "bk,k->"(%4, %w) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<f64>
  %6 = weft.map ins(%sum, %5 : tensor<f64>, tensor<f64>) maps [#id, #id] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %6 : tensor<f64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1" : (index, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %2 : tensor<f64>
  return
}

// -----

// Two layers have one parameter, whose narrow copy all micro-batches read.

#id = affine_map<(k) -> (k)>
#none = affine_map<() -> ()>
// expected-error @+1 {{'w' is used in stages 0 and 1}}
weft.variable parameter @w ["hidden"] : tensor<4xf32>
func.func private @layer(%x: tensor<f32>, %w: tensor<4xbf16>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @step_micro_batch(%number: index, %sum: tensor<f32>, %w: tensor<4xbf16>) -> tensor<f32> attributes {weft.micro_batch} {
  %0 = weft.call @layer(%sum, %w) label "layers.0" : (tensor<f32>, tensor<4xbf16>) -> tensor<f32>
  %1 = weft.call @layer(%0, %w) label "layers.1" : (tensor<f32>, tensor<4xbf16>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %v = weft.map ins(%w : tensor<4xf32>) maps [#id] -> tensor<4xbf16> {
  ^bb0(%a: f32):
    %b = arith.truncf %a : f32 to bf16
    weft.yield %b : bf16
  }
  %0 = weft.fill constant 0.0 : tensor<f32>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0, %v) label "micro-batch 0" : (index, tensor<f32>, tensor<4xbf16>) -> tensor<f32>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1, %v) label "micro-batch 1" : (index, tensor<f32>, tensor<4xbf16>) -> tensor<f32>
  weft.observe "loss", %2 : tensor<f32>
  return
}

// -----

// Layers not in their order.

func.func private @layer(%x: tensor<f64>) -> tensor<f64> {
  return %x : tensor<f64>
}
func.func private @step_micro_batch(%number: index, %sum: tensor<f64>) -> tensor<f64> attributes {weft.micro_batch} {
  %0 = weft.call @layer(%sum) label "layers.1" : (tensor<f64>) -> tensor<f64>
  // expected-error @+1 {{split-stages: uses a value that stage 1 computes later, expected layers in their order}}
  %1 = weft.call @layer(%0) label "layers.0" : (tensor<f64>) -> tensor<f64>
  return %1 : tensor<f64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %1 : tensor<f64>
  return
}

// -----

// expected-error @+1 {{split-stages: the stages have 2 layers together, expected the model's 3}}
module {
  func.func private @layer(%x: tensor<f64>) -> tensor<f64> {
    return %x : tensor<f64>
  }
  func.func private @step_micro_batch(%number: index, %sum: tensor<f64>) -> tensor<f64> attributes {weft.micro_batch} {
    %0 = weft.call @layer(%sum) label "layers.0" : (tensor<f64>) -> tensor<f64>
    %1 = weft.call @layer(%0) label "layers.1" : (tensor<f64>) -> tensor<f64>
    %2 = weft.call @layer(%1) label "layers.2" : (tensor<f64>) -> tensor<f64>
    return %2 : tensor<f64>
  }
  func.func @step() {
    %0 = weft.fill constant 0.0 : tensor<f64>
    %c0 = arith.constant 0 : index
    %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
    weft.observe "loss", %1 : tensor<f64>
    return
  }
}

// -----

// expected-error @+1 {{split-stages: the model has no layers, expected calls labelled 'layers.0', 'layers.1' and so on}}
module {
  func.func private @step_micro_batch(%number: index, %sum: tensor<f64>) -> tensor<f64> attributes {weft.micro_batch} {
    return %sum : tensor<f64>
  }
  func.func @step() {
    %0 = weft.fill constant 0.0 : tensor<f64>
    %c0 = arith.constant 0 : index
    %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
    weft.observe "loss", %1 : tensor<f64>
    return
  }
}

// -----

// expected-error @+1 {{split-stages: expected two micro-batches or more}}
module {
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{split-stages: the module is split into stages already}}
func.func private @step_forward_0(%number: index, %sum: tensor<f64>) -> tensor<f64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return %sum : tensor<f64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_forward_0(%c0, %0) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %1 : tensor<f64>
  return
}
