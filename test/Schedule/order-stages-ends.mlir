// RUN: weft-opt %s --order-stages | FileCheck %s

// Stage 1, which is done first, reduces its gradient before it sends its loss to stage 0, which still computes. What is
// behind the agreement stays there.
// CHECK-LABEL: func.func @step
// CHECK:      weft.call @step_backward_0({{.*}}) label "micro-batch 1"
// CHECK-NEXT: %[[G1:.*]] = weft.all_reduce {{.*}} {weft.stage = 1 : i64}
// CHECK-NEXT: %[[N1:.*]] = weft.contract "a->"(%[[G1]]) {weft.stage = 1 : i64}
// CHECK-NEXT: %[[G0:.*]] = weft.all_reduce {{.*}} {weft.stage = 0 : i64}
// CHECK-NEXT: %[[N0:.*]] = weft.contract "a->"(%[[G0]]) {weft.stage = 0 : i64}
// CHECK-NEXT: %[[LOSS:.*]] = weft.transfer {{.*}}#1 from 1 to 0
// CHECK-NEXT: weft.observe "loss", %[[LOSS]]
// CHECK-NEXT: weft.observe "gradient/w1", %[[G1]]
// CHECK-NEXT: weft.transfer %[[N0]] from 0 to 1
// CHECK-NEXT: weft.map
// CHECK:      weft.observe "norm"
// CHECK-NEXT: weft.agree
// CHECK-NEXT: weft.transfer
// CHECK-NEXT: weft.read @w1

#mesh = #weft.mesh<"dp"=2>
#none = affine_map<() -> ()>
weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64>
weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64>
func.func private @step_forward_0(%m: index) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.read @w0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @step_forward_1(%m: index, %x: tensor<4xf64>) -> (tensor<4xf64>, tensor<f64>)
    attributes {weft.micro_batch, weft.stage = 1 : i64} {
  %0 = weft.contract "a->"(%x) : (tensor<4xf64>) -> tensor<f64>
  return %x, %0 : tensor<4xf64>, tensor<f64>
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
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %s0:2 = weft.call @step_forward_1(%c0, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> (tensor<4xf64>, tensor<f64>)
  %d0 = weft.call @step_backward_1(%c0, %s0#0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %u0 = weft.transfer %d0 from 1 to 0 : tensor<4xf64>
  %e0 = weft.call @step_backward_0(%c0, %u0) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %x1 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t1 = weft.transfer %x1 from 0 to 1 : tensor<4xf64>
  %s1:2 = weft.call @step_forward_1(%c1, %t1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> (tensor<4xf64>, tensor<f64>)
  %d1 = weft.call @step_backward_1(%c1, %s1#0) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %u1 = weft.transfer %d1 from 1 to 0 : tensor<4xf64>
  %e1 = weft.call @step_backward_0(%c1, %u1) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %l = weft.transfer %s1#1 from 1 to 0 : tensor<f64>
  weft.observe "loss", %l {weft.stage = 0 : i64} : tensor<f64>
  %g1 = weft.all_reduce sum %d1 over ["dp"] of #mesh {weft.stage = 1 : i64} : tensor<4xf64> -> tensor<4xf64>
  weft.observe "gradient/w1", %g1 {weft.stage = 1 : i64} : tensor<4xf64>
  %n1 = weft.contract "a->"(%g1) {weft.stage = 1 : i64} : (tensor<4xf64>) -> tensor<f64>
  %g0 = weft.all_reduce sum %e1 over ["dp"] of #mesh {weft.stage = 0 : i64} : tensor<4xf64> -> tensor<4xf64>
  %n0 = weft.contract "a->"(%g0) {weft.stage = 0 : i64} : (tensor<4xf64>) -> tensor<f64>
  %o = weft.transfer %n0 from 0 to 1 : tensor<f64>
  %n = weft.map ins(%o, %n1 : tensor<f64>, tensor<f64>) maps [#none, #none] {weft.stage = 1 : i64} -> tensor<f64> {
  ^bb0(%x: f64, %y: f64):
    %z = arith.addf %x, %y : f64
    weft.yield %z : f64
  }
  weft.observe "norm", %n {weft.stage = 1 : i64} : tensor<f64>
  weft.agree
  %b = weft.transfer %n from 1 to 0 : tensor<f64>
  %w1 = weft.read @w1 {weft.stage = 1 : i64} : tensor<4xf64>
  weft.assign @w1, %g1 {weft.stage = 1 : i64} : tensor<4xf64>
  weft.assign @w0, %g0 {weft.stage = 0 : i64} : tensor<4xf64>
  return
}
