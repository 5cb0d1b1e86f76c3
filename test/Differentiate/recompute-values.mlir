// RUN: weft-opt %s -build-gradients --split-input-file | FileCheck %s

// Backward computes the norm and the activation again, marked so, from the layer's input and from
// what the first matmul gave, which are kept anyway. That matmul is not computed again:
// where its sum is cut, ranks would have to exchange it twice.

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

// CHECK-LABEL: func.func private @layer_forward(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf64>, %[[S:.*]]: tensor<8xf64>, %[[U:.*]]: tensor<512x8xf64>, %[[D:.*]]: tensor<8x512xf64>
// CHECK-SAME:      -> (tensor<?x8xf64>, tensor<?x512xf64>)
// CHECK:         %[[NORM:.*]] = weft.norm rms %[[X]]
// CHECK:         %[[WIDE:.*]] = weft.contract "bi,ni->bn"(%[[NORM]], %[[U]])
// CHECK:         %[[ACTIVE:.*]] = weft.map ins(%[[WIDE]] :
// CHECK:         %[[DOWN:.*]] = weft.contract "bn,in->bi"(%[[ACTIVE]], %[[D]])
// CHECK:         %[[SUM:.*]] = weft.map ins(%[[X]], %[[DOWN]] :
// CHECK:         return %[[SUM]], %[[WIDE]]

// CHECK-LABEL: func.func private @layer_backward(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf64>, %[[S:[^:]*]]: tensor<8xf64>, %[[U:[^:]*]]: tensor<512x8xf64>, %[[D:[^:]*]]: tensor<8x512xf64>, %[[WIDE:[^:]*]]: tensor<?x512xf64>, %[[G:[^:]*]]: tensor<?x8xf64>
// CHECK:         weft.contract "bi,in->bn"(%[[G]], %[[D]])
// CHECK:         %[[ACTIVE:.*]] = weft.map ins(%[[WIDE]] : {{.*}} {weft.recomputed = "layer//map/1"}
// CHECK:           math.tanh
// CHECK:         weft.contract {{.*}}(%[[G]], %[[ACTIVE]])
// CHECK:         %[[NORM:.*]] = weft.norm rms %[[X]] scale(%[[S]] : tensor<8xf64>) {{.*}}{weft.recomputed = "layer//norm/1"}
// CHECK-NEXT:    weft.contract {{.*}}, %[[NORM]])
// CHECK-NOT:     weft.recomputed
// CHECK:         return
func.func private @layer(%x: tensor<?x8xf64>, %s: tensor<8xf64>, %u: tensor<512x8xf64>, %d: tensor<8x512xf64>) -> tensor<?x8xf64> {
  %0 = weft.norm rms %x scale(%s : tensor<8xf64>) epsilon = 1.0e-06 : tensor<?x8xf64> -> tensor<?x8xf64>
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

// -----

// A step without layers computes again, too: both activations, one from the other, from what the
// matmul gave. Where two large values come together the sum is kept.

#id = affine_map<(b, i) -> (b, i)>
weft.variable parameter @u ["wide", "hidden"] : tensor<512x8xf64>
weft.variable parameter @v ["hidden", "wide"] : tensor<8x512xf64>
weft.variable input @x ["batch", "hidden"] : tensor<?x8xf64>

// CHECK-LABEL: func.func @step()
// CHECK:         %[[U:.*]] = weft.contract "bi,ni->bn"
// CHECK:         weft.contract "bn,in->bi"
// CHECK:         weft.observe "loss"
// CHECK:         %[[TANH:.*]] = weft.map ins(%[[U]] : {{.*}} {weft.recomputed = "loss//map/1"}
// CHECK:           math.tanh
// CHECK:         %[[EXP:.*]] = weft.map ins(%[[TANH]] : {{.*}} {weft.recomputed = "loss//map/2"}
// CHECK:           math.exp
// CHECK-NOT:     weft.recomputed
// CHECK:         return
func.func @loss() -> tensor<f64> {
  %x = weft.read @x : tensor<?x8xf64>
  %u = weft.read @u : tensor<512x8xf64>
  %v = weft.read @v : tensor<8x512xf64>
  %0 = weft.contract "bi,ni->bn"(%x, %u) : (tensor<?x8xf64>, tensor<512x8xf64>) -> tensor<?x512xf64>
  %1 = weft.map ins(%0 : tensor<?x512xf64>) maps [#id] -> tensor<?x512xf64> {
  ^bb0(%a: f64):
    %t = math.tanh %a : f64
    weft.yield %t : f64
  }
  %2 = weft.map ins(%1 : tensor<?x512xf64>) maps [#id] -> tensor<?x512xf64> {
  ^bb0(%a: f64):
    %t = math.exp %a : f64
    weft.yield %t : f64
  }
  %3 = weft.contract "bn,in->bi"(%2, %v) : (tensor<?x512xf64>, tensor<8x512xf64>) -> tensor<?x8xf64>
  %4 = weft.map ins(%x, %3 : tensor<?x8xf64>, tensor<?x8xf64>) maps [#id, #id] -> tensor<?x8xf64> {
  ^bb0(%a: f64, %b: f64):
    %t = arith.addf %a, %b : f64
    weft.yield %t : f64
  }
  %5 = weft.contract "bi,bi->" (%4, %4) : (tensor<?x8xf64>, tensor<?x8xf64>) -> tensor<f64>
  return %5 : tensor<f64>
}

// -----

// Backward computes again what it is asked to, though the matmul is not cheap, and nothing else:
// not the second activation. Casts count apart from other maps.

#id = affine_map<(b, i) -> (b, i)>
module attributes {weft.recomputes = ["loss/mlp/map/1", "loss/mlp/cast/1", "loss/mlp/cast/2", "loss/up/contract/1"]} {
  weft.variable parameter @u ["wide", "hidden"] : tensor<512x8xf32>
  weft.variable parameter @v ["hidden", "wide"] : tensor<8x512xf32>
  weft.variable input @x ["batch", "hidden"] : tensor<?x8xf32>

  // CHECK-LABEL: func.func @step()
  // CHECK:         weft.observe "loss"
  // CHECK:         weft.contract "bi,ni->bn"{{.*}} {weft.recomputed = "loss/up/contract/1"}
  // CHECK:         weft.map {{.*}} {weft.recomputed = "loss/mlp/cast/1"}
  // CHECK:         weft.map {{.*}} {weft.recomputed = "loss/mlp/cast/2"}
  // CHECK:         weft.map {{.*}} {weft.recomputed = "loss/mlp/map/1"}
  // CHECK:           math.tanh
  // CHECK-NOT:     weft.recomputed
  // CHECK:         return
  func.func @loss() -> tensor<f32> {
    %x = weft.read @x : tensor<?x8xf32>
    %u = weft.read @u : tensor<512x8xf32>
    %v = weft.read @v : tensor<8x512xf32>
    %0 = weft.contract "bi,ni->bn"(%x, %u) : (tensor<?x8xf32>, tensor<512x8xf32>) -> tensor<?x512xf32> loc("up")
    %1 = weft.map ins(%0 : tensor<?x512xf32>) maps [#id] -> tensor<?x512xbf16> {
    ^bb0(%a: f32):
      %t = arith.truncf %a : f32 to bf16
      weft.yield %t : bf16
    } loc("mlp")
    %2 = weft.map ins(%1 : tensor<?x512xbf16>) maps [#id] -> tensor<?x512xf32> {
    ^bb0(%a: bf16):
      %w = arith.extf %a : bf16 to f32
      weft.yield %w : f32
    } loc("mlp")
    %3 = weft.map ins(%2 : tensor<?x512xf32>) maps [#id] -> tensor<?x512xf32> {
    ^bb0(%a: f32):
      %t = math.tanh %a : f32
      weft.yield %t : f32
    } loc("mlp")
    %4 = weft.map ins(%3 : tensor<?x512xf32>) maps [#id] -> tensor<?x512xf32> {
    ^bb0(%a: f32):
      %t = math.exp %a : f32
      weft.yield %t : f32
    } loc("mlp")
    %5 = weft.contract "bn,in->bi"(%4, %v) : (tensor<?x512xf32>, tensor<8x512xf32>) -> tensor<?x8xf32>
    %6 = weft.contract "bi,bi->" (%5, %5) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<f32>
    return %6 : tensor<f32>
  }
}
