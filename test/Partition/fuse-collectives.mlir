// RUN: weft-opt %s -fuse-collectives | FileCheck %s

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#maximum = #weft.sharding<#mesh, [{}, {}], unreduced = max{"tp"}>
#lse = #weft.sharding<#mesh, [{}, {}], unreduced = logsumexp{"tp"}>
#both = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp", "tp"}>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>

// The example of the pass's description.
// CHECK-LABEL: @description
// CHECK-NEXT:    %[[X:.*]] = weft.reduce_scatter sum %arg0 dim 0 over ["tp"] of #mesh
// CHECK-NEXT:    return %[[X]]
func.func @description(%0: tensor<4x8xf64, #pending>) -> tensor<4x8xf64, #rows> {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh
      : tensor<4x8xf64, #pending> -> tensor<4x8xf64, #whole>
  %2 = weft.slice %1 dim 0 over ["tp"] of #mesh
      : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #rows>
  return %2 : tensor<4x8xf64, #rows>
}

// CHECK-LABEL: @maximum
// CHECK-NEXT:    weft.reduce_scatter max
func.func @maximum(%0: tensor<4x8xf64, #maximum>) -> tensor<4x8xf64, #rows> {
  %1 = weft.all_reduce max %0 over ["tp"] of #mesh
      : tensor<4x8xf64, #maximum> -> tensor<4x8xf64, #whole>
  %2 = weft.slice %1 dim 0 over ["tp"] of #mesh
      : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #rows>
  return %2 : tensor<4x8xf64, #rows>
}

// CHECK-LABEL: @log_sum_exp_stays
// CHECK-NEXT:    weft.all_reduce logsumexp
// CHECK-NEXT:    weft.slice
func.func @log_sum_exp_stays(%0: tensor<4x8xf64, #lse>) -> tensor<4x8xf64, #rows> {
  %1 = weft.all_reduce logsumexp %0 over ["tp"] of #mesh
      : tensor<4x8xf64, #lse> -> tensor<4x8xf64, #whole>
  %2 = weft.slice %1 dim 0 over ["tp"] of #mesh
      : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #rows>
  return %2 : tensor<4x8xf64, #rows>
}

// CHECK-LABEL: @other_use_needs_the_whole
// CHECK-NEXT:    weft.all_reduce
// CHECK-NEXT:    weft.slice
func.func @other_use_needs_the_whole(%0: tensor<4x8xf64, #pending>)
    -> (tensor<4x8xf64, #rows>, tensor<4x8xf64, #whole>) {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh
      : tensor<4x8xf64, #pending> -> tensor<4x8xf64, #whole>
  %2 = weft.slice %1 dim 0 over ["tp"] of #mesh
      : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #rows>
  return %2, %1 : tensor<4x8xf64, #rows>, tensor<4x8xf64, #whole>
}

// CHECK-LABEL: @other_axes
// CHECK-NEXT:    weft.all_reduce
// CHECK-NEXT:    weft.slice
func.func @other_axes(%0: tensor<4x8xf64, #both>) -> tensor<4x8xf64, #rows> {
  %1 = weft.all_reduce sum %0 over ["dp", "tp"] of #mesh
      : tensor<4x8xf64, #both> -> tensor<4x8xf64, #whole>
  %2 = weft.slice %1 dim 0 over ["tp"] of #mesh
      : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #rows>
  return %2 : tensor<4x8xf64, #rows>
}
