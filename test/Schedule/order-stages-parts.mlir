// RUN: not weft-opt %s "-order-stages=schedule=0F0,0F1,0F2,0B0,0B1,0B2;1F0,1I0,1F1,1I1,1W0,1F2,1B2,1W1" 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: order-stages: backward of micro-batch 2 in chunk 1 comes before weight gradient of micro-batch 1 in chunk 1, but sums over micro-batches have their order
// RUN: weft-opt %s "-order-stages=schedule=0F0,0F1,0F2,0B0,0B1,0B2;1F0,1I0,1F1,1I1,1W0,1W1,1F2,1B2" | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -order-stages=schedule=zbh1 | FileCheck %s --check-prefix=NAMED
// RUN: weft-opt %s -order-stages=schedule=1f1b | FileCheck %s --check-prefix=WHOLE

// Gradients of inputs and of weights are actions by themselves, or both parts are one, for some
// micro-batches or for all. Those of inputs are sent on at once.

// CHECK-LABEL: func.func @step()
// CHECK:         %[[I0:.*]] = weft.call @backward_1_inputs(%c0
// CHECK:         weft.transfer %[[I0]] from 1 to 0
// CHECK:         %[[I1:.*]] = weft.call @backward_1_inputs(%c1
// CHECK:         %[[W0:.*]] = weft.call @backward_1_weights(%c0
// CHECK:         %[[W1:.*]] = weft.call @backward_1_weights(%c1, %[[W0]]
// CHECK:         weft.call @forward_1(%c2
// CHECK-NEXT:    weft.call @backward_1_inputs(%c2
// CHECK-NEXT:    weft.call @backward_1_weights(%c2, %[[W1]]

// NAMED-LABEL: func.func @step()
// NAMED:         weft.call @backward_1_inputs(%c0
// NAMED:         weft.call @backward_1_inputs(%c1
// NAMED:         weft.call @backward_1_weights(%c0
// NAMED:         weft.call @backward_1_inputs(%c2
// NAMED:         weft.call @backward_1_weights(%c1
// NAMED:         weft.call @backward_1_weights(%c2

// WHOLE-LABEL: func.func @step()
// WHOLE:         weft.call @backward_1_inputs(%c0
// WHOLE-NEXT:    weft.call @backward_1_weights(%c0
// WHOLE:         weft.call @backward_1_inputs(%c1
// WHOLE-NEXT:    weft.call @backward_1_weights(%c1

func.func private @forward_0(%b: index) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @forward_1(%b: index, %x: tensor<4xf64>) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %x : tensor<4xf64>
}
func.func private @backward_1_inputs(%b: index, %y: tensor<4xf64>) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %y : tensor<4xf64>
}
func.func private @backward_1_weights(%b: index, %sum: tensor<4xf64>, %x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 1 : i64, weft.weight_gradients} {
  return %sum : tensor<4xf64>
}
func.func private @backward_0(%b: index, %sum: tensor<4xf64>, %d: tensor<4xf64>) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return %sum : tensor<4xf64>
}
func.func @step() {
  %g0 = weft.fill constant 0.0 : tensor<4xf64>
  %h0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %a0 = weft.call @forward_0(%c0) label "0" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %x0 = weft.transfer %a0 from 0 to 1 : tensor<4xf64>
  %y0 = weft.call @forward_1(%c0, %x0) label "0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d0 = weft.call @backward_1_inputs(%c0, %y0) label "0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %h1 = weft.call @backward_1_weights(%c0, %h0, %x0, %y0) label "0" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %e0 = weft.transfer %d0 from 1 to 0 : tensor<4xf64>
  %g1 = weft.call @backward_0(%c0, %g0, %e0) label "0" {weft.stage = 0 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %c1 = arith.constant 1 : index
  %a1 = weft.call @forward_0(%c1) label "1" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %x1 = weft.transfer %a1 from 0 to 1 : tensor<4xf64>
  %y1 = weft.call @forward_1(%c1, %x1) label "1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d1 = weft.call @backward_1_inputs(%c1, %y1) label "1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %h2 = weft.call @backward_1_weights(%c1, %h1, %x1, %y1) label "1" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %e1 = weft.transfer %d1 from 1 to 0 : tensor<4xf64>
  %g2 = weft.call @backward_0(%c1, %g1, %e1) label "1" {weft.stage = 0 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %c2 = arith.constant 2 : index
  %a2 = weft.call @forward_0(%c2) label "2" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %x2 = weft.transfer %a2 from 0 to 1 : tensor<4xf64>
  %y2 = weft.call @forward_1(%c2, %x2) label "2" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d2 = weft.call @backward_1_inputs(%c2, %y2) label "2" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %h3 = weft.call @backward_1_weights(%c2, %h2, %x2, %y2) label "2" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %e2 = weft.transfer %d2 from 1 to 0 : tensor<4xf64>
  %g3 = weft.call @backward_0(%c2, %g2, %e2) label "2" {weft.stage = 0 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  weft.observe "first", %g3 {weft.stage = 0 : i64} : tensor<4xf64>
  weft.observe "second", %h3 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
