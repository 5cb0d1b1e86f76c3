// RUN: weft-opt %s --order-stages | FileCheck %s

// An op between a call and a transfer, or a transfer and a call, moves with them: here the shards that a stage sends,
// and gathers before it uses them. What no call needs follows all calls.
// CHECK-LABEL: func.func @step
// CHECK:      %[[X0:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 0"
// CHECK-NEXT: %[[A0:.*]] = weft.slice %[[X0]]
// CHECK-NEXT: %[[T0:.*]] = weft.transfer %[[A0]] from 0 to 1
// CHECK-NEXT: %[[X1:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 1"
// CHECK-NEXT: %[[A1:.*]] = weft.slice %[[X1]]
// CHECK-NEXT: %[[B0:.*]] = weft.all_gather %[[T0]]
// CHECK-NEXT: weft.call @step_forward_1({{.*}}, %[[B0]]) label "micro-batch 0"
// CHECK-NEXT: %[[D0:.*]] = weft.call @step_backward_1({{.*}}) label "micro-batch 0"
// CHECK:      %[[T1:.*]] = weft.transfer %[[A1]] from 0 to 1
// CHECK:      %[[B1:.*]] = weft.all_gather %[[T1]]
// CHECK-NEXT: weft.call @step_forward_1({{.*}}, %[[B1]]) label "micro-batch 1"
// CHECK:      weft.contract "a->"

#mesh = #weft.mesh<"tp"=2>
weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64>
func.func private @step_forward_0(%m: index) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.read @w0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @step_forward_1(%m: index, %x: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %x : tensor<4xf64>
}
func.func private @step_backward_1(%m: index, %saved: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %saved : tensor<4xf64>
}
func.func private @step_backward_0(%m: index, %d: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return %d : tensor<4xf64>
}
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %a0 = weft.slice %x0 dim 0 over ["tp"] of #mesh index %c0 : tensor<4xf64> -> tensor<2xf64>
  %t0 = weft.transfer %a0 from 0 to 1 : tensor<2xf64>
  %b0 = weft.all_gather %t0 dim 0 over ["tp"] of #mesh : tensor<2xf64> -> tensor<4xf64>
  %s0 = weft.call @step_forward_1(%c0, %b0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d0 = weft.call @step_backward_1(%c0, %s0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %u0 = weft.transfer %d0 from 1 to 0 : tensor<4xf64>
  %e0 = weft.call @step_backward_0(%c0, %u0) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %n = weft.contract "a->"(%s0) {weft.stage = 1 : i64} : (tensor<4xf64>) -> tensor<f64>
  %x1 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %a1 = weft.slice %x1 dim 0 over ["tp"] of #mesh index %c0 : tensor<4xf64> -> tensor<2xf64>
  %t1 = weft.transfer %a1 from 0 to 1 : tensor<2xf64>
  %b1 = weft.all_gather %t1 dim 0 over ["tp"] of #mesh : tensor<2xf64> -> tensor<4xf64>
  %s1 = weft.call @step_forward_1(%c1, %b1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d1 = weft.call @step_backward_1(%c1, %s1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %u1 = weft.transfer %d1 from 1 to 0 : tensor<4xf64>
  %e1 = weft.call @step_backward_0(%c1, %u1) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  weft.assign @w0, %e1 {weft.stage = 0 : i64} : tensor<4xf64>
  weft.observe "norm", %n {weft.stage = 1 : i64} : tensor<f64>
  return
}
