// RUN: weft-opt %s -split-stages=layers=0,1,0 | FileCheck %s
// RUN: weft-opt %s '-split-stages=layers=0,1,0 placement=0,1,0' | FileCheck %s --check-prefix=BACK
// RUN: weft-opt %s -split-stages=layers=1,0 | FileCheck %s --check-prefix=LAST

// What lies before the layers, and what lies behind them, in stages of their own. Backward of the head
// is in forward of its stage.
// CHECK:      weft.variable parameter @embed ["hidden"] {weft.stage = 0 : i64}
// CHECK-NEXT: weft.variable parameter @layers.0 ["hidden"] {weft.stage = 1 : i64}
// CHECK-NEXT: weft.variable parameter @head ["hidden"] {weft.stage = 2 : i64}
// CHECK-LABEL: func.func private @step_forward_0(
// CHECK:         weft.map
// CHECK:       func.func private @step_forward_1(
// CHECK-NEXT:    weft.read @layers.0
// CHECK-NEXT:    weft.call @layer
// CHECK-NEXT:    return
// CHECK:       func.func private @step_forward_2(
// CHECK:         weft.contract
// CHECK:         weft.contract
// CHECK-NOT:   func.func private @step_backward_2(
// CHECK-LABEL: func.func @step()
// CHECK:         weft.call @step_forward_0
// CHECK-NEXT:    weft.transfer %{{.*}} from 0 to 1
// CHECK-NEXT:    weft.call @step_forward_1
// CHECK-NEXT:    weft.transfer %{{.*}} from 1 to 2
// CHECK-NEXT:    weft.call @step_forward_2
// CHECK-NEXT:    weft.transfer %{{.*}} from 2 to 1
// CHECK-NEXT:    weft.call @step_backward_1
// CHECK-NEXT:    weft.transfer %{{.*}} from 1 to 0
// CHECK-NEXT:    weft.call @step_backward_0

// Both in the first stage.
// BACK:      weft.variable parameter @embed ["hidden"] {weft.stage = 0 : i64}
// BACK-NEXT: weft.variable parameter @layers.0 ["hidden"] {weft.stage = 1 : i64}
// BACK-NEXT: weft.variable parameter @head ["hidden"] {weft.chunk = 2 : i64, weft.stage = 0 : i64}

// LAST:      weft.variable parameter @embed ["hidden"] {weft.stage = 0 : i64}
// LAST-NEXT: weft.variable parameter @layers.0 ["hidden"] {weft.stage = 0 : i64}
// LAST-NEXT: weft.variable parameter @head ["hidden"] {weft.stage = 1 : i64}

#id = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (k)>
#k = affine_map<(k) -> (k)>

weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>
weft.variable parameter @embed ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.0 ["hidden"] : tensor<4xf64>
weft.variable parameter @head ["hidden"] : tensor<4xf64>

func.func private @layer(%x: tensor<?x4xf64>, %w: tensor<4xf64>) -> tensor<?x4xf64> {
  %0 = weft.map ins(%x, %w : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<?x4xf64>
}
func.func private @step_micro_batch(%number: index, %loss: tensor<f64>, %sum: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?x4xf64>
  %x = weft.select %all[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
  %e = weft.read @embed : tensor<4xf64>
  %0 = weft.map ins(%x, %e : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    weft.yield %c : f64
  }
  %w = weft.read @layers.0 : tensor<4xf64>
  %1 = weft.call @layer(%0, %w) label "layers.0" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h = weft.read @head : tensor<4xf64>
  %2 = weft.contract "bk,k->"(%1, %h) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<f64>
  %3 = weft.map ins(%loss, %2 : tensor<f64>, tensor<f64>) maps [affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  %4 = weft.contract ",k->k"(%2, %h) : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
  %5 = weft.map ins(%1, %4 : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    weft.yield %b : f64
  }
  %6 = weft.call @layer(%5, %w) label "layers.0 backward" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %7 = weft.contract "bk,bk->k"(%6, %x) : (tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %8 = weft.map ins(%sum, %7, %e : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) maps [#k, #k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64, %d: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %3, %8 : tensor<f64>, tensor<4xf64>
}
func.func @step() {
  %z = weft.fill constant 0.0 : tensor<f64>
  %s = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %1:2 = weft.call @step_micro_batch(%c0, %z, %s) label "micro-batch 0" : (index, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  %2:2 = weft.call @step_micro_batch(%c1, %1#0, %1#1) label "micro-batch 1" : (index, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  weft.observe "loss", %2#0 : tensor<f64>
  weft.assign @embed, %2#1 : tensor<4xf64>
  return
}
