// RUN: weft-opt %s -reshard-to-collectives | FileCheck %s
// RUN: weft-opt %s -reshard-to-collectives="machine='version: 1 name: \"m\" nodes: 2 devices_per_node: 2 device { name: \"d\" peak_flops { precision: F32 flops: 1e12 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: \"in\" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e11 } links { name: \"out\" scope: CLUSTER latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }'" \
// RUN:   | FileCheck %s --check-prefix=MACHINE
// RUN: not weft-opt %s -reshard-to-collectives="machine='version: 2'" 2>&1 | FileCheck %s --check-prefix=REFUSED

// One case for each movement and for each two of them that meet; all pairs are in
// reshard-pairs.test, and executed in test/Execution/reshards.py.

// REFUSED: reshard-to-collectives: machine:1:{{.*}}version

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
// CHECK:         %[[A:.*]] = weft.reduce_scatter sum %{{.*}} dim 1 over ["tp"] of #mesh : {{.*}} -> tensor<{{.*}} [{"dp"}, {"tp"}]>>
// CHECK-NEXT:    %[[B:.*]] = weft.all_gather %[[A]] dim 0 over ["dp"] of #mesh : {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
// CHECK-NEXT:    return %[[B]]
func.func @description(
    %0: tensor<4x8xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>)
    -> tensor<4x8xf64, #columns> {
  %1 = weft.reshard %0
      : tensor<4x8xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
      -> tensor<4x8xf64, #columns>
  return %1 : tensor<4x8xf64, #columns>
}

// An all-reduce across nodes sends only a shard between them by itself, so it is best also where
// bytes over dp cost a hundred times as much as over tp.
// CHECK-LABEL: @reduce
// CHECK-NEXT:    %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["dp", "tp"]
// CHECK-NEXT:    return %[[A]]
// MACHINE-LABEL: @reduce
// MACHINE-NEXT:    %[[A:.*]] = weft.all_reduce sum %{{.*}} over ["dp", "tp"]
// MACHINE-NEXT:    return %[[A]]
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
// CHECK-NEXT:    %[[A:.*]] = weft.reduce_scatter sum %{{.*}} dim 0 over ["tp"]
// CHECK-NEXT:    return %[[A]]
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

// CHECK-LABEL: @swap
// CHECK-NEXT:    %[[A:.*]] = weft.permute %{{.*}} over ["dp", "tp"] of #mesh from [0, 2, 1, 3]
// CHECK-NEXT:    return %[[A]]
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
// CHECK-NEXT:    %[[A:.*]] = weft.permute %{{.*}} over ["dp", "tp"] of #mesh from [0, 2, 1, 3]
// CHECK-NEXT:    return %[[A]]
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

// The maximum and the sum that it becomes are no reduce-scatters. Ranks over dp, which all have the
// same, reduce half of it each.
// CHECK-LABEL: @log_sum_exp_is_not_scattered
// CHECK-NEXT:    %[[A:.*]] = weft.slice %{{.*}} dim 1 over ["dp"]
// CHECK-NEXT:    %[[B:.*]] = weft.all_reduce logsumexp %[[A]] over ["tp"]
// CHECK-NEXT:    %[[C:.*]] = weft.slice %[[B]] dim 0 over ["tp"]
// CHECK-NEXT:    %[[D:.*]] = weft.all_gather %[[C]] dim 1 over ["dp"]
// Where bytes over dp go between nodes and cost a hundred times as much, none go there.
// MACHINE-LABEL: @log_sum_exp_is_not_scattered
// MACHINE-NEXT:    %[[A:.*]] = weft.all_reduce logsumexp %{{.*}} over ["tp"]
// MACHINE-NEXT:    %[[B:.*]] = weft.slice %[[A]] dim 0 over ["tp"]
// MACHINE-NEXT:    return %[[B]]
func.func @log_sum_exp_is_not_scattered(%x: tensor<4x8xf64, #lse>) -> tensor<4x8xf64, #rows> {
  %0 = weft.reshard %x : tensor<4x8xf64, #lse> -> tensor<4x8xf64, #rows>
  return %0 : tensor<4x8xf64, #rows>
}
