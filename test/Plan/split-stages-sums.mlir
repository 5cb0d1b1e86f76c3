// RUN: weft-opt %s -split-input-file -split-stages=layers=1,1,1 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-input-file -split-stages="layers=1,1,1 own-sums=false" | FileCheck %s --check-prefix=JOINT --enable-var-scope

// Each stage adds up its own terms of a scalar, in their order, and sends one number. A sum that is used by itself is a
// term of others.

// CHECK-LABEL: func.func @step()
// CHECK:         %[[A:.*]] = weft.contract "k,k->"(%[[D0:.*]], %[[D0]]) {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = weft.contract "k,k->"(%[[D2:.*]], %[[D2]]) {weft.stage = 2 : i64}
// CHECK-NEXT:    %[[C:.*]] = weft.contract "k->"(%[[D0]]) {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[D:.*]] = weft.contract "k,k->"(%[[D1:.*]], %[[D1]]) {weft.stage = 1 : i64}
// CHECK-NEXT:    %[[E:.*]] = weft.contract "k->"(%[[D1]]) {weft.stage = 1 : i64}
// CHECK-NEXT:    %[[DE:.*]] = weft.map ins(%[[D]], %[[E]] {{.*}} {weft.stage = 1 : i64}
// CHECK:         weft.observe "of stage 1", %[[DE]] {weft.stage = 1 : i64}
// CHECK-NEXT:    %[[AC:.*]] = weft.map ins(%[[A]], %[[C]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         %[[ACA:.*]] = weft.map ins(%[[AC]], %[[A]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         %[[FIRST:.*]] = weft.transfer %[[ACA]] from 0 to 2 : tensor<f64>
// CHECK-NEXT:    %[[SECOND:.*]] = weft.transfer %[[DE]] from 1 to 2 : tensor<f64>
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[FIRST]], %[[B]] {{.*}} {weft.stage = 2 : i64}
// CHECK:         %[[TOTAL:.*]] = weft.map ins(%[[SUM]], %[[SECOND]] {{.*}} {weft.stage = 2 : i64}
// CHECK:         weft.observe "norm", %[[TOTAL]] {weft.stage = 2 : i64}

// Narrow sums are rounded with each term.

// CHECK-NEXT:    %[[F:.*]] = weft.map ins(%[[A]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         %[[G:.*]] = weft.map ins(%[[B]] {{.*}} {weft.stage = 2 : i64}
// CHECK:         %[[H:.*]] = weft.map ins(%[[C]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         %[[F2:.*]] = weft.transfer %[[F]] from 0 to 2 : tensor<bf16>
// CHECK-NEXT:    %[[FG:.*]] = weft.map ins(%[[F2]], %[[G]] {{.*}} {weft.stage = 2 : i64}
// CHECK:         %[[H2:.*]] = weft.transfer %[[H]] from 0 to 2 : tensor<bf16>
// CHECK-NEXT:    weft.map ins(%[[FG]], %[[H2]] {{.*}} {weft.stage = 2 : i64}

#k = affine_map<(k) -> (k)>
#none = affine_map<() -> ()>
weft.variable input @x ["micro_batch", "hidden"] : tensor<2x4xf64>
func.func private @layer(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
func.func private @step_micro_batch(%number: index, %0: tensor<4xf64>, %1: tensor<4xf64>, %2: tensor<4xf64>)
    -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x4xf64>
  %x = weft.select %all[%number] : tensor<2x4xf64> -> tensor<4xf64>
  %h0 = weft.call @layer(%x) label "layers.0" : (tensor<4xf64>) -> tensor<4xf64>
  %3 = weft.call @next(%0, %h0) label "layers.0" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %h1 = weft.call @layer(%h0) label "layers.1" : (tensor<4xf64>) -> tensor<4xf64>
  %4 = weft.call @next(%1, %h1) label "layers.1" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %h2 = weft.call @layer(%h1) label "layers.2" : (tensor<4xf64>) -> tensor<4xf64>
  %5 = weft.call @next(%2, %h2) label "layers.2" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %3, %4, %5 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
func.func private @next(%sum: tensor<4xf64>, %term: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%sum, %term : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %1:3 = weft.call @step_micro_batch(%c0, %0, %0, %0) label "micro-batch 0"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  %c1 = arith.constant 1 : index
  %d0, %d1, %d2 = weft.call @step_micro_batch(%c1, %1#0, %1#1, %1#2) label "micro-batch 1"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  %a = weft.contract "k,k->"(%d0, %d0) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %b = weft.contract "k,k->"(%d2, %d2) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %c = weft.contract "k->"(%d0) : (tensor<4xf64>) -> tensor<f64>
  %d = weft.contract "k,k->"(%d1, %d1) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %e = weft.contract "k->"(%d1) : (tensor<4xf64>) -> tensor<f64>
  %ab = weft.map ins(%a, %b : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%x: f64, %y: f64):
    %z = arith.addf %x, %y : f64
    weft.yield %z : f64
  }
  %abc = weft.map ins(%ab, %c : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%x: f64, %y: f64):
    %z = arith.addf %x, %y : f64
    weft.yield %z : f64
  }
  %de = weft.map ins(%d, %e : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%x: f64, %y: f64):
    %z = arith.addf %x, %y : f64
    weft.yield %z : f64
  }
  weft.observe "of stage 1", %de : tensor<f64>
  %norm = weft.map ins(%abc, %de, %a : tensor<f64>, tensor<f64>, tensor<f64>) maps [#none, #none, #none] -> tensor<f64> {
  ^bb0(%x: f64, %y: f64, %w: f64):
    %z = arith.addf %x, %y : f64
    %s = arith.addf %z, %w : f64
    weft.yield %s : f64
  }
  weft.observe "norm", %norm : tensor<f64>
  %f = weft.map ins(%a : tensor<f64>) maps [#none] -> tensor<bf16> {
  ^bb0(%x: f64):
    %y = arith.truncf %x : f64 to bf16
    weft.yield %y : bf16
  }
  %g = weft.map ins(%b : tensor<f64>) maps [#none] -> tensor<bf16> {
  ^bb0(%x: f64):
    %y = arith.truncf %x : f64 to bf16
    weft.yield %y : bf16
  }
  %h = weft.map ins(%c : tensor<f64>) maps [#none] -> tensor<bf16> {
  ^bb0(%x: f64):
    %y = arith.truncf %x : f64 to bf16
    weft.yield %y : bf16
  }
  %fg = weft.map ins(%f, %g : tensor<bf16>, tensor<bf16>) maps [#none, #none] -> tensor<bf16> {
  ^bb0(%x: bf16, %y: bf16):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %s = arith.addf %v, %w : f32
    %z = arith.truncf %s : f32 to bf16
    weft.yield %z : bf16
  }
  %fgh = weft.map ins(%fg, %h : tensor<bf16>, tensor<bf16>) maps [#none, #none] -> tensor<bf16> {
  ^bb0(%x: bf16, %y: bf16):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %s = arith.addf %v, %w : f32
    %z = arith.truncf %s : f32 to bf16
    weft.yield %z : bf16
  }
  weft.observe "narrow", %fgh : tensor<bf16>
  return
}

// -----

// Without sums of their own, stages send terms of a gradient for each micro-batch.

// CHECK-LABEL: func.func private @step_backward_0(
// CHECK-SAME:    %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64>, %{{.*}}: tensor<?x4xf64>) -> tensor<4xf64>
// CHECK-LABEL: func.func @step()
// CHECK:         weft.transfer %{{.*}} from 2 to 0 : tensor<4xf64>
// CHECK-NOT:     from 2 to 0 : tensor<4xf64>
// JOINT-LABEL: func.func private @step_backward_0(
// JOINT-SAME:    %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64>, %[[HEAD:.*]]: tensor<4xf64>, %{{.*}}: tensor<?x4xf64>) -> tensor<4xf64>
// JOINT:         %[[EMBED:.*]] = weft.contract "b,bk->k"
// JOINT-NEXT:    %[[TERM:.*]] = weft.map ins(%[[EMBED]], %[[HEAD]]
// JOINT:         weft.map ins(%[[SUM]], %[[TERM]]
// JOINT-LABEL: func.func @step()
// JOINT-COUNT-2: weft.transfer %{{.*}} from 2 to 0 : tensor<4xf64>

#k = affine_map<(k) -> (k)>
weft.variable input @x ["micro_batch", "batch"] : tensor<2x?xf64>
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  return %x : tensor<?x4xf64>
}
func.func private @step_micro_batch(%number: index, %sum: tensor<4xf64>) -> tensor<4xf64> attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?xf64>
  %x = weft.select %all[%number] : tensor<2x?xf64> -> tensor<?xf64>
  %w = weft.read @w : tensor<4xf64>
  %h0 = weft.contract "b,k->bk"(%x, %w) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h1 = weft.call @layer(%h0) label "layers.0" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %h2 = weft.call @layer(%h1) label "layers.1" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %h3 = weft.call @layer(%h2) label "layers.2" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %z = weft.contract "bk,k->b"(%h3, %w) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?xf64>
  %head = weft.contract "b,bk->k"(%z, %h3) : (tensor<?xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %dh3 = weft.contract "b,k->bk"(%z, %w) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %dh2 = weft.call @layer(%dh3) label "layers.2 backward" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %dh1 = weft.call @layer(%dh2) label "layers.1 backward" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %dh0 = weft.call @layer(%dh1) label "layers.0 backward" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %embed = weft.contract "b,bk->k"(%x, %dh0) : (tensor<?xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %term = weft.map ins(%embed, %head : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  %next = weft.map ins(%sum, %term : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %next : tensor<4xf64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<4xf64>) -> tensor<4xf64>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1" : (index, tensor<4xf64>) -> tensor<4xf64>
  weft.assign @w, %2 : tensor<4xf64>
  return
}
