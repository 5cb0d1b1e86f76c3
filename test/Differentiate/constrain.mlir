// RUN: weft-opt %s -build-gradients | FileCheck %s

// The gradient of what is constrained is constrained alike.

weft.variable parameter @x ["batch", "hidden"] : tensor<2x4xf32>

// CHECK-LABEL: func.func @step
// CHECK:         weft.constrain %{{.*}} {{\[\["dp"\], unit\]}} priority 2 : tensor<2x4xf32>
// CHECK:         %[[G:.*]] = weft.map {{.*}} -> tensor<2x4xf32>
// CHECK:         %[[DX:.*]] = weft.constrain %[[G]] {{\[\["dp"\], unit\]}} priority 2 : tensor<2x4xf32>
// CHECK:         weft.observe {{.*}}"gradient/x"{{.*}} %[[DX]]
func.func @loss() -> tensor<f32> {
  %x = weft.read @x : tensor<2x4xf32>
  %y = weft.constrain %x [["dp"], unit] priority 2 : tensor<2x4xf32>
  %loss = weft.contract "bk->" (%y) : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
