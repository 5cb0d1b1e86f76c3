// RUN: weft-opt %s -split-stages=placement=0,1,0,1 | FileCheck %s
// RUN: weft-opt %s '-split-stages=layers=1,2,1 placement=0,1,0' | FileCheck %s --check-prefix=BACK
// RUN: not weft-opt %s '-split-stages=layers=1,3 placement=0,1,0' 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not weft-opt %s -split-stages=placement=0,2,0,2 2>&1 | FileCheck %s --check-prefix=GAP
// RUN: not weft-opt %s -split-stages=placement=0,1,0,1,0 2>&1 | FileCheck %s --check-prefix=MANY

// Two stages with two chunks each: a micro-batch passes through both twice.
// CHECK:      weft.variable parameter @layers.0 ["hidden"] {weft.stage = 0 : i64}
// CHECK-NEXT: weft.variable parameter @layers.1 ["hidden"] {weft.stage = 1 : i64}
// CHECK-NEXT: weft.variable parameter @layers.2 ["hidden"] {weft.chunk = 2 : i64, weft.stage = 0 : i64}
// CHECK-NEXT: weft.variable parameter @layers.3 ["hidden"] {weft.chunk = 3 : i64, weft.stage = 1 : i64}
// CHECK-DAG:  func.func private @step_forward_0({{.*}} attributes {weft.micro_batch, weft.stage = 0 : i64}
// CHECK-DAG:  func.func private @step_forward_2({{.*}} attributes {weft.chunk = 2 : i64, weft.micro_batch, weft.stage = 0 : i64}
// CHECK-DAG:  func.func private @step_backward_3({{.*}} attributes {weft.chunk = 3 : i64, weft.micro_batch, weft.stage = 1 : i64}
// CHECK-LABEL: func.func @step()
// CHECK:      %[[F0:.*]] = weft.call @step_forward_0
// CHECK-NEXT: %[[T0:.*]] = weft.transfer %[[F0]] from 0 to 1
// CHECK-NEXT: %[[F1:.*]] = weft.call @step_forward_1(%{{.*}}, %[[T0]])
// CHECK-NEXT: %[[T1:.*]] = weft.transfer %[[F1]] from 1 to 0
// CHECK-NEXT: %[[F2:.*]] = weft.call @step_forward_2(%{{.*}}, %[[T1]])
// CHECK-NEXT: %[[T2:.*]] = weft.transfer %[[F2]] from 0 to 1
// CHECK-NEXT: %[[F3:.*]] = weft.call @step_forward_3(%{{.*}}, %[[T2]])
// CHECK-NEXT: %[[B3:.*]]:2 = weft.call @step_backward_3(%{{.*}}, %{{.*}}, %[[T2]], %[[F3]])
// CHECK-NEXT: %[[D3:.*]] = weft.transfer %[[B3]]#1 from 1 to 0
// CHECK-NEXT: %[[B2:.*]]:2 = weft.call @step_backward_2(%{{.*}}, %{{.*}}, %[[T1]], %[[D3]])

// From stage 0 to stage 1 and back: the first stage has the last chunk, too, and the loss.
// BACK: weft.variable parameter @layers.3 ["hidden"] {weft.chunk = 2 : i64, weft.stage = 0 : i64}
// BACK-LABEL: func.func @step()
// BACK:      weft.call @step_forward_2
// BACK-NEXT: weft.call @step_backward_2
// BACK-NOT:  weft.call @step_forward_3
// BACK:      weft.observe "loss", %{{.*}} {weft.stage = 0 : i64}

// COUNT: split-stages: got layers of 2 chunks, expected those of the 3 in placement
// GAP: split-stages: placement has 2 stages, expected them to be 0 to 1, got 2
// MANY: split-stages: stage 0 has 0 layers, expected at least 1

#id = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (k)>
#k = affine_map<(k) -> (k)>

weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>
weft.variable parameter @layers.0 ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.1 ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.2 ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.3 ["hidden"] : tensor<4xf64>

func.func private @scale(%x: tensor<?x4xf64>, %w: tensor<4xf64>) -> tensor<?x4xf64> {
  %0 = weft.map ins(%x, %w : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<?x4xf64>
}
func.func private @scale_backward(%x: tensor<?x4xf64>, %w: tensor<4xf64>, %dy: tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>) {
  %0 = weft.map ins(%dy, %w : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    weft.yield %c : f64
  }
  %1 = weft.contract "bk,bk->k"(%x, %dy) : (tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  return %0, %1 : tensor<?x4xf64>, tensor<4xf64>
}
func.func private @next(%sum: tensor<4xf64>, %term: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%sum, %term : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}
func.func private @step_micro_batch(%number: index, %s0: tensor<4xf64>, %s1: tensor<4xf64>, %s2: tensor<4xf64>, %s3: tensor<4xf64>)
    -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?x4xf64>
  %x = weft.select %all[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
  %w0 = weft.read @layers.0 : tensor<4xf64>
  %w1 = weft.read @layers.1 : tensor<4xf64>
  %w2 = weft.read @layers.2 : tensor<4xf64>
  %w3 = weft.read @layers.3 : tensor<4xf64>
  %h1 = weft.call @scale(%x, %w0) label "layers.0" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h2 = weft.call @scale(%h1, %w1) label "layers.1" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h3 = weft.call @scale(%h2, %w2) label "layers.2" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h4 = weft.call @scale(%h3, %w3) label "layers.3" : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %d3, %g3 = weft.call @scale_backward(%h3, %w3, %h4) label "layers.3 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %n3 = weft.call @next(%s3, %g3) label "layers.3 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %d2, %g2 = weft.call @scale_backward(%h2, %w2, %d3) label "layers.2 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %n2 = weft.call @next(%s2, %g2) label "layers.2 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %d1, %g1 = weft.call @scale_backward(%h1, %w1, %d2) label "layers.1 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %n1 = weft.call @next(%s1, %g1) label "layers.1 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %d0, %g0 = weft.call @scale_backward(%x, %w0, %d1) label "layers.0 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %n0 = weft.call @next(%s0, %g0) label "layers.0 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %n0, %n1, %n2, %n3 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %1:4 = weft.call @step_micro_batch(%c0, %0, %0, %0, %0) label "micro-batch 0"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  %c1 = arith.constant 1 : index
  %2:4 = weft.call @step_micro_batch(%c1, %1#0, %1#1, %1#2, %1#3) label "micro-batch 1"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  weft.assign @layers.0, %2#0 : tensor<4xf64>
  weft.assign @layers.1, %2#1 : tensor<4xf64>
  weft.assign @layers.2, %2#2 : tensor<4xf64>
  weft.assign @layers.3, %2#3 : tensor<4xf64>
  weft.observe "loss", %2#3 : tensor<4xf64>
  return
}
