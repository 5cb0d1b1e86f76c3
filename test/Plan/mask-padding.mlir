// RUN: weft-opt %s -split-input-file -mask-padding -verify-diagnostics | FileCheck %s --enable-var-scope

// The example of the pass's description: losses of tokens that are not there do not count.
weft.variable input @tokens ["batch", "sequence"] unpadded [3, 8] : tensor<4x8xi32>
weft.variable parameter @table ["vocab"] : tensor<16xf64>
// CHECK-LABEL: func.func @sum_over_the_batch
// CHECK: %[[X:.*]], %{{.*}} = weft.cross_entropy
// CHECK: weft.iota {weft.of_padding} : tensor<4xi32>
// CHECK: %[[MASKED:.*]] = weft.map ins(%[[X]]
// CHECK:   %[[END:.*]] = arith.constant 3 : i32
// CHECK:   arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK:   arith.select
// CHECK: weft.contract "bs->"(%[[MASKED]])
func.func @sum_over_the_batch() -> tensor<f64> {
  %t = weft.read @tokens : tensor<4x8xi32>
  %w = weft.read @table : tensor<16xf64>
  %l = weft.contract "v->v" (%w) : (tensor<16xf64>) -> tensor<16xf64>
  %one = weft.fill constant 1.0 : tensor<4x8xf64>
  %x = weft.contract "bs,v->bsv" (%one, %l) : (tensor<4x8xf64>, tensor<16xf64>) -> tensor<4x8x16xf64>
  %lse, %picked = weft.cross_entropy %x[%t] : tensor<4x8x16xf64>[tensor<4x8xi32>] -> tensor<4x8xf64>, tensor<4x8xf64>
  %0 = weft.contract "bs->" (%lse) : (tensor<4x8xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// What follows from parameters that are zero needs no mask: matmuls, SwiGLU, sums over all of it,
// gradients and updates.
weft.variable parameter @up ["ffn", "hidden"] unpadded [7, 4] : tensor<8x4xf64>
weft.variable parameter @down ["hidden", "ffn"] unpadded [4, 7] : tensor<4x8xf64>
// CHECK-LABEL: func.func @zeros_stay_zeros
// CHECK-NOT: weft.iota
func.func @zeros_stay_zeros(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %u = weft.read @up : tensor<8x4xf64>
  %d = weft.read @down : tensor<4x8xf64>
  %h = weft.contract "bk,nk->bn" (%x, %u) : (tensor<2x4xf64>, tensor<8x4xf64>) -> tensor<2x8xf64>
  %g = weft.map ins(%h : tensor<2x8xf64>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<2x8xf64> {
  ^bb0(%a: f64):
    %e = math.tanh %a : f64
    %one = arith.constant 1.0 : f64
    %s = arith.addf %e, %one : f64
    %r = arith.mulf %s, %a : f64
    weft.yield %r : f64
  }
  %y = weft.contract "bn,kn->bk" (%g, %d) : (tensor<2x8xf64>, tensor<4x8xf64>) -> tensor<2x4xf64>
  %n = weft.contract "bk,bn->nk" (%x, %g) : (tensor<2x4xf64>, tensor<2x8xf64>) -> tensor<8x4xf64>
  weft.assign @up, %n : tensor<8x4xf64>
  return %y : tensor<2x4xf64>
}

// -----

// What a function makes of zeros that is none, as exp does, must not get into a parameter.
weft.variable parameter @w ["ffn"] unpadded [7] : tensor<8xf64>
// CHECK-LABEL: func.func @exponential
// CHECK: math.exp
// CHECK: weft.iota
// CHECK: %[[MASKED:.*]] = weft.map
// CHECK: weft.assign @w, %[[MASKED]]
func.func @exponential() {
  %w = weft.read @w : tensor<8xf64>
  %e = weft.map ins(%w : tensor<8xf64>) maps [affine_map<(i) -> (i)>] -> tensor<8xf64> {
  ^bb0(%a: f64):
    %r = math.exp %a : f64
    weft.yield %r : f64
  }
  weft.assign @w, %e : tensor<8xf64>
  return
}

// -----

// Masked where that takes fewest bytes: not the product of b by 4 x 16 elements, but its factor.
weft.variable input @tokens ["batch"] unpadded [3] : tensor<4xi32>
weft.variable parameter @w ["hidden", "ffn"] : tensor<4x16xf64>
// CHECK-LABEL: func.func @cheapest
// CHECK: %[[ROW:.*]] = weft.fill constant 1.000000e+00 : tensor<4xf64>
// CHECK: %[[PLACES:.*]] = weft.iota {weft.of_padding} : tensor<4xi32>
// CHECK: weft.map ins(%[[ROW]], %[[PLACES]]
// CHECK-NOT: weft.iota
// CHECK: weft.assign
func.func @cheapest() {
  %t = weft.read @tokens : tensor<4xi32>
  %w = weft.read @w : tensor<4x16xf64>
  %e = weft.embedding %w[%t] : tensor<4x16xf64>[tensor<4xi32>] -> tensor<4x16xf64>
  %one = weft.fill constant 1.0 : tensor<4xf64>
  %o = weft.contract "b,bn->bn" (%one, %e) : (tensor<4xf64>, tensor<4x16xf64>) -> tensor<4x16xf64>
  %x = weft.contract "bn,kn->bkn" (%o, %w) : (tensor<4x16xf64>, tensor<4x16xf64>) -> tensor<4x4x16xf64>
  %s = weft.contract "bkn->kn" (%x) : (tensor<4x4x16xf64>) -> tensor<4x16xf64>
  weft.assign @w, %s : tensor<4x16xf64>
  return
}

// -----

// A layer's argument is zero where all calls agree; called once with something else, it is masked.
weft.variable parameter @w ["ffn", "hidden"] unpadded [7, 4] : tensor<8x4xf64>
// CHECK-LABEL: func.func @calls
// CHECK-NOT: weft.iota
// CHECK-LABEL: func.func private @agreed
// CHECK-NOT: weft.iota
// CHECK-LABEL: func.func private @mixed
// CHECK: weft.iota
func.func @calls() -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
  %w = weft.read @w : tensor<8x4xf64>
  %one = weft.fill constant 1.0 : tensor<8x4xf64>
  %p = weft.contract "nk,nk->nk" (%one, %w) : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  %0 = weft.call @agreed(%w) label "" : (tensor<8x4xf64>) -> tensor<4xf64>
  %1 = weft.call @mixed(%w) label "" : (tensor<8x4xf64>) -> tensor<4xf64>
  %2 = weft.call @mixed(%one) label "" : (tensor<8x4xf64>) -> tensor<4xf64>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
func.func private @agreed(%x: tensor<8x4xf64>) -> tensor<4xf64> {
  %0 = weft.contract "nk->k" (%x) : (tensor<8x4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func private @mixed(%x: tensor<8x4xf64>) -> tensor<4xf64> {
  %0 = weft.contract "nk->k" (%x) : (tensor<8x4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// Experts that are not there have no share and no tokens. A logistic function of zero is none.
weft.variable parameter @router ["experts", "hidden"] unpadded [6, 4] : tensor<8x4xf64>
// CHECK-LABEL: func.func @experts
// CHECK-NOT: weft.iota
// CHECK: math.tanh
// CHECK: weft.iota {weft.of_padding} : tensor<8xi32>
// CHECK: %[[MASKED:.*]] = weft.map
// CHECK: weft.contract "te->t"(%[[MASKED]])
func.func @experts(%x: tensor<5x4xf64>) -> (tensor<5xf64>, tensor<5xf64>, tensor<5xf64>) {
  %r = weft.read @router : tensor<8x4xf64>
  %0 = weft.contract "tk,ek->te" (%x, %r) : (tensor<5x4xf64>, tensor<8x4xf64>) -> tensor<5x8xf64>
  %1 = weft.softmax %0 columns [6] : tensor<5x8xf64> -> tensor<5x8xf64>
  %2 = weft.contract "te->t" (%1) : (tensor<5x8xf64>) -> tensor<5xf64>
  %3 = weft.top_k 2 of %0 columns [6] : tensor<5x8xf64> -> tensor<5x8xf64>
  %4 = weft.contract "te->t" (%3) : (tensor<5x8xf64>) -> tensor<5xf64>
  %5 = weft.map ins(%0 : tensor<5x8xf64>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<5x8xf64> {
  ^bb0(%a: f64):
    %t = math.tanh %a : f64
    %one = arith.constant 1.0 : f64
    %s = arith.addf %t, %one : f64
    weft.yield %s : f64
  }
  %6 = weft.contract "te->t" (%5) : (tensor<5x8xf64>) -> tensor<5xf64>
  return %2, %4, %6 : tensor<5xf64>, tensor<5xf64>, tensor<5xf64>
}

// -----

// Tokens that are not there get into no slot.
weft.variable parameter @x ["batch", "sequence", "hidden"] unpadded [2, 5, 4] : tensor<2x6x4xf64>
// CHECK-LABEL: func.func @tokens
// CHECK: weft.top_k
// CHECK-NEXT: weft.iota {weft.of_padding} : tensor<6xi32>
// CHECK-NEXT: %[[MASKED:.*]] = weft.map
// CHECK: weft.dispatch %{{.*}} by %[[MASKED]] at %[[MASKED]]
func.func @tokens(%w: tensor<3x4xf64>) -> tensor<3x2x5x4xf64> {
  %x = weft.read @x : tensor<2x6x4xf64>
  %one = weft.fill constant 1.0 : tensor<2x6x4xf64>
  %y = weft.map ins(%x, %one : tensor<2x6x4xf64>, tensor<2x6x4xf64>) maps [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>] -> tensor<2x6x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %s = arith.addf %a, %b : f64
    weft.yield %s : f64
  }
  %0 = weft.contract "bsk,ek->bse" (%y, %w) : (tensor<2x6x4xf64>, tensor<3x4xf64>) -> tensor<2x6x3xf64>
  %1 = weft.top_k 2 of %0 : tensor<2x6x3xf64> -> tensor<2x6x3xf64>
  %2 = weft.dispatch %y by %1 at %1 : tensor<2x6x4xf64>, tensor<2x6x3xf64>, tensor<2x6x3xf64> -> tensor<3x2x5x4xf64>
  return %2 : tensor<3x2x5x4xf64>
}

// -----

// Whole numbers say which of something else is meant: zero is no better than others, so none is
// masked.
weft.variable statistic @places ["experts"] unpadded [7] : tensor<8xi32>
func.func @whole_numbers() {
  %0 = weft.iota : tensor<8xi32>
  // expected-error @+1 {{mask-padding: weft.assign depends on the padding after the 7 elements of a padded dimension}}
  weft.assign @places, %0 : tensor<8xi32>
  return
}

// -----

// A transfer keeps the padding as it is: zeros of a parameter, and what is no zero after the exp.
weft.variable parameter @w ["ffn"] unpadded [7] : tensor<8xf64>
// CHECK-LABEL: func.func @transfer
// CHECK: %[[W:.*]] = weft.transfer
// CHECK-NEXT: weft.contract "n->"(%[[W]])
// CHECK: %[[E:.*]] = weft.transfer
// CHECK: %[[MASKED:.*]] = weft.map ins(%[[E]]
// CHECK: weft.contract "n->"(%[[MASKED]])
func.func @transfer() -> (tensor<f64>, tensor<f64>) {
  %w = weft.read @w : tensor<8xf64>
  %0 = weft.transfer %w from 0 to 1 : tensor<8xf64>
  %1 = weft.contract "n->" (%0) : (tensor<8xf64>) -> tensor<f64>
  %e = weft.map ins(%w : tensor<8xf64>) maps [affine_map<(i) -> (i)>] -> tensor<8xf64> {
  ^bb0(%a: f64):
    %b = math.exp %a : f64
    weft.yield %b : f64
  }
  %2 = weft.transfer %e from 0 to 1 : tensor<8xf64>
  %3 = weft.contract "n->" (%2) : (tensor<8xf64>) -> tensor<f64>
  return %1, %3 : tensor<f64>, tensor<f64>
}
