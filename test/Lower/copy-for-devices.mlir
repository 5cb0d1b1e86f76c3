// RUN: weft-opt %s -copy-for-devices | FileCheck %s

// The example of the pass' description.
// CHECK: module {
// CHECK-NEXT: func.func private @kernel_0(
// CHECK: module @devices {
// CHECK-NEXT: func.func private @kernel_0(
func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<4xf32>
}
