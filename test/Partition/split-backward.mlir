// RUN: weft-opt %s -split-input-file -split-backward=chunks=0,1 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-input-file -split-backward=chunks=0 | FileCheck %s --check-prefix=FIRST
// RUN: weft-opt %s -split-input-file -split-backward | FileCheck %s --check-prefix=NONE
// NONE-NOT: weights
// FIRST-NOT: @step_backward_1_weights

#id = affine_map<(i, j) -> (i, j)>

// The example of the pass's description. The first chunk sends no gradients, so all of its backward
// may wait.

// CHECK-LABEL: func.func private @step_backward_1_inputs(
// CHECK-SAME:    %{{.*}}: index, %[[W:.*]]: tensor<6x4xf64>, %[[DY:.*]]: tensor<8x6xf64>) -> tensor<8x4xf64>
// CHECK-SAME:    attributes {weft.micro_batch, weft.stage = 1 : i64}
// CHECK-NEXT:    %[[DX:.*]] = weft.contract "sn,nk->sk"(%[[DY]], %[[W]])
// CHECK-NEXT:    return %[[DX]]
// CHECK-LABEL: func.func private @step_backward_1_weights(
// CHECK-SAME:    %{{.*}}: index, %[[SUM:.*]]: tensor<6x4xf64>, %[[X:.*]]: tensor<8x4xf64>, %[[DY:.*]]: tensor<8x6xf64>) -> tensor<6x4xf64>
// CHECK-SAME:    attributes {weft.micro_batch, weft.stage = 1 : i64, weft.weight_gradients}
// CHECK-NEXT:    %[[DW:.*]] = weft.contract "sn,sk->nk"(%[[DY]], %[[X]])
// CHECK-NEXT:    %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[DW]]
// CHECK:         return %[[NEXT]]
// CHECK-NOT:   func.func private @step_backward_1(
// CHECK-LABEL: func.func private @step_backward_0(
// CHECK-SAME:    attributes {weft.micro_batch, weft.stage = 0 : i64, weft.weight_gradients}
// CHECK-LABEL: func.func @step()
// CHECK:         %[[A:.*]] = weft.call @step_backward_1_inputs(%[[C0:.*]], %[[W:.*]], %[[DY:.*]]) label "micro-batch 0" {weft.stage = 1 : i64}
// CHECK-NEXT:    %[[B:.*]] = weft.call @step_backward_1_weights(%[[C0]], %[[ZERO:.*]], %[[X:.*]], %[[DY]]) label "micro-batch 0" {weft.stage = 1 : i64}
// CHECK-NEXT:    weft.transfer %[[A]] from 1 to 0
// CHECK:         %[[C:.*]] = weft.call @step_backward_1_inputs(%[[C1:.*]], %[[W]],
// CHECK-NEXT:    weft.call @step_backward_1_weights(%[[C1]], %[[B]],

func.func private @step_forward_0(%b: index) -> tensor<8x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.fill constant 1.0 : tensor<8x4xf64>
  return %0 : tensor<8x4xf64>
}
func.func private @step_forward_1(%b: index, %x: tensor<8x4xf64>, %w: tensor<6x4xf64>) -> tensor<8x6xf64> attributes {weft.micro_batch, weft.stage = 1 : i64} {
  %0 = weft.contract "sk,nk->sn"(%x, %w) : (tensor<8x4xf64>, tensor<6x4xf64>) -> tensor<8x6xf64>
  return %0 : tensor<8x6xf64>
}
func.func private @step_backward_1(%b: index, %sum: tensor<6x4xf64>, %w: tensor<6x4xf64>, %x: tensor<8x4xf64>, %dy: tensor<8x6xf64>) -> (tensor<8x4xf64>, tensor<6x4xf64>) attributes {weft.micro_batch, weft.stage = 1 : i64} {
  %0 = weft.contract "sn,nk->sk"(%dy, %w) : (tensor<8x6xf64>, tensor<6x4xf64>) -> tensor<8x4xf64>
  %1 = weft.contract "sn,sk->nk"(%dy, %x) : (tensor<8x6xf64>, tensor<8x4xf64>) -> tensor<6x4xf64>
  %2 = weft.map ins(%sum, %1 : tensor<6x4xf64>, tensor<6x4xf64>) maps [#id, #id] -> tensor<6x4xf64> {
  ^bb0(%s: f64, %t: f64):
    %u = arith.addf %s, %t : f64
    weft.yield %u : f64
  }
  return %0, %2 : tensor<8x4xf64>, tensor<6x4xf64>
}
func.func private @step_backward_0(%b: index, %sum: tensor<8x4xf64>, %dx: tensor<8x4xf64>) -> tensor<8x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.map ins(%sum, %dx : tensor<8x4xf64>, tensor<8x4xf64>) maps [#id, #id] -> tensor<8x4xf64> {
  ^bb0(%s: f64, %t: f64):
    %u = arith.addf %s, %t : f64
    weft.yield %u : f64
  }
  return %0 : tensor<8x4xf64>
}
func.func @step() {
  %w = weft.fill constant 0.5 : tensor<6x4xf64>
  %z0 = weft.fill constant 0.0 : tensor<8x4xf64>
  %z1 = weft.fill constant 0.0 : tensor<6x4xf64>
  %c0 = arith.constant 0 : index
  %a0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<8x4xf64>
  %a1 = weft.transfer %a0 from 0 to 1 : tensor<8x4xf64>
  %a2 = weft.call @step_forward_1(%c0, %a1, %w) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<8x4xf64>, tensor<6x4xf64>) -> tensor<8x6xf64>
  %a3:2 = weft.call @step_backward_1(%c0, %z1, %w, %a1, %a2) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<6x4xf64>, tensor<6x4xf64>, tensor<8x4xf64>, tensor<8x6xf64>) -> (tensor<8x4xf64>, tensor<6x4xf64>)
  %a4 = weft.transfer %a3#0 from 1 to 0 : tensor<8x4xf64>
  %a5 = weft.call @step_backward_0(%c0, %z0, %a4) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  %c1 = arith.constant 1 : index
  %b0 = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64} : (index) -> tensor<8x4xf64>
  %b1 = weft.transfer %b0 from 0 to 1 : tensor<8x4xf64>
  %b2 = weft.call @step_forward_1(%c1, %b1, %w) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<8x4xf64>, tensor<6x4xf64>) -> tensor<8x6xf64>
  %b3:2 = weft.call @step_backward_1(%c1, %a3#1, %w, %b1, %b2) label "micro-batch 1" {weft.stage = 1 : i64} : (index, tensor<6x4xf64>, tensor<6x4xf64>, tensor<8x4xf64>, tensor<8x6xf64>) -> (tensor<8x4xf64>, tensor<6x4xf64>)
  %b4 = weft.transfer %b3#0 from 1 to 0 : tensor<8x4xf64>
  %b5 = weft.call @step_backward_0(%c1, %a5, %b4) label "micro-batch 1" {weft.stage = 0 : i64} : (index, tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  weft.observe "first", %b5 {weft.stage = 0 : i64} : tensor<8x4xf64>
  weft.observe "second", %b3#1 {weft.stage = 1 : i64} : tensor<6x4xf64>
  return
}

// -----

// A layer's function is cut with the chunk's. Of the layer's weight gradients, what two activations
// make of a smaller operand is of the first function, and so is the gradient of a scale, and what is
// added to its sum; the gradient of a bias is of the second, which keeps its operand anyway. A table
// is made where it is used. Chunk 0 uses the whole function of the layer.

#row = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func private @layer_backward_inputs(
// CHECK-SAME:    %[[W:.*]]: tensor<4x4xf64>, %[[A:.*]]: tensor<8x4xf64>, %[[B:.*]]: tensor<8x4xf64>, %[[SCALE:.*]]: tensor<4xf64>, %[[DY:.*]]: tensor<8x4xf64>)
// CHECK-SAME:    -> (tensor<8x4xf64>, tensor<4xf64>, tensor<8x4xf64>)
// CHECK:         %[[OPERAND:.*]] = weft.map ins(%[[A]], %[[B]]
// CHECK:         %[[D:.*]] = weft.contract "sn,nk->sk"(%[[DY]], %[[W]])
// CHECK-NEXT:    %[[DX:.*]], %[[DSCALE:.*]] = weft.norm_grad
// CHECK-NEXT:    return %[[DX]], %[[DSCALE]], %[[OPERAND]]
// CHECK-LABEL: func.func private @layer_backward_weights(
// CHECK-SAME:    %[[DY:.*]]: tensor<8x4xf64>, %[[OPERAND:.*]]: tensor<8x4xf64>)
// CHECK-SAME:    -> (tensor<4x4xf64>, tensor<4xf64>)
// CHECK-NEXT:    %[[DW:.*]] = weft.contract "sn,sk->nk"(%[[DY]], %[[OPERAND]])
// CHECK-NEXT:    %[[DB:.*]] = weft.contract "sn->n"(%[[DY]])
// CHECK-NEXT:    return %[[DW]], %[[DB]]
// CHECK-LABEL: func.func private @layer_backward(
// CHECK-LABEL: func.func private @step_backward_1_inputs(
// CHECK:         %[[CALL:.*]]:3 = weft.call @layer_backward_inputs(
// CHECK-NEXT:    %[[NEXT:.*]] = weft.call @add(%{{.*}}, %[[CALL]]#1)
// CHECK-NEXT:    return %[[CALL]]#0, %[[NEXT]], %[[CALL]]#2
// CHECK-LABEL: func.func private @step_backward_1_weights(
// CHECK-SAME:    %[[OPERAND:[^ ]*]]: tensor<8x4xf64>) -> (tensor<4x4xf64>, tensor<4xf64>)
// CHECK-NEXT:    %[[CALL:.*]]:2 = weft.call @layer_backward_weights(%{{.*}}, %[[OPERAND]])
// CHECK-LABEL: func.func private @step_backward_0(
// CHECK:         weft.call @layer_backward(
func.func private @layer_backward(%w: tensor<4x4xf64>, %a: tensor<8x4xf64>, %b: tensor<8x4xf64>, %scale: tensor<4xf64>, %dy: tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>) {
  %x = weft.map ins(%a, %b : tensor<8x4xf64>, tensor<8x4xf64>) maps [#id, #id] -> tensor<8x4xf64> {
  ^bb0(%s: f64, %t: f64):
    %u = arith.mulf %s, %t : f64
    weft.yield %u : f64
  }
  %dw = weft.contract "sn,sk->nk"(%dy, %x) : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %db = weft.contract "sn->n"(%dy) : (tensor<8x4xf64>) -> tensor<4xf64>
  %d = weft.contract "sn,nk->sk"(%dy, %w) : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %dx, %dscale = weft.norm_grad rms %a scale(%scale : tensor<4xf64>) gradient(%d : tensor<8x4xf64>) epsilon = 1.0e-05 : tensor<8x4xf64> -> tensor<8x4xf64>, tensor<4xf64>
  return %dx, %dscale, %dw, %db : tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>
}
func.func private @add(%a: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%a, %b : tensor<4xf64>, tensor<4xf64>) maps [#v, #v] -> tensor<4xf64> {
  ^bb0(%s: f64, %t: f64):
    %u = arith.addf %s, %t : f64
    weft.yield %u : f64
  }
  return %0 : tensor<4xf64>
}
func.func private @step_forward_0(%b: index) -> tensor<8x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0 = weft.fill constant 1.0 : tensor<8x4xf64>
  return %0 : tensor<8x4xf64>
}
func.func private @step_forward_1(%b: index, %x: tensor<8x4xf64>) -> tensor<8x4xf64> attributes {weft.micro_batch, weft.stage = 1 : i64} {
  return %x : tensor<8x4xf64>
}
func.func private @step_backward_1(%b: index, %sum: tensor<4xf64>, %w: tensor<4x4xf64>, %x: tensor<8x4xf64>, %y: tensor<8x4xf64>, %scale: tensor<4xf64>) -> (tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>) attributes {weft.micro_batch, weft.stage = 1 : i64} {
  %0:4 = weft.call @layer_backward(%w, %x, %x, %scale, %y) label "layers.1 backward" : (tensor<4x4xf64>, tensor<8x4xf64>, tensor<8x4xf64>, tensor<4xf64>, tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>)
  %1 = weft.call @add(%sum, %0#1) label "layers.1 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0#0, %1, %0#2, %0#3 : tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>
}
func.func private @step_backward_0(%b: index, %w: tensor<4x4xf64>, %dx: tensor<8x4xf64>, %scale: tensor<4xf64>) -> tensor<8x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
  %0:4 = weft.call @layer_backward(%w, %dx, %dx, %scale, %dx) label "layers.0 backward" : (tensor<4x4xf64>, tensor<8x4xf64>, tensor<8x4xf64>, tensor<4xf64>, tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>)
  return %0#0 : tensor<8x4xf64>
}
func.func @step() {
  %w = weft.fill constant 0.5 : tensor<4x4xf64>
  %scale = weft.fill constant 0.5 : tensor<4xf64>
  %z = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %a0 = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64} : (index) -> tensor<8x4xf64>
  %a1 = weft.transfer %a0 from 0 to 1 : tensor<8x4xf64>
  %a2 = weft.call @step_forward_1(%c0, %a1) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<8x4xf64>) -> tensor<8x4xf64>
  %a3:4 = weft.call @step_backward_1(%c0, %z, %w, %a1, %a2, %scale) label "micro-batch 0" {weft.stage = 1 : i64} : (index, tensor<4xf64>, tensor<4x4xf64>, tensor<8x4xf64>, tensor<8x4xf64>, tensor<4xf64>) -> (tensor<8x4xf64>, tensor<4xf64>, tensor<4x4xf64>, tensor<4xf64>)
  %a4 = weft.transfer %a3#0 from 1 to 0 : tensor<8x4xf64>
  %a5 = weft.call @step_backward_0(%c0, %w, %a4, %scale) label "micro-batch 0" {weft.stage = 0 : i64} : (index, tensor<4x4xf64>, tensor<8x4xf64>, tensor<4xf64>) -> tensor<8x4xf64>
  weft.observe "first", %a5 {weft.stage = 0 : i64} : tensor<8x4xf64>
  weft.observe "scale", %a3#1 {weft.stage = 1 : i64} : tensor<4xf64>
  weft.observe "weight", %a3#2 {weft.stage = 1 : i64} : tensor<4x4xf64>
  weft.observe "bias", %a3#3 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
