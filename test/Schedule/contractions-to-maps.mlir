// RUN: weft-opt %s --contractions-to-maps | FileCheck %s

// CHECK: #[[$ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[$LAST:.*]] = affine_map<(d0, d1) -> (d1)>

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK-SAME:      %[[X:.*]]: tensor<8x4xf32>, %[[S:.*]]: tensor<4xf32>
// CHECK-NEXT:    weft.map ins(%[[X]], %[[S]] : tensor<8x4xf32>, tensor<4xf32>) maps [#[[$ALL]], #[[$LAST]]]
// CHECK:           %[[P:.*]] = arith.mulf
// CHECK-NEXT:      weft.yield %[[P]]
func.func @description(%x: tensor<8x4xf32>, %s: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = weft.contract "bc,c->bc"(%x, %s)
      : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: @left_as_they_are(
// CHECK-NOT:     weft.map
func.func @left_as_they_are(%x: tensor<4x4xf32>, %s: tensor<4xf32>, %y: tensor<4x4xbf16>) {
  %0 = weft.contract "bc,c->b"(%x, %s) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = weft.contract "cb,c->bc"(%x, %s) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = weft.contract "bc->cb"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = weft.contract "bc,bc->bc"(%y, %y) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return
}
