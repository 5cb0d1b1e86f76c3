// RUN: weft-opt %s -reshard-to-collectives | FileCheck %s

// One case for each movement and for each two of them that meet; all pairs are in
// reshard-pairs.test.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#tiles = #weft.sharding<#mesh, [{"dp"}, {"tp"}]>
#swapped = #weft.sharding<#mesh, [{"tp"}, {"dp"}]>
#both = #weft.sharding<#mesh, [{"dp", "tp"}, {}]>
#minor_first = #weft.sharding<#mesh, [{"tp", "dp"}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#pending_dp = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp"}>
#pending_both = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp", "tp"}>
#lse = #weft.sharding<#mesh, [{}, {}], unreduced = logsumexp{"tp"}>

// The example of the pass's description.
// CHECK-LABEL: @description
// CHECK:         %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["tp"] of #mesh : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-NEXT:    %[[B:.*]] = weft.all_gather %[[A]] dim 0 over ["dp"] of #mesh : {{.*}} -> tensor<{{.*}} [{}, {}]>>
// CHECK-NEXT:    %[[C:.*]] = weft.slice %[[B]] dim 1 over ["tp"] of #mesh : {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
// CHECK-NEXT:    return %[[C]]
func.func @description(
    %0: tensor<4x8xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>)
    -> tensor<4x8xf64, #columns> {
  %1 = weft.reshard %0
      : tensor<4x8xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
      -> tensor<4x8xf64, #columns>
  return %1 : tensor<4x8xf64, #columns>
}

// CHECK-LABEL: @reduce
// CHECK-NEXT:    %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["dp", "tp"]
// CHECK-NEXT:    return %[[A]]
func.func @reduce(%x: tensor<4x8xf64, #pending_both>) -> tensor<4x8xf64, #whole> {
  %0 = weft.reshard %x : tensor<4x8xf64, #pending_both> -> tensor<4x8xf64, #whole>
  return %0 : tensor<4x8xf64, #whole>
}

// CHECK-LABEL: @reduce_one_axis_of_two
// CHECK-NEXT:    %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["tp"] {{.*}} unreduced = sum{"dp"}>>
// CHECK-NEXT:    return %[[A]]
func.func @reduce_one_axis_of_two(%x: tensor<4x8xf64, #pending_both>) -> tensor<4x8xf64, #pending_dp> {
  %0 = weft.reshard %x : tensor<4x8xf64, #pending_both> -> tensor<4x8xf64, #pending_dp>
  return %0 : tensor<4x8xf64, #pending_dp>
}

// CHECK-LABEL: @reduce_by_operator
// CHECK-NEXT:    weft.all_reduce logsumexp
func.func @reduce_by_operator(%x: tensor<4x8xf64, #lse>) -> tensor<4x8xf64, #whole> {
  %0 = weft.reshard %x : tensor<4x8xf64, #lse> -> tensor<4x8xf64, #whole>
  return %0 : tensor<4x8xf64, #whole>
}

// CHECK-LABEL: @reduce_and_slice
// CHECK-NEXT:    %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["tp"]
// CHECK-NEXT:    %[[B:.*]] = weft.slice %[[A]] dim 0 over ["tp"]
// CHECK-NEXT:    return %[[B]]
func.func @reduce_and_slice(%x: tensor<4x8xf64, #pending>) -> tensor<4x8xf64, #rows> {
  %0 = weft.reshard %x : tensor<4x8xf64, #pending> -> tensor<4x8xf64, #rows>
  return %0 : tensor<4x8xf64, #rows>
}

// CHECK-LABEL: @exchange
// CHECK-NEXT:    %[[A:.*]] = weft.all_to_all %{{.*}} split 1 concat 0 over ["tp"]
// CHECK-NEXT:    return %[[A]]
func.func @exchange(%x: tensor<4x8xf64, #rows>) -> tensor<4x8xf64, #columns> {
  %0 = weft.reshard %x : tensor<4x8xf64, #rows> -> tensor<4x8xf64, #columns>
  return %0 : tensor<4x8xf64, #columns>
}

// Neither dimension has lost its axis when the other could have it.
// CHECK-LABEL: @swap
// CHECK-NEXT:    %[[A:.*]] = weft.all_gather %{{.*}} dim 0 over ["dp"]
// CHECK-NEXT:    %[[B:.*]] = weft.all_gather %[[A]] dim 1 over ["tp"]
// CHECK-NEXT:    %[[C:.*]] = weft.slice %[[B]] dim 0 over ["tp"]
// CHECK-NEXT:    %[[D:.*]] = weft.slice %[[C]] dim 1 over ["dp"]
// CHECK-NEXT:    return %[[D]]
func.func @swap(%x: tensor<4x8xf64, #tiles>) -> tensor<4x8xf64, #swapped> {
  %0 = weft.reshard %x : tensor<4x8xf64, #tiles> -> tensor<4x8xf64, #swapped>
  return %0 : tensor<4x8xf64, #swapped>
}

// Only the minor axis goes: dp stays where it is.
// CHECK-LABEL: @keep_major_axis
// CHECK-NEXT:    %[[A:.*]] = weft.all_to_all %{{.*}} split 1 concat 0 over ["tp"] {{.*}} [{"dp"}, {"tp"}]>>
// CHECK-NEXT:    return %[[A]]
func.func @keep_major_axis(%x: tensor<4x8xf64, #both>) -> tensor<4x8xf64, #tiles> {
  %0 = weft.reshard %x : tensor<4x8xf64, #both> -> tensor<4x8xf64, #tiles>
  return %0 : tensor<4x8xf64, #tiles>
}

// CHECK-LABEL: @order_of_axes
// CHECK-NEXT:    %[[A:.*]] = weft.all_gather %{{.*}} dim 0 over ["dp", "tp"]
// CHECK-NEXT:    %[[B:.*]] = weft.slice %[[A]] dim 0 over ["tp", "dp"]
func.func @order_of_axes(%x: tensor<4x8xf64, #both>) -> tensor<4x8xf64, #minor_first> {
  %0 = weft.reshard %x : tensor<4x8xf64, #both> -> tensor<4x8xf64, #minor_first>
  return %0 : tensor<4x8xf64, #minor_first>
}

// CHECK-LABEL: @make_partial
// CHECK-NEXT:    %[[A:.*]] = weft.partial %{{.*}} over ["tp"]
// CHECK-NEXT:    return %[[A]]
func.func @make_partial(%x: tensor<4x8xf64, #whole>) -> tensor<4x8xf64, #pending> {
  %0 = weft.reshard %x : tensor<4x8xf64, #whole> -> tensor<4x8xf64, #pending>
  return %0 : tensor<4x8xf64, #pending>
}

// CHECK-LABEL: @gather_and_make_partial
// CHECK-NEXT:    %[[A:.*]] = weft.all_gather %{{.*}} dim 0 over ["tp"]
// CHECK-NEXT:    %[[B:.*]] = weft.partial %[[A]] over ["tp"]
func.func @gather_and_make_partial(%x: tensor<4x8xf64, #rows>) -> tensor<4x8xf64, #pending> {
  %0 = weft.reshard %x : tensor<4x8xf64, #rows> -> tensor<4x8xf64, #pending>
  return %0 : tensor<4x8xf64, #pending>
}
