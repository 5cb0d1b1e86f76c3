// RUN: weft-opt %s -expand-log-sum-exp | FileCheck %s

#mesh = #weft.mesh<"tp"=2>

// The example of the pass's description: m + log(sum of exp(x - m)).
// CHECK-LABEL: @description(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf64>)
// CHECK-NEXT:    %[[M:.*]] = weft.all_reduce max %[[X]] over ["tp"] of #mesh
// CHECK-NEXT:    %[[E:.*]] = weft.map ins(%[[X]], %[[M]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f64, %[[B:.*]]: f64):
// CHECK-NEXT:      %[[D:.*]] = arith.subf %[[A]], %[[B]]
// CHECK-NEXT:      math.exp %[[D]]
// CHECK:         %[[S:.*]] = weft.all_reduce sum %[[E]] over ["tp"] of #mesh
// CHECK-NEXT:    %[[Y:.*]] = weft.map ins(%[[M]], %[[S]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f64, %[[B:.*]]: f64):
// CHECK-NEXT:      %[[L:.*]] = math.log %[[B]]
// CHECK-NEXT:      arith.addf %[[A]], %[[L]]
// CHECK:         return %[[Y]]
func.func @description(%0: tensor<4xf64>) -> tensor<4xf64> {
  %1 = weft.all_reduce logsumexp %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// CHECK-LABEL: @no_dimensions
// CHECK:         weft.all_reduce max
// CHECK:         weft.all_reduce sum
// CHECK-NOT:     logsumexp
func.func @no_dimensions(%0: tensor<f32>) -> tensor<f32> {
  %1 = weft.all_reduce logsumexp %0 over ["tp"] of #mesh : tensor<f32> -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: @others_stay
// CHECK-NEXT:    weft.all_reduce sum
// CHECK-NEXT:    weft.all_reduce max
// CHECK-NEXT:    return
func.func @others_stay(%0: tensor<f32>) -> tensor<f32> {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<f32> -> tensor<f32>
  %2 = weft.all_reduce max %1 over ["tp"] of #mesh : tensor<f32> -> tensor<f32>
  return %2 : tensor<f32>
}
