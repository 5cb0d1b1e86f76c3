// RUN: weft-opt %s -build-gradients | FileCheck %s

// The derivative of each op, in a layer of its own. Numbers are compared elsewhere, with a
// reference and by finite differences; here it matters which ops stand there, and with what operands.

weft.variable parameter @x ["batch", "positions", "hidden"] : tensor<2x3x4xf64>
weft.variable parameter @v ["hidden"] : tensor<4xf64>
weft.variable parameter @t ["vocab", "hidden"] : tensor<8x4xf64>
weft.variable parameter @q ["batch", "positions", "kv_heads", "group", "head"] : tensor<2x3x1x2x4xf64>
weft.variable parameter @k ["batch", "positions", "kv_heads", "head"] : tensor<2x3x1x4xf64>
weft.variable input @ids ["batch", "positions"] : tensor<2x3xi32>
weft.variable input @seed [] : tensor<i64>

func.func @loss() -> tensor<f64> {
  %x = weft.read @x : tensor<2x3x4xf64>
  %v = weft.read @v : tensor<4xf64>
  %t = weft.read @t : tensor<8x4xf64>
  %q = weft.read @q : tensor<2x3x1x2x4xf64>
  %k = weft.read @k : tensor<2x3x1x4xf64>
  %ids = weft.read @ids : tensor<2x3xi32>
  %seed = weft.read @seed : tensor<i64>
  %c3 = arith.constant 3 : index
  %0 = weft.call @layer_norm(%x, %v, %v) label ""
      : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
  %1 = weft.call @rms_norm(%0, %v) label "" : (tensor<2x3x4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
  %2 = weft.call @rotary(%1) label "" : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %3 = weft.call @dropout(%2, %seed, %c3) label ""
      : (tensor<2x3x4xf64>, tensor<i64>, index) -> tensor<2x3x4xf64>
  %4 = weft.call @embedding(%t, %ids) label ""
      : (tensor<8x4xf64>, tensor<2x3xi32>) -> tensor<2x3x4xf64>
  %5 = weft.call @matmul(%4, %t) label "" : (tensor<2x3x4xf64>, tensor<8x4xf64>) -> tensor<2x3x8xf64>
  %6 = weft.call @cross_entropy(%5, %ids) label ""
      : (tensor<2x3x8xf64>, tensor<2x3xi32>) -> tensor<2x3xf64>
  %7 = weft.call @attention(%q, %k, %seed, %c3) label ""
      : (tensor<2x3x1x2x4xf64>, tensor<2x3x1x4xf64>, tensor<i64>, index) -> tensor<2x3x1x2x4xf64>
  %8 = weft.contract "bsh->" (%3) : (tensor<2x3x4xf64>) -> tensor<f64>
  %9 = weft.contract "bs->" (%6) : (tensor<2x3xf64>) -> tensor<f64>
  %10 = weft.contract "bsgrd->" (%7) : (tensor<2x3x1x2x4xf64>) -> tensor<f64>
  %11 = weft.map ins(%8, %9, %10 : tensor<f64>, tensor<f64>, tensor<f64>)
      maps [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %d = arith.addf %a, %b : f64
    %e = arith.addf %d, %c : f64
    weft.yield %e : f64
  }
  return %11 : tensor<f64>
}

// A norm reads its input and scale again; the bias has a gradient, but is not read.
// CHECK-LABEL: func.func private @layer_norm_backward(
// CHECK-SAME:      %[[X:.*]]: tensor<2x3x4xf64>, %[[S:.*]]: tensor<4xf64>, %[[G:.*]]: tensor<2x3x4xf64>)
// CHECK:         %[[DX:.*]], %[[DS:.*]], %[[DB:.*]] = weft.norm_grad layer %[[X]] scale(%[[S]] : tensor<4xf64>) gradient(%[[G]]
// CHECK:         return %[[DX]], %[[DS]], %[[DB]]
func.func private @layer_norm(%x: tensor<2x3x4xf64>, %s: tensor<4xf64>, %b: tensor<4xf64>)
    -> tensor<2x3x4xf64> {
  %0 = weft.norm layer %x scale(%s : tensor<4xf64>) bias(%b : tensor<4xf64>) epsilon = 1.0e-5
      : tensor<2x3x4xf64> -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// CHECK-LABEL: func.func private @rms_norm_backward(
// CHECK:         %[[DX:.*]], %[[DS:.*]] = weft.norm_grad rms
// CHECK:         return %[[DX]], %[[DS]] : tensor<2x3x4xf64>, tensor<4xf64>
func.func private @rms_norm(%x: tensor<2x3x4xf64>, %s: tensor<4xf64>) -> tensor<2x3x4xf64> {
  %0 = weft.norm rms %x scale(%s : tensor<4xf64>) epsilon = 1.0e-5
      : tensor<2x3x4xf64> -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// Only the table is saved.
// CHECK-LABEL: func.func private @rotary_backward(
// CHECK-SAME:      %[[T:.*]]: tensor<2x3x2xf64>, %[[G:.*]]: tensor<2x3x4xf64>)
// CHECK:         weft.rotary inverse %[[G]] table(%[[T]]
func.func private @rotary(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %t = weft.rotary_table [1.0, 0.1] : tensor<2x3x2xf64>
  %0 = weft.rotary %x table(%t : tensor<2x3x2xf64>) : tensor<2x3x4xf64> -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// The same elements are dropped: same seed, step, layer and site. No tensor is saved.
// CHECK-LABEL: func.func private @dropout_backward(
// CHECK-SAME:      %[[SEED:.*]]: tensor<i64>, %[[L:.*]]: index, %[[G:.*]]: tensor<2x3x4xf64>)
// CHECK:         weft.dropout %[[G]] rate = 1.000000e-01 site = 2 key(%[[SEED]], %[[SEED]], %[[L]]
func.func private @dropout(%x: tensor<2x3x4xf64>, %seed: tensor<i64>, %layer: index)
    -> tensor<2x3x4xf64> {
  %0 = weft.dropout %x rate = 0.1 site = 2 key(%seed, %seed, %layer : tensor<i64>, tensor<i64>)
      : tensor<2x3x4xf64> -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// The table itself is not read, only its type is known.
// CHECK-LABEL: func.func private @embedding_backward(
// CHECK-SAME:      %[[IDS:.*]]: tensor<2x3xi32>, %[[G:.*]]: tensor<2x3x4xf64>) -> tensor<8x4xf64>
// CHECK:         weft.embedding_grad %[[G]][%[[IDS]]]
func.func private @embedding(%t: tensor<8x4xf64>, %ids: tensor<2x3xi32>) -> tensor<2x3x4xf64> {
  %0 = weft.embedding %t[%ids] : tensor<8x4xf64>[tensor<2x3xi32>] -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// CHECK-LABEL: func.func private @matmul_backward(
// CHECK-SAME:      %[[X:.*]]: tensor<2x3x4xf64>, %[[W:.*]]: tensor<8x4xf64>, %[[G:.*]]: tensor<2x3x8xf64>)
// CHECK:         %[[DX:.*]] = weft.contract "bsn,nk->bsk"(%[[G]], %[[W]])
// CHECK:         %[[DW:.*]] = weft.contract "bsn,bsk->nk"(%[[G]], %[[X]])
// CHECK:         return %[[DX]], %[[DW]]
func.func private @matmul(%x: tensor<2x3x4xf64>, %w: tensor<8x4xf64>) -> tensor<2x3x8xf64> {
  %0 = weft.contract "bsk,nk->bsn" (%x, %w) : (tensor<2x3x4xf64>, tensor<8x4xf64>) -> tensor<2x3x8xf64>
  return %0 : tensor<2x3x8xf64>
}

// lse - picked: the gradients of both are one tensor and its negative.
// CHECK-LABEL: func.func private @cross_entropy_backward(
// CHECK-SAME:      %[[X:.*]]: tensor<2x3x8xf64>, %[[T:.*]]: tensor<2x3xi32>, %[[LSE:.*]]: tensor<2x3xf64>, %[[G:.*]]: tensor<2x3xf64>)
// CHECK:         %[[NEG:.*]] = weft.map ins(%[[G]] :
// CHECK:           arith.negf
// CHECK:         weft.cross_entropy_grad %[[X]][%[[T]]] lse(%[[LSE]]) gradient(%[[G]], %[[NEG]])
func.func private @cross_entropy(%x: tensor<2x3x8xf64>, %t: tensor<2x3xi32>) -> tensor<2x3xf64> {
  %0:2 = weft.cross_entropy %x[%t] : tensor<2x3x8xf64>[tensor<2x3xi32>] -> tensor<2x3xf64>, tensor<2x3xf64>
  %1 = weft.map ins(%0#0, %0#1 : tensor<2x3xf64>, tensor<2x3xf64>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<2x3xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.subf %a, %b : f64
    weft.yield %c : f64
  }
  return %1 : tensor<2x3xf64>
}

// CHECK-LABEL: func.func private @attention_forward(
// CHECK:         %[[O:.*]], %[[LSE:.*]] = weft.attention
// CHECK:         return %[[O]], %[[O]], %[[LSE]]
// CHECK-LABEL: func.func private @attention_backward(
// CHECK-SAME:      %[[Q:.*]]: tensor<2x3x1x2x4xf64>, %[[K:.*]]: tensor<2x3x1x4xf64>, %[[SEED:.*]]: tensor<i64>, %[[L:.*]]: index, %[[O:.*]]: tensor<2x3x1x2x4xf64>, %[[LSE:.*]]: tensor<2x1x2x3xf64>, %[[G:.*]]: tensor<2x3x1x2x4xf64>)
// CHECK:         %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = weft.attention_grad(%[[Q]], %[[K]], %[[K]]) output(%[[O]], %[[LSE]]) gradient(%[[G]])
// CHECK-SAME:      dropout = 1.000000e-01 key(%[[SEED]], %[[SEED]], %[[L]]
// CHECK:         weft.map ins(%[[DK]], %[[DV]]
func.func private @attention(%q: tensor<2x3x1x2x4xf64>, %k: tensor<2x3x1x4xf64>,
                             %seed: tensor<i64>, %layer: index) -> tensor<2x3x1x2x4xf64> {
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.1
      key(%seed, %seed, %layer : tensor<i64>, tensor<i64>)
      : tensor<2x3x1x2x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x1x4xf64>
      -> tensor<2x3x1x2x4xf64>, tensor<2x1x2x3xf64>
  return %0#0 : tensor<2x3x1x2x4xf64>
}
