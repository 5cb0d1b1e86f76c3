// RUN: weft-opt %s -split-input-file -verify-diagnostics -split-stages=layers=1,1
// RUN: not weft-opt %s -split-input-file -split-stages=layers=1,0,1 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: split-stages: stage 1 has 0 layers, expected at least 1
// RUN: not weft-opt %s -split-input-file -split-stages=layers=3,-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: split-stages: stage 1 has -1 layers, expected at least 0
// RUN: not weft-opt %s -split-input-file -split-stages=stages=3 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: split-stages: stage 2 has 0 layers, expected at least 1

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
