// RUN: weft-opt %s -build-gradients="pins=recompute=full" | FileCheck %s --check-prefix=FULL
// RUN: weft-opt %s -build-gradients="pins=recompute=none" | FileCheck %s --check-prefix=NONE
// RUN: weft-opt %s -build-gradients="plan='version: 1 activation { value: \"*map/1\" first_layer: 1 saving: KEPT }'" \
// RUN:   | FileCheck %s --check-prefix=LAYER
// RUN: not weft-opt %s -build-gradients="plan='version: 1 activation { value: \"mlp_nrm\" saving: KEPT }'" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NAME
// RUN: not weft-opt %s -build-gradients="plan='version: 1 activation { value: \"*\" first_layer: 2 saving: KEPT }'" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BEHIND

// A plan's entries say which values of a layer backward recomputes.

// All but the layer's arguments: forward returns its result alone. Of the last matmul backward needs nothing.
// FULL:       module attributes {weft.activations = ["{ value: \22*\22 first_layer: 0 saving: RECOMPUTED }"]}
// FULL-LABEL: func.func private @layer_forward(
// FULL-SAME:      -> tensor<?x8xf64>
// FULL-LABEL: func.func private @layer_backward(
// FULL:         %[[NORM:.*]] = weft.norm rms {{.*}} {weft.recomputed = "layer/mlp_norm/norm/1"}
// FULL:         %[[WIDE:.*]] = weft.contract "bi,ni->bn"(%[[NORM]], {{.*}}) {weft.recomputed = "layer//contract/1"}
// FULL:         weft.map ins(%[[WIDE]] : {{.*}} {weft.recomputed = "layer//map/1"}
// FULL-NOT:     weft.recomputed
// FULL:         return

// Nothing: forward returns the norm, the matmul and the activation, too.
// NONE-LABEL: func.func private @layer_forward(
// NONE-SAME:      -> (tensor<?x8xf64>, tensor<?x512xf64>, tensor<?x512xf64>, tensor<?x8xf64>)
// NONE-NOT:   weft.recomputed

// The second layer keeps its activation, and has functions of its own.
// LAYER:       weft.call @layer_forward({{.*}} label "layers.0"
// LAYER:       weft.call @layer.2_forward({{.*}} label "layers.1"
// LAYER:       weft.call @layer.2_backward(
// LAYER:       weft.call @layer_backward(
// LAYER-LABEL: func.func private @layer_backward(
// LAYER:         weft.map {{.*}} {weft.recomputed = "layer//map/1"}
// LAYER:         weft.norm {{.*}} {weft.recomputed = "layer/mlp_norm/norm/1"}
// LAYER-LABEL: func.func private @layer.2_forward(
// LAYER-SAME:      -> (tensor<?x8xf64>, tensor<?x512xf64>, tensor<?x512xf64>)
// LAYER-LABEL: func.func private @layer.2_backward(
// LAYER-NOT:     weft.recomputed = "layer.2//map/1"
// LAYER:         weft.norm {{.*}} {weft.recomputed = "layer.2/mlp_norm/norm/1"}

// NAME: plan:1:12: error: value: no operation of the forward pass is called 'mlp_nrm', near is 'mlp_norm'
// BEHIND: plan:1:12: error: value: no operation of layers from 2 is called '*'

#id = affine_map<(b, i) -> (b, i)>
weft.variable parameter @s ["hidden"] : tensor<8xf64>
weft.variable parameter @u ["wide", "hidden"] : tensor<512x8xf64>
weft.variable parameter @d ["hidden", "wide"] : tensor<8x512xf64>
weft.variable input @x ["batch", "hidden"] : tensor<?x8xf64>

func.func @loss() -> tensor<f64> {
  %x = weft.read @x : tensor<?x8xf64>
  %s = weft.read @s : tensor<8xf64>
  %u = weft.read @u : tensor<512x8xf64>
  %d = weft.read @d : tensor<8x512xf64>
  %0 = weft.call @layer(%x, %s, %u, %d) label "layers.0" : (tensor<?x8xf64>, tensor<8xf64>, tensor<512x8xf64>, tensor<8x512xf64>) -> tensor<?x8xf64>
  %1 = weft.call @layer(%0, %s, %u, %d) label "layers.1" : (tensor<?x8xf64>, tensor<8xf64>, tensor<512x8xf64>, tensor<8x512xf64>) -> tensor<?x8xf64>
  %2 = weft.contract "bi,bi->" (%1, %1) : (tensor<?x8xf64>, tensor<?x8xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}

func.func private @layer(%x: tensor<?x8xf64>, %s: tensor<8xf64>, %u: tensor<512x8xf64>, %d: tensor<8x512xf64>) -> tensor<?x8xf64> {
  %0 = weft.norm rms %x scale(%s : tensor<8xf64>) epsilon = 1.0e-06 : tensor<?x8xf64> -> tensor<?x8xf64> loc("mlp_norm")
  %1 = weft.contract "bi,ni->bn"(%0, %u) : (tensor<?x8xf64>, tensor<512x8xf64>) -> tensor<?x512xf64>
  %2 = weft.map ins(%1 : tensor<?x512xf64>) maps [#id] -> tensor<?x512xf64> {
  ^bb0(%a: f64):
    %t = math.tanh %a : f64
    weft.yield %t : f64
  }
  %3 = weft.contract "bn,in->bi"(%2, %d) : (tensor<?x512xf64>, tensor<8x512xf64>) -> tensor<?x8xf64>
  %4 = weft.map ins(%x, %3 : tensor<?x8xf64>, tensor<?x8xf64>) maps [#id, #id] -> tensor<?x8xf64> {
  ^bb0(%a: f64, %b: f64):
    %t = arith.addf %a, %b : f64
    weft.yield %t : f64
  }
  return %4 : tensor<?x8xf64>
}
