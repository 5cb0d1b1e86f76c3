// RUN: weft-opt %s -separate-layers="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'ffn' axes: 'x' first_layer: 1 last_layer: 2}}" | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -separate-layers="plan={version: 1 mesh {axis {name: 'x' size: 2}} home {dimension: 'ffn' axes: 'x' last_layer: 2}}" | FileCheck %s --check-prefix=HOME
// RUN: weft-opt %s -separate-layers="pins=tp=2" | FileCheck %s --check-prefix=NONE
// RUN: weft-opt %s -separate-layers="plan={version: 1 activation {first_layer: 1 saving: KEPT} sharding {dimension: 'ffn' last_layer: 3}}" | FileCheck %s --check-prefix=NONE
// RUN: not weft-opt %s -separate-layers="plan={version: 2}" 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: plan:1:1: error: separate-layers: version: expected 1, got 2

// An op of a copy has the name of that in the original, and entries for layers pin one of them.
// RUN: weft-opt %s -separate-layers="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'ffn' axes: 'x' first_layer: 2}}" \
// RUN:   -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'up/contract/1' dimension: 'ffn' axes: 'x' first_layer: 2} sharding {value: 'up/contract/2' dimension: 'ffn' axes: 'x' last_layer: 1}}" | FileCheck %s --check-prefix=PINS
// RUN: not weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'up*' dimension: 'ffn' axes: 'x' first_layer: 4} sharding {value: 'u' dimension: 'ffn' axes: 'x' last_layer: 3}}" 2>&1 | FileCheck %s --check-prefix=SHARED --implicit-check-not=error:
// RUN: not weft-opt %s -separate-layers="plan={version: 1 sharding {dimension: 'ffn' first_layer: 2}}" -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'u/contract/1' dimension: 'ffn' axes: 'x' first_layer: 2 last_layer: 3}}" 2>&1 | FileCheck %s --check-prefix=NEAR

// Layers of the same entries share functions; calls inside are of the layer.
// CHECK:       module attributes {weft.layer_borders = {{\[\[}}0, 3], [1]]}
// CHECK-LABEL: func.func private @mlp(
// CHECK-LABEL: func.func private @mlp.2(
// CHECK-SAME:    weft.copy_of = "mlp"
// CHECK-LABEL: func.func private @layer(
// CHECK:         weft.call @mlp(
// CHECK-LABEL: func.func private @layer.2(
// CHECK-SAME:    weft.copy_of = "layer"
// CHECK:         weft.call @mlp.2(
// CHECK-LABEL: func.func private @layer_update(
// CHECK-LABEL: func.func private @layer_update.2(
// CHECK-LABEL: func.func private @other(
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @step()
// CHECK:         weft.call @layer({{.*}} label "layers.0"
// CHECK:         weft.call @layer.2({{.*}} label "layers.1"
// CHECK:         weft.call @layer.2({{.*}} label "layers.2"
// CHECK:         weft.call @layer({{.*}} label "layers.3"
// CHECK:         weft.call @layer_update({{.*}} label "layers.0 update"
// CHECK:         weft.call @layer_update.2({{.*}} label "layers.1 update"
// CHECK:         weft.call @other({{.*}} label "head"

// HOME:        module attributes {weft.layer_borders = {{\[\[}}0], [3]]}
// HOME:        weft.call @layer({{.*}} label "layers.2"
// HOME:        weft.call @layer.2({{.*}} label "layers.3"

// NONE-NOT: weft.layer_borders
// NONE-NOT: weft.copy_of

// PINS-LABEL: func.func private @mlp(
// PINS:         weft.contract "fh,bh->bf"
// PINS-NOT:     weft.pins
// PINS:         weft.contract "fh,bf->bh"{{.*}}weft.pins
// PINS-LABEL: func.func private @mlp.2(
// PINS:         weft.contract "fh,bh->bf"{{.*}}weft.pins
// PINS-NOT:     weft.pins
// PINS:         return

// Functions of other layers do not count.
// SHARED: plan:1:{{[0-9]+}}: error: value: no variable or op of layers from 4 is called 'up*'
// SHARED: plan:1:{{[0-9]+}}: error: value: no variable or op of layers to 3 is called 'u', near is 'up'
// NEAR: plan:1:{{[0-9]+}}: error: value: no variable or op of layers 2 to 3 is called 'u/contract/1', near is 'up/contract/1'

func.func private @mlp(%x: tensor<2x4xf64>, %w: tensor<6x4xf64>) -> tensor<2x4xf64> {
  %0 = weft.contract "fh,bh->bf"(%w, %x) : (tensor<6x4xf64>, tensor<2x4xf64>) -> tensor<2x6xf64> loc("up")
  %1 = weft.contract "fh,bf->bh"(%w, %0) : (tensor<6x4xf64>, tensor<2x6xf64>) -> tensor<2x4xf64> loc("up")
  return %1 : tensor<2x4xf64>
}
func.func private @layer(%x: tensor<2x4xf64>, %w: tensor<6x4xf64>) -> tensor<2x4xf64> {
  %0 = weft.call @mlp(%x, %w) label "mlp" : (tensor<2x4xf64>, tensor<6x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
func.func private @layer_update(%w: tensor<6x4xf64>) -> tensor<6x4xf64> {
  return %w : tensor<6x4xf64>
}
func.func private @other(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  return %x : tensor<2x4xf64>
}
weft.variable parameter @w ["ffn", "hidden"] : tensor<6x4xf64>
weft.variable input @x ["batch", "hidden"] : tensor<2x4xf64>

func.func @step() {
  %w = weft.read @w : tensor<6x4xf64>
  %x = weft.read @x : tensor<2x4xf64>
  %0 = weft.call @layer(%x, %w) label "layers.0" : (tensor<2x4xf64>, tensor<6x4xf64>) -> tensor<2x4xf64>
  %1 = weft.call @layer(%0, %w) label "layers.1" : (tensor<2x4xf64>, tensor<6x4xf64>) -> tensor<2x4xf64>
  %2 = weft.call @layer(%1, %w) label "layers.2" : (tensor<2x4xf64>, tensor<6x4xf64>) -> tensor<2x4xf64>
  %3 = weft.call @layer(%2, %w) label "layers.3" : (tensor<2x4xf64>, tensor<6x4xf64>) -> tensor<2x4xf64>
  %4 = weft.call @layer_update(%w) label "layers.0 update" : (tensor<6x4xf64>) -> tensor<6x4xf64>
  %5 = weft.call @layer_update(%w) label "layers.1 update" : (tensor<6x4xf64>) -> tensor<6x4xf64>
  %6 = weft.call @other(%3) label "head" : (tensor<2x4xf64>) -> tensor<2x4xf64>
  weft.observe "loss", %6 : tensor<2x4xf64>
  weft.assign @w, %5 : tensor<6x4xf64>
  return
}
