// RUN: weft-opt %s -split-stages=layers=1,1,1 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-stages="layers=1,1,1 own-sums=false" | FileCheck %s --check-prefix=JOINT --enable-var-scope

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
