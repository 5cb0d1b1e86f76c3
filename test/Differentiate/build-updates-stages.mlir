// RUN: weft-opt %s '-build-updates=plan="version: 1 pipeline { layers: [1, 2] } accumulation: 2"' | FileCheck %s
// RUN: weft-opt %s '-build-updates=plan="version: 1 pipeline { layers: [1, 1, 1, 0] chunks: 2 } accumulation: 2"' | FileCheck %s --check-prefix=BACK
// RUN: weft-opt %s -build-updates | FileCheck %s --check-prefix=ONE
// RUN: not weft-opt %s '-build-updates=plan="pipeline"' 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: build-updates: expected '{'

// Muon orthogonalizes matrices of one pipeline stage as a batch: of layer 0 alone, and of layers 1 and 2.
// CHECK-LABEL: func.func @step
// CHECK:         weft.contract "ab,ab->"({{.*}} -> tensor<f64>
// CHECK:         weft.concat {{.*}} -> tensor<2x4x3xf64>
// CHECK:         weft.contract "abc,abc->a"({{.*}} -> tensor<2xf64>
// CHECK:         weft.split
// CHECK-NOT:     weft.concat

// The first stage has the first and the last layer.
// BACK-LABEL: func.func @step
// BACK:         %[[FIRST:.*]]:2 = weft.call @direction{{.*}} label "layers.0 update"
// BACK:         %[[LAST:.*]]:2 = weft.call @direction{{.*}} label "layers.2 update"
// BACK:         %[[A:.*]] = weft.reshape %[[FIRST]]#0
// BACK-NEXT:    %[[B:.*]] = weft.reshape %[[LAST]]#0
// BACK-NEXT:    weft.concat %[[A]], %[[B]]

// ONE-LABEL: func.func @step
// ONE:         weft.concat {{.*}} -> tensor<3x4x3xf64>
// ONE-NOT:     weft.concat

weft.variable parameter @layers.0.w ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf64>
weft.variable parameter @layers.1.w ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf64>
weft.variable parameter @layers.2.w ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer muon learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0 {iterations = 1 : i64}
func.func private @layer(%w: tensor<4x3xf64>) -> tensor<4x3xf64> {
  return %w : tensor<4x3xf64>
}
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @layers.0.w : tensor<4x3xf64>
  %1 = weft.read @layers.1.w : tensor<4x3xf64>
  %2 = weft.read @layers.2.w : tensor<4x3xf64>
  %3 = weft.call @layer(%0) label "layers.0" : (tensor<4x3xf64>) -> tensor<4x3xf64>
  %4 = weft.call @layer(%1) label "layers.1" : (tensor<4x3xf64>) -> tensor<4x3xf64>
  %5 = weft.call @layer(%2) label "layers.2" : (tensor<4x3xf64>) -> tensor<4x3xf64>
  weft.observe "gradient/layers.0.w", %3 : tensor<4x3xf64>
  weft.observe "gradient/layers.1.w", %4 : tensor<4x3xf64>
  weft.observe "gradient/layers.2.w", %5 : tensor<4x3xf64>
  return
}
