// RUN: weft-opt %s --take-stage=stage=0 | FileCheck %s --check-prefix=FIRST
// RUN: weft-opt %s --take-stage=stage=1 | FileCheck %s --check-prefix=SECOND
// RUN: not weft-opt %s --take-stage=stage=2 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not weft-opt %s --take-stage=stage=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// UNKNOWN: take-stage: expected a stage from 0 to 1, got 2
// NEGATIVE: take-stage: expected a stage from 0 to 1, got -1

// Halves of transfers have one number in both stages; micro-batches share it.
// FIRST: module attributes {weft.stage = 0 : i64, weft.stages = 2 : i64}
// FIRST-NOT: @w1
// FIRST-NOT: step_forward_1
// FIRST-LABEL: func.func @init
// FIRST-NEXT: weft.fill constant 1.0
// FIRST-NEXT: weft.assign @w0
// FIRST-NEXT: return
// FIRST-LABEL: func.func @step
// FIRST-NEXT: %[[C0:.*]] = arith.constant 0
// FIRST-NEXT: %[[C1:.*]] = arith.constant 1
// FIRST-NEXT: %[[X0:.*]] = weft.call @step_forward_0(%[[C0]])
// FIRST-NEXT: weft.send %[[X0]] to 1 number 1 : tensor<4xf64>
// FIRST-NEXT: %[[X1:.*]] = weft.call @step_forward_0(%[[C1]])
// FIRST-NEXT: weft.send %[[X1]] to 1 number 1 : tensor<4xf64>
// FIRST-NEXT: %[[N:.*]] = weft.receive from 1 number 2 : tensor<f64>
// FIRST-NEXT: weft.observe "loss", %[[N]]
// FIRST-NEXT: return

// SECOND: module attributes {weft.stage = 1 : i64, weft.stages = 2 : i64}
// SECOND-NOT: @w0
// SECOND-NOT: step_forward_0
// SECOND-LABEL: func.func @step
// SECOND-NEXT: %[[ZERO:.*]] = weft.fill constant 0.0
// SECOND-NEXT: %[[C0:.*]] = arith.constant 0
// SECOND-NEXT: %[[C1:.*]] = arith.constant 1
// SECOND-NEXT: %[[T0:.*]] = weft.receive from 0 number 1 : tensor<4xf64>
// SECOND-NEXT: %[[S0:.*]] = weft.call @step_forward_1(%[[C0]], %[[ZERO]], %[[T0]])
// SECOND-NEXT: %[[T1:.*]] = weft.receive from 0 number 1 : tensor<4xf64>
// SECOND-NEXT: %[[S1:.*]] = weft.call @step_forward_1(%[[C1]], %[[S0]], %[[T1]])
// SECOND-NEXT: weft.observe "loss", %[[S1]]
// SECOND-NEXT: weft.send %[[S1]] to 0 number 2 : tensor<f64>
// SECOND-NEXT: return

weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64>
weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64>
func.func private @step_forward_0(%m: index) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.read @w0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @step_forward_1(%m: index, %sum: tensor<f64>, %x: tensor<4xf64>) -> tensor<f64>
    attributes {weft.micro_batch, weft.stage = 1 : i64} {
  %0 = weft.read @w1 : tensor<4xf64>
  %1 = weft.contract "k,k->"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return %1 : tensor<f64>
}
func.func @init() {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  weft.assign @w0, %0 {weft.stage = 0 : i64} : tensor<4xf64>
  weft.assign @w1, %0 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
func.func @step() {
  %z = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %s0 = weft.call @step_forward_1(%c0, %z, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<f64>, tensor<4xf64>) -> tensor<f64>
  %x1 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t1 = weft.transfer %x1 from 0 to 1 : tensor<4xf64>
  %s1 = weft.call @step_forward_1(%c1, %s0, %t1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<f64>, tensor<4xf64>) -> tensor<f64>
  weft.observe "loss", %s1 {weft.stage = 1 : i64} : tensor<f64>
  %n = weft.transfer %s1 from 1 to 0 : tensor<f64>
  weft.observe "loss", %n {weft.stage = 0 : i64} : tensor<f64>
  return
}
