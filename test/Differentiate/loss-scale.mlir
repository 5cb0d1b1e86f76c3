// RUN: weft-opt %s -build-gradients -build-updates | FileCheck %s

// Gradients are computed of the scaled loss and divided by the scale; where their norm is not finite,
// nothing but the scale changes.

// CHECK-DAG:     weft.variable optimizer @loss_scale [] : tensor<f32>
// CHECK-DAG:     weft.variable optimizer @loss_scale_steps [] : tensor<f32>
weft.variable parameter @w ["hidden"] : tensor<4xf32>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
    {loss_scale = 1024.0, scale_interval = 3}

// CHECK-LABEL: func.func @init() {
// CHECK:         weft.fill constant 1.024000e+03
// CHECK:         weft.assign @loss_scale,
// CHECK:         weft.assign @loss_scale_steps,
func.func @init() {
  return
}

// CHECK-LABEL: func.func @step() {
// CHECK:         weft.observe "loss"
// CHECK:         %[[SCALE:.*]] = weft.read @loss_scale : tensor<f32>
// CHECK:         %[[A:.*]] = weft.contract ",a->a"(%[[SCALE]], %{{.*}})
// CHECK:         %[[SUM:.*]] = weft.map ins(%[[A]], {{.*}}
// CHECK:         %[[G:.*]] = weft.map ins(%[[SUM]], %[[SCALE]] :
// CHECK:           arith.divf
// CHECK:           arith.mulf
// CHECK:         weft.observe "gradient/w", %[[G]]
// CHECK:         %[[NORM:.*]] = weft.map {{.*}}
// CHECK:           math.sqrt
// CHECK:         %[[SHOWN:.*]] = weft.map ins(%[[NORM]], %{{.*}} :
// CHECK:           arith.cmpf olt
// CHECK:         weft.observe "gradient_norm", %[[SHOWN]]
// CHECK-NEXT:    weft.observe "loss_scale"
// CHECK:         weft.call @update(%{{.*}}, %[[NORM]], %{{.*}}, %[[G]])
// CHECK:         %[[STEPS:.*]] = weft.read @loss_scale_steps
// CHECK:         %[[NEXT:.*]]:2 = weft.map ins(%[[NORM]], %{{.*}}, %[[STEPS]] :
// CHECK:         weft.assign @loss_scale, %[[NEXT]]#0
// CHECK-NEXT:    weft.assign @loss_scale_steps, %[[NEXT]]#1

// CHECK-LABEL: func.func private @update(
// CHECK-SAME:      %[[RATE:.*]]: tensor<f64>, %[[N:.*]]: tensor<f32>, %[[W:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>)
// CHECK-NEXT:    weft.map ins(%[[W]], %{{.*}}, %[[RATE]], %[[N]] :
// CHECK:           %[[NEW:.*]] = arith.subf
// CHECK:           %[[FINITE:.*]] = arith.cmpf olt
// CHECK-NEXT:      %[[KEPT:.*]] = arith.select %[[FINITE]], %[[NEW]],
// CHECK-NEXT:      weft.yield %[[KEPT]]
func.func @loss() -> tensor<f32> {
  %w = weft.read @w : tensor<4xf32>
  %0 = weft.contract "a,a->" (%w, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
