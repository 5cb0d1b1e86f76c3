// RUN: weft-opt %s -lower | FileCheck %s

// The whole phase, for a kernel with a function of the C library and one that is approximated.

// CHECK-NOT: weft.variable
// CHECK-LABEL: llvm.func @kernel_0(
// CHECK: llvm.call @erf
// CHECK-LABEL: llvm.func @kernel_1(
// CHECK-NOT: llvm.call
// CHECK: llvm.return

weft.variable parameter @w ["hidden"] : tensor<4xf32>
func.func private @kernel_0(%x: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x : tensor<4xf64>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%0: f64):
    %1 = math.erf %0 : f64
    weft.yield %1 : f64
  }
  return %y : tensor<4xf64>
}
func.func private @kernel_1(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%0: f32):
    %1 = math.erf %0 : f32
    weft.yield %1 : f32
  }
  return %y : tensor<4xf32>
}
