// RUN: weft-opt %s -keep-kernels | FileCheck %s

// CHECK-NOT: weft.variable
// CHECK-NOT: @step
// CHECK: func.func private @kernel_0
// CHECK-NOT: @step

weft.variable parameter @w ["hidden"] : tensor<4xf32>
func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<4xf32>
}
func.func @step() {
  %0 = weft.read @w : tensor<4xf32>
  %1 = weft.launch @kernel_0(%0) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
  weft.assign @w, %1 : tensor<4xf32>
  return
}
