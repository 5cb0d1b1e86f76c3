// RUN: weft-opt %s -build-gradients -delay-scaling | FileCheck %s

// Each tensor of each call has a history of its own, which the step writes and a validation reads.

// CHECK-DAG: weft.variable optimizer @"amax/w" ["history"] : tensor<8xf32>
// CHECK-DAG: weft.variable optimizer @"amax/layers.0.x" ["history"] : tensor<8xf32>
// CHECK-DAG: weft.variable optimizer @"amax/layers.1.y.gradient" ["history"] : tensor<8xf32>
weft.variable parameter @x ["batch", "hidden"] : tensor<2x4xf32>
weft.variable parameter @w ["ffn", "hidden"] : tensor<4x4xf32>
weft.variable input @step_number [] : tensor<i64>

// CHECK-LABEL: func.func @init() {
// CHECK:         %[[ZEROS:.*]] = weft.fill constant 0.000000e+00 : tensor<8xf32>
// CHECK-NEXT:    weft.assign @"amax/w", %[[ZEROS]]
func.func @init() {
  return
}

// CHECK-LABEL: func.func private @layer_forward(
// CHECK-SAME:      %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xbf16>, %[[MAX:.*]]: tensor<f32>)
// CHECK:         %[[OWN:.*]] = weft.amax %[[X]] :
// CHECK:         weft.quantize e4m3 %[[X]] by %[[MAX]] :
// CHECK:         return {{.*}}, %[[OWN]] :

// CHECK-LABEL: func.func private @layer_backward(
// CHECK-SAME:      %[[MAX:[^ ]*]]: tensor<f32>) ->
// CHECK:         %[[OWN:.*]] = weft.amax %[[D:.*]] :
// CHECK:         weft.quantize e5m2 %[[D]] by %[[MAX]] :
// CHECK:         return {{.*}}, %[[OWN]] :
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xbf16>) -> tensor<2x4xf32> {
  %m = weft.amax %x {history = #weft.history<"x" of 8>} : tensor<2x4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %x by %m : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xbf16>
  %y = weft.contract "bk,nk->bn" (%q, %w) gradient e5m2
      {gradient_history = #weft.history<"y.gradient" of 8>}
      : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @step
// CHECK:         %[[STEP:.*]] = weft.read @step_number
// CHECK-NEXT:    %[[PLACES:.*]] = weft.iota : tensor<8xi32>
// CHECK:         %[[OWN:.*]] = weft.amax %[[W:.*]] : tensor<4x4xf32>
// CHECK-NEXT:    %[[BEFORE:.*]] = weft.read @"amax/w" : tensor<8xf32>
// CHECK-NEXT:    %[[MAX:.*]] = weft.amax %[[BEFORE]] : tensor<8xf32> -> tensor<f32>
// CHECK-NEXT:    %[[USED:.*]] = weft.map ins(%[[MAX]] :
// CHECK:           arith.select %{{.*}}, %cst{{.*}}, %
// CHECK:         %[[AFTER:.*]] = weft.map ins(%[[BEFORE]], %[[OWN]], %[[STEP]], %[[PLACES]] :
// CHECK:           arith.remsi
// CHECK:           arith.select
// CHECK:         weft.assign @"amax/w", %[[AFTER]]
// CHECK-NEXT:    weft.quantize e4m3 %[[W]] by %[[USED]] :
// CHECK:         %[[BEFORE:.*]] = weft.read @"amax/layers.0.x"
// CHECK:         %[[USED:.*]] = weft.map
// CHECK:         %[[Y:.*]]:{{.*}} = weft.call @layer_forward({{.*}}, %[[USED]]) label "layers.0"
// CHECK:         weft.map ins(%[[BEFORE]], %[[Y]]#
// CHECK:         weft.assign @"amax/layers.0.x"
// CHECK-NOT:     weft.iota
// CHECK:         weft.call @layer_forward({{.*}}) label "layers.1"
// CHECK:         weft.call @layer_backward({{.*}}) label "layers.1 backward"
// CHECK:         weft.assign @"amax/layers.1.y.gradient"
// CHECK:         weft.assign @"amax/layers.0.y.gradient"
func.func @loss() -> tensor<f32> {
  %x = weft.read @x : tensor<2x4xf32>
  %w = weft.read @w : tensor<4x4xf32>
  %m = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4x4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %w by %m : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xbf16>
  %y = weft.call @layer(%x, %q) label "layers.0"
      : (tensor<2x4xf32>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  %z = weft.call @layer(%y, %q) label "layers.1"
      : (tensor<2x4xf32>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  %loss = weft.contract "bn,bn->" (%z, %z) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func private @layer_evaluate(
// CHECK-SAME:      %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xbf16>, %[[MAX:.*]]: tensor<f32>)
// CHECK-NEXT:    weft.quantize e4m3 %[[X]] by %[[MAX]] :
func.func private @layer_evaluate(%x: tensor<2x4xf32>, %w: tensor<4x4xbf16>) -> tensor<2x4xf32> {
  %m = weft.amax %x {history = #weft.history<"x" of 8>} : tensor<2x4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %x by %m : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xbf16>
  %y = weft.contract "bk,nk->bn" (%q, %w)
      : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @evaluate
// CHECK:         weft.read @"amax/w"
// CHECK:         weft.read @"amax/layers.0.x"
// CHECK:         weft.call @layer_evaluate({{.*}}) label "layers.0"
// CHECK-NOT:     weft.assign
func.func @evaluate() {
  %x = weft.read @x : tensor<2x4xf32>
  %w = weft.read @w : tensor<4x4xf32>
  %m = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4x4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %w by %m : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xbf16>
  %y = weft.call @layer_evaluate(%x, %q) label "layers.0"
      : (tensor<2x4xf32>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  %loss = weft.contract "bn,bn->" (%y, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  weft.observe "validation_loss", %loss : tensor<f32>
  return
}
