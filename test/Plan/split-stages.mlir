// RUN: weft-opt %s -split-input-file -split-stages=layers=1,1 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-input-file -split-stages=layers=2 | FileCheck %s --check-prefix=ONE
// ONE-NOT: weft.stage

// The example of the pass's description.

weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>

func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  return %x : tensor<?x4xf64>
}

// CHECK-LABEL: func.func private @step_forward_0(
// CHECK-SAME:    %[[NUMBER:.*]]: index) -> tensor<?x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64}
// CHECK-NEXT:    %[[ALL:.*]] = weft.read @x : tensor<2x?x4xf64>
// CHECK-NEXT:    %[[PART:.*]] = weft.select %[[ALL]][%[[NUMBER]]] : tensor<2x?x4xf64> -> tensor<?x4xf64>
// CHECK-NEXT:    %[[Y:.*]] = weft.call @layer(%[[PART]]) label "layers.0"
// CHECK-NEXT:    return %[[Y]]

// CHECK-LABEL: func.func private @step_forward_1(
// CHECK-SAME:    %{{.*}}: index, %[[SUM:.*]]: tensor<f64> {weft.may_pend}, %[[X:.*]]: tensor<?x4xf64>) -> (tensor<f64> {weft.may_pend})
// CHECK-SAME:    attributes {weft.micro_batch, weft.stage = 1 : i64}
// CHECK-NEXT:    %[[Y:.*]] = weft.call @layer(%[[X]]) label "layers.1"
// CHECK-NEXT:    %[[TERM:.*]] = weft.contract "bk->"(%[[Y]])
// CHECK-NEXT:    %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK:         return %[[NEXT]]

// CHECK-NOT:   @step_micro_batch
// CHECK-LABEL: func.func @step()
// CHECK:         %[[ZERO:.*]] = weft.fill constant 0.0{{.*}} : tensor<f64>
// CHECK:         %[[A:.*]] = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = weft.transfer %[[A]] from 0 to 1 : tensor<?x4xf64>
// CHECK-NEXT:    %[[C:.*]] = weft.call @step_forward_1(%c0, %[[ZERO]], %[[B]]) label "micro-batch 0" {weft.stage = 1 : i64}
// CHECK:         %[[D:.*]] = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[E:.*]] = weft.transfer %[[D]] from 0 to 1 : tensor<?x4xf64>
// CHECK-NEXT:    %[[F:.*]] = weft.call @step_forward_1(%c1, %[[C]], %[[E]]) label "micro-batch 1" {weft.stage = 1 : i64}
// CHECK-NEXT:    weft.observe "loss", %[[F]] {weft.stage = 1 : i64}

func.func private @step_micro_batch(%number: index, %sum: tensor<f64> {weft.may_pend}) -> (tensor<f64> {weft.may_pend})
    attributes {weft.micro_batch} {
  %0 = weft.read @x : tensor<2x?x4xf64>
  %1 = weft.select %0[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
  %2 = weft.call @layer(%1) label "layers.0" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %3 = weft.call @layer(%2) label "layers.1" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %4 = weft.contract "bk->"(%3) : (tensor<?x4xf64>) -> tensor<f64>
  %5 = weft.map ins(%sum, %4 : tensor<f64>, tensor<f64>) maps [affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %5 : tensor<f64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1" : (index, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %2 : tensor<f64>
  return
}
