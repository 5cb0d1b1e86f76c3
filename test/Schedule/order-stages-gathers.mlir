// RUN: weft-opt %s '--order-stages=schedule=0UNSHARD,0F0,0F1,0RESHARD,0UNSHARD,0B0,0B1,0RESHARD,0REDUCE_GRAD;1F0,1B0,1F1,1B1' | FileCheck %s
// RUN: weft-opt %s '--order-stages=schedule=gpipe gather=micro-batch' 2>/dev/null | FileCheck %s --check-prefix=EACH
// RUN: weft-opt %s '--order-stages=gather=run' 2>&1 | FileCheck %s --check-prefix=RUNS
// RUN: not weft-opt %s '--order-stages=gather=layer' 2>&1 | FileCheck %s --check-prefix=PERIOD
// RUN: not weft-opt %s '--order-stages=schedule=0F0,0UNSHARD,0F1,0B0,0B1;1F0,1B0,1F1,1B1' 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: weft-opt %s '--order-stages=schedule=0F0,0F1,0B0,0B1;1F0,1B0,1F1,1B1,1REDUCE_GRAD' 2>&1 | FileCheck %s --check-prefix=IDLE

// PERIOD: order-stages: unknown period 'layer' of gathers, expected step, run or micro-batch
// LATE: order-stages: forward of micro-batch 0 in chunk 0 comes before any UNSHARD of the chunk
// IDLE: warning: order-stages: chunks 1: REDUCE_GRAD has no effect, as no sums of their gradients are reduced once a step
// RUNS: warning: order-stages: chunks 1: UNSHARD has no effect, as their parameters are not gathered once a step

// What lies between the variable and the operand of calls becomes a function, without what is a scalar; the root keeps
// nothing of it. The reduction stands behind the last backward, with the rounding before it.
// CHECK-LABEL: func.func private @step_gather_0(
// CHECK-SAME:      %[[SCALE:.*]]: tensor<f64>) -> tensor<8xf32> attributes {weft.gather, weft.stage = 0 : i64}
// CHECK:         %[[W:.*]] = weft.read @w0
// CHECK:         %[[R:.*]] = weft.map ins(%[[W]], %[[SCALE]]
// CHECK:         %[[G:.*]] = weft.all_gather %[[R]]
// CHECK:         return %[[G]]
// CHECK-LABEL: func.func private @step_reduce_0(
// CHECK-SAME:      attributes {weft.reduce, weft.stage = 0 : i64}
// CHECK:         weft.reduce_scatter
// CHECK-LABEL: func.func @step()
// CHECK-NOT:     weft.all_gather
// CHECK:         %[[A:.*]] = weft.call @step_gather_0({{.*}}) label "chunk 0 gather"
// CHECK-NEXT:    weft.call @step_forward_0({{.*}}, %[[A]]) label "micro-batch 0"
// CHECK:         weft.call @step_forward_0({{.*}}, %[[A]]) label "micro-batch 1"
// CHECK:         %[[B:.*]] = weft.call @step_gather_0({{.*}}) label "chunk 0 gather"
// CHECK:         weft.call @step_backward_0({{.*}}, %[[B]]) label "micro-batch 0"
// CHECK:         %[[SUM:.*]] = weft.call @step_backward_0({{.*}}, %[[B]]) label "micro-batch 1"
// CHECK-NEXT:    %[[REDUCED:.*]] = weft.call @step_reduce_0(%[[SUM]]) label "chunk 0 reduce"
// CHECK:         weft.assign @w0, %[[REDUCED]]
// Evaluations gather, too.
// CHECK-LABEL: func.func private @evaluate_gather_0(
// CHECK-LABEL: func.func @evaluate()
// CHECK:         %[[E:.*]] = weft.call @evaluate_gather_0
// CHECK:         weft.call @step_forward_0({{.*}}, %[[E]])

// EACH-LABEL: func.func @step()
// EACH:         %[[A:.*]] = weft.call @step_gather_0
// EACH:         weft.call @step_forward_0({{.*}}, %[[A]]) label "micro-batch 0"
// EACH:         %[[B:.*]] = weft.call @step_gather_0
// EACH:         weft.call @step_forward_0({{.*}}, %[[B]]) label "micro-batch 1"
// EACH:         weft.call @step_gather_0
// EACH:         weft.call @step_backward_0
// EACH:         weft.call @step_gather_0
// EACH:         weft.call @step_backward_0
// EACH:         weft.reduce_scatter

#mesh = #weft.mesh<"dp"=2>
#map = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>
module attributes {weft.mesh = #mesh} {
weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<8xf64, #weft.sharding<#mesh, [{"dp"}]>>
weft.variable parameter @scale [] {weft.stage = 0 : i64} : tensor<f64>
weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64>
func.func private @step_forward_0(%m: index, %w: tensor<8xf32>) -> tensor<4xf64>
    attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
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
func.func private @step_backward_0(%m: index, %sum: tensor<8xf64>, %d: tensor<4xf64>, %w: tensor<8xf32>)
    -> tensor<8xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return %sum : tensor<8xf64>
}
func.func @step() {
  %w = weft.read @w0 : tensor<4xf64>
  %scale = weft.read @scale : tensor<f64>
  %r = weft.map ins(%w, %scale : tensor<4xf64>, tensor<f64>) maps [#map, #scalar] -> tensor<4xf32> {
  ^bb0(%a: f64, %b: f64):
    %p = arith.mulf %a, %b : f64
    %t = arith.truncf %p : f64 to f32
    weft.yield %t : f32
  }
  %g = weft.all_gather %r dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
  %z = weft.fill constant 0.0 : tensor<8xf64>
  %z1 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x0 = weft.call @step_forward_0(%c0, %g) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<8xf32>) -> tensor<4xf64>
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %s0 = weft.call @step_forward_1(%c0, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d0:2 = weft.call @step_backward_1(%c0, %z1, %s0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  %u0 = weft.transfer %d0#0 from 1 to 0 : tensor<4xf64>
  %e0 = weft.call @step_backward_0(%c0, %z, %u0, %g) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<8xf64>, tensor<4xf64>, tensor<8xf32>) -> tensor<8xf64>
  %x1 = weft.call @step_forward_0(%c1, %g) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<8xf32>) -> tensor<4xf64>
  %t1 = weft.transfer %x1 from 0 to 1 : tensor<4xf64>
  %s1 = weft.call @step_forward_1(%c1, %t1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  %d1:2 = weft.call @step_backward_1(%c1, %d0#1, %s1) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  %u1 = weft.transfer %d1#0 from 1 to 0 : tensor<4xf64>
  %e1 = weft.call @step_backward_0(%c1, %e0, %u1, %g) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<8xf64>, tensor<4xf64>, tensor<8xf32>) -> tensor<8xf64>
  %n = weft.reduce_scatter sum %e1 dim 0 over ["dp"] of #mesh : tensor<8xf64> -> tensor<4xf64>
  weft.assign @w0, %n {weft.stage = 0 : i64} : tensor<4xf64>
  weft.assign @w1, %d1#1 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
func.func @evaluate() {
  %w = weft.read @w0 : tensor<4xf64>
  %r = weft.map ins(%w : tensor<4xf64>) maps [#map] -> tensor<4xf32> {
  ^bb0(%a: f64):
    %t = arith.truncf %a : f64 to f32
    weft.yield %t : f32
  }
  %g = weft.all_gather %r dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
  %c0 = arith.constant 0 : index
  %x0 = weft.call @step_forward_0(%c0, %g) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<8xf32>) -> tensor<4xf64>
  %t0 = weft.transfer %x0 from 0 to 1 : tensor<4xf64>
  %s0 = weft.call @step_forward_1(%c0, %t0) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>) -> tensor<4xf64>
  weft.observe "validation_loss", %s0 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
}
