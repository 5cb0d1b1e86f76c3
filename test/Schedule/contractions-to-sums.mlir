// RUN: weft-opt %s --contractions-to-sums | FileCheck %s

#all = affine_map<(n, c, p) -> (n, c, p)>

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK-SAME:      %[[Y:.*]]: tensor<8x4x9xf32>, %[[G:.*]]: tensor<8x4x9xf32>
// CHECK:         %[[X:.*]] = weft.map ins(%[[Y]]
// CHECK:         %[[S:.*]] = weft.map_sum ins(%[[X]], %[[G]] : {{.*}} over [8, 4, 9] to [1] -> tensor<4xf32>
// CHECK:           %[[P:.*]] = arith.mulf
// CHECK-NEXT:      weft.yield %[[P]]
// CHECK:         return %[[S]]
func.func private @description(%y: tensor<8x4x9xf32>, %g: tensor<8x4x9xf32>) -> tensor<4xf32> {
  %x = weft.map ins(%y : tensor<8x4x9xf32>) maps [#all] -> tensor<8x4x9xf32> {
  ^bb0(%a: f32):
    %1 = math.exp %a : f32
    weft.yield %1 : f32
  }
  %0 = weft.contract "ncp,ncp->c"(%x, %g)
      : (tensor<8x4x9xf32>, tensor<8x4x9xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Two sums of one tensor are one op; bf16 is added up as float32.
// CHECK-LABEL: @together(
// CHECK:         %[[X:.*]] = weft.map
// CHECK:         %[[S:.*]]:2 = weft.map_sum ins(%[[X]], %[[X]], %{{.*}} : {{.*}} -> tensor<4xf32>, tensor<4xf32>
// CHECK:           arith.extf
// CHECK:         return %[[S]]#0, %[[S]]#1
func.func private @together(%y: tensor<8x4x9xbf16>, %g: tensor<8x4x9xbf16>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %x = weft.map ins(%y : tensor<8x4x9xbf16>) maps [#all] -> tensor<8x4x9xbf16> {
  ^bb0(%a: bf16):
    weft.yield %a : bf16
  }
  %0 = weft.contract "ncp->c"(%x) : (tensor<8x4x9xbf16>) -> tensor<4xf32>
  %1 = weft.contract "ncp,ncp->c"(%x, %g)
      : (tensor<8x4x9xbf16>, tensor<8x4x9xbf16>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// The first is needed before the second.
// CHECK-LABEL: @one_after_the_other(
// CHECK-COUNT-2: weft.map_sum
func.func private @one_after_the_other(%y: tensor<8x4x9xf32>) -> tensor<4xf32> {
  %x = weft.map ins(%y : tensor<8x4x9xf32>) maps [#all] -> tensor<8x4x9xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  %0 = weft.contract "ncp->c"(%x) : (tensor<8x4x9xf32>) -> tensor<4xf32>
  %1 = weft.contract "ncp,c->c"(%x, %0) : (tensor<8x4x9xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Of what is in memory anyway, across rows, of a single number, and matmuls.
// CHECK-LABEL: @left_as_they_are(
// CHECK-NOT:     weft.map_sum
func.func private @left_as_they_are(%y: tensor<8x4xf32>, %w: tensor<6x4xf32>) {
  %x = weft.map ins(%y : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  %0 = weft.contract "bk->b"(%y) : (tensor<8x4xf32>) -> tensor<8xf32>
  %1 = weft.contract "bk->k"(%x) : (tensor<8x4xf32>) -> tensor<4xf32>
  %2 = weft.contract "bk->"(%x) : (tensor<8x4xf32>) -> tensor<f32>
  %3 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  return
}
