// RUN: weft-opt %s --order-stages | FileCheck %s
// RUN: weft-opt %s --order-stages=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: not weft-opt %s --order-stages=schedule=other 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// RUN: weft-opt %s '--order-stages=schedule=0F0,0F1,0B0,0B1;1F0,1B0,1F1,1B1' | FileCheck %s
// RUN: weft-opt %s '--order-stages=schedule=0F0,0F1,0B0,0B1;1F0,1F1,1B0,1B1' | FileCheck %s --check-prefix=OWN
// RUN: not weft-opt %s '--order-stages=schedule=0F0,0F1,0B0;1F0,1B0,1F1,1B1' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not weft-opt %s '--order-stages=schedule=0F0,0F1,0B0,0B1;1F0,1X0' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not weft-opt %s '--order-stages=schedule=1F0,1B0,1F1,1B1;0F0,0F1,0B0,0B1' 2>&1 | FileCheck %s --check-prefix=PLACE

// UNKNOWN: order-stages: unknown schedule 'other', expected gpipe, 1f1b, zbh1, zbv, or the actions of each stage
// MISSING: order-stages: backward of micro-batch 1 in chunk 0 is missing
// TEXT: order-stages: expected actions such as 0F3 or 0B3, {{.*}} got '1X0'
// PLACE: order-stages: the schedule does not have forward of micro-batch 0 in chunk 0 in stage 0

// OWN-LABEL: func.func @step
// OWN:      weft.call @step_forward_1({{.*}}) label "micro-batch 1"
// OWN:      weft.call @step_backward_1({{.*}}) label "micro-batch 0"

// Calls stand where they begin, forward taking 1 and backward 2; transfers where their stages meet. Stage 0 begins with
// a micro-batch more than stage 1.
// CHECK-LABEL: func.func @step
// CHECK:      %[[ZERO:.*]] = weft.fill
// CHECK:      %[[X0:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 0"
// CHECK-NEXT: weft.transfer %[[X0]] from 0 to 1
// CHECK-NEXT: %[[X1:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.call @step_forward_1({{.*}}) label "micro-batch 0"
// CHECK-NEXT: %[[D0:.*]]:2 = weft.call @step_backward_1({{.*}}) label "micro-batch 0"
// CHECK-NEXT: weft.transfer %[[D0]]#0 from 1 to 0
// CHECK-NEXT: weft.transfer %[[X1]] from 0 to 1
// CHECK-NEXT: weft.call @step_backward_0({{.*}}) label "micro-batch 0"
// CHECK-NEXT: weft.call @step_forward_1({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.call @step_backward_1({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.transfer {{.*}} from 1 to 0
// CHECK-NEXT: weft.call @step_backward_0({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.assign @w0
// CHECK:      weft.transfer {{.*}} from 1 to 0
// CHECK:      weft.observe "norm"

// Evaluations go forward only; nothing else stands between their calls and transfers.
// CHECK-LABEL: func.func @evaluate
// CHECK:      weft.fill
// CHECK-NEXT: weft.call @step_forward_0
// CHECK-NEXT: weft.transfer
// CHECK-NEXT: weft.call @step_forward_1
// CHECK-NEXT: weft.observe "validation_loss"

// All micro-batches go forward first.
// GPIPE-LABEL: func.func @step
// GPIPE:      weft.call @step_forward_0({{.*}}) label "micro-batch 0"
// GPIPE:      weft.call @step_forward_0({{.*}}) label "micro-batch 1"
// GPIPE:      weft.call @step_forward_1({{.*}}) label "micro-batch 0"
// GPIPE:      weft.call @step_forward_1({{.*}}) label "micro-batch 1"
// GPIPE:      weft.call @step_backward_1({{.*}}) label "micro-batch 0"

weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64>
weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64>
func.func private @step_forward_0(%m: index) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.read @w0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @step_forward_1(%m: index, %x: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %x : tensor<4xf64>
}
func.func private @step_backward_1(%m: index, %sum: tensor<4xf64>, %saved: tensor<4xf64>)
    -> (tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %saved, %sum : tensor<4xf64>, tensor<4xf64>
}
func.func private @step_backward_0(%m: index, %sum: tensor<4xf64>, %d: tensor<4xf64>)
    -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return %d : tensor<4xf64>
}
func.func @step() {
  %z = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %s0 = weft.call @step_forward_1(%c0, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d0:2 = weft.call @step_backward_1(%c0, %z, %s0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  %u0 = weft.transfer %d0#0 from 1 to 0 : tensor<4xf64>
  %e0 = weft.call @step_backward_0(%c0, %z, %u0) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %x1 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t1 = weft.transfer %x1 from 0 to 1 : tensor<4xf64>
  %s1 = weft.call @step_forward_1(%c1, %t1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d1:2 = weft.call @step_backward_1(%c1, %d0#1, %s1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  %u1 = weft.transfer %d1#0 from 1 to 0 : tensor<4xf64>
  %e1 = weft.call @step_backward_0(%c1, %e0, %u1) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  weft.assign @w0, %e1 {weft.stage = 0 : i64} : tensor<4xf64>
  weft.assign @w1, %d1#1 {weft.stage = 1 : i64} : tensor<4xf64>
  %n = weft.transfer %d1#1 from 1 to 0 : tensor<4xf64>
  weft.observe "norm", %n {weft.stage = 0 : i64} : tensor<4xf64>
  return
}
func.func @evaluate() {
  %c0 = arith.constant 0 : index
  %x0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %z = weft.fill constant 0.0 {weft.stage = 1 : i64} : tensor<f64>
  %s0 = weft.call @step_forward_1(%c0, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  weft.observe "validation_loss", %z {weft.stage = 1 : i64} : tensor<f64>
  return
}
