// RUN: weft-opt %s -narrow-reductions | FileCheck %s

#mesh = #weft.mesh<"tp"=2>

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK:         %[[NARROW:.*]] = weft.map ins(%{{.*}} : tensor<4xf32>) {{.*}} -> tensor<4xbf16>
// CHECK:           arith.truncf
// CHECK:         %[[SUM:.*]] = weft.all_reduce sum %[[NARROW]] over ["tp"] of #mesh : tensor<4xbf16>
// CHECK-NEXT:    %[[WIDE:.*]] = weft.map ins(%[[SUM]] : tensor<4xbf16>) {{.*}} -> tensor<4xf32>
// CHECK:           arith.extf
// CHECK:         return %[[WIDE]]
func.func @description(%0: tensor<4xf32>) -> tensor<4xf32> {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @scatter(
// CHECK:         weft.reduce_scatter sum %{{.*}} : tensor<4xbf16> -> tensor<2xbf16>
// CHECK:         arith.extf
func.func @scatter(%0: tensor<4xf32>) -> tensor<2xf32> {
  %1 = weft.reduce_scatter sum %0 dim 0 over ["tp"] of #mesh : tensor<4xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @others_stay(
// CHECK-NEXT:    weft.all_reduce sum %{{.*}} : tensor<f32>
// CHECK-NEXT:    weft.all_reduce max %{{.*}} : tensor<4xf32>
// CHECK-NEXT:    weft.all_reduce logsumexp %{{.*}} : tensor<4xf32>
// CHECK-NEXT:    weft.all_reduce sum %{{.*}} : tensor<4xf64>
// CHECK-NEXT:    return
func.func @others_stay(%0: tensor<f32>, %1: tensor<4xf32>, %2: tensor<4xf64>) {
  %3 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<f32> -> tensor<f32>
  %4 = weft.all_reduce max %1 over ["tp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
  %5 = weft.all_reduce logsumexp %1 over ["tp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
  %6 = weft.all_reduce sum %2 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  return
}
