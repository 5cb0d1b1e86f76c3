// RUN: weft-opt %s --place-agreements | FileCheck %s
// RUN: weft-opt %s --place-agreements --place-agreements | FileCheck %s

// Ranks agree once, after all scalars that the section observes.
// CHECK-LABEL: func.func @step
// CHECK: weft.observe "loss"
// CHECK-NOT: weft.agree
// CHECK: weft.observe "gradient_norm"
// CHECK-NEXT: weft.observe "loss_scale"
// CHECK-NEXT: weft.agree
// CHECK-NOT: weft.agree
// CHECK: weft.observe "gradient/w"
// CHECK-NOT: weft.agree
// CHECK-LABEL: func.func @evaluate
// CHECK: weft.observe "validation_loss"
// CHECK-NEXT: weft.agree
// A section in which the run cannot end, as a function of a micro-batch.
// CHECK-LABEL: func.func private @micro_batch
// CHECK-NOT: weft.agree

weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @step() {
  %l = weft.fill constant 1.0 : tensor<f64>
  weft.observe "loss", %l : tensor<f64>
  %n = weft.fill constant 2.0 : tensor<f64>
  weft.observe "gradient_norm", %n : tensor<f64>
  weft.observe "loss_scale", %n : tensor<f64>
  %g = weft.fill constant 3.0 : tensor<4xf64>
  weft.observe "gradient/w", %g : tensor<4xf64>
  weft.assign @w, %g : tensor<4xf64>
  return
}
func.func @evaluate() {
  %l = weft.fill constant 1.0 : tensor<f64>
  weft.observe "validation_loss", %l : tensor<f64>
  return
}
func.func private @micro_batch() {
  %d = weft.fill constant 1.0 : tensor<f64>
  weft.observe "dropped/layers.0", %d : tensor<f64>
  return
}
