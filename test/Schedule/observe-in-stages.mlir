// RUN: weft-opt %s --observe-in-stages | FileCheck %s

// Scalars are reported by the first stage; a loss is also observed where it is computed, since the
// run may end there; tensors stay.
// CHECK-LABEL: func.func @step
// CHECK: %[[L:.*]] = weft.fill constant 1.0
// CHECK: %[[L0:.*]] = weft.transfer %[[L]] from 1 to 0 : tensor<f64>
// CHECK-NEXT: weft.observe "loss", %[[L0]] {weft.stage = 0 : i64}
// CHECK-NEXT: weft.observe "loss", %[[L]] {weft.stage = 1 : i64}
// CHECK: %[[D:.*]] = weft.fill constant 2.0
// CHECK-NEXT: %[[D0:.*]] = weft.transfer %[[D]] from 1 to 0 : tensor<f64>
// CHECK-NEXT: weft.observe "dropped/layers.1", %[[D0]] {weft.stage = 0 : i64}
// CHECK-NEXT: %[[G:.*]] = weft.fill constant 3.0
// CHECK-NEXT: weft.observe "gradient/w", %[[G]] {weft.stage = 1 : i64}
// CHECK-NEXT: return

func.func private @f() attributes {weft.stage = 1 : i64} {
  return
}
func.func @step() {
  %l = weft.fill constant 1.0 {weft.stage = 1 : i64} : tensor<f64>
  weft.observe "loss", %l {weft.stage = 1 : i64} : tensor<f64>
  %d = weft.fill constant 2.0 {weft.stage = 1 : i64} : tensor<f64>
  weft.observe "dropped/layers.1", %d {weft.stage = 1 : i64} : tensor<f64>
  %g = weft.fill constant 3.0 {weft.stage = 1 : i64} : tensor<4xf64>
  weft.observe "gradient/w", %g {weft.stage = 1 : i64} : tensor<4xf64>
  return
}
