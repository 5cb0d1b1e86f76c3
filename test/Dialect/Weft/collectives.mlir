// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Movements between ranks, on whole tensors with shardings and on the shards of one rank.

#mesh = #weft.mesh<"dp"=2, "tp"=4>

// CHECK-LABEL: @reshard
func.func @reshard(%x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>) {
  // CHECK: weft.reshard %{{.*}} : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>> -> tensor<8x16xf32, #weft.sharding<#mesh, [{}, {"dp", "tp"}]>>
  %0 = weft.reshard %x
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{}, {"dp", "tp"}]>>
  // A value becomes pending, and pending on another axis as well.
  %1 = weft.reshard %0 : tensor<8x16xf32, #weft.sharding<#mesh, [{}, {"dp", "tp"}]>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>>
  %2 = weft.reshard %1
      : tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp", "tp"}>>
  return
}

// CHECK-LABEL: @all_reduce
func.func @all_reduce(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = max{"dp", "tp"}>>,
    %y: tensor<8x16xf32>) {
  // CHECK: weft.all_reduce max %{{.*}} over ["tp"] of #mesh : tensor<{{.*}}unreduced = max{"dp", "tp"}>> -> tensor<{{.*}}unreduced = max{"dp"}>>
  %0 = weft.all_reduce max %x over ["tp"] of #mesh
      : tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = max{"dp", "tp"}>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{}, {}], unreduced = max{"dp"}>>
  // CHECK: weft.all_reduce sum %{{.*}} over ["dp", "tp"] of #mesh : tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = weft.all_reduce sum %y over ["dp", "tp"] of #mesh : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// CHECK-LABEL: @all_gather
func.func @all_gather(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>, %y: tensor<1x16xf32>) {
  // CHECK: weft.all_gather %{{.*}} dim 0 over ["tp"] of #mesh : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>> -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>
  %0 = weft.all_gather %x dim 0 over ["tp"] of #mesh
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>
  // CHECK: weft.all_gather %{{.*}} dim 0 over ["tp"] of #mesh : tensor<1x16xf32> -> tensor<4x16xf32>
  %1 = weft.all_gather %y dim 0 over ["tp"] of #mesh : tensor<1x16xf32> -> tensor<4x16xf32>
  return
}

// CHECK-LABEL: @reduce_scatter
func.func @reduce_scatter(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>,
    %y: tensor<4x16xf32>) {
  // CHECK: weft.reduce_scatter sum %{{.*}} dim 0 over ["tp"] of #mesh : {{.*}} -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
  %0 = weft.reduce_scatter sum %x dim 0 over ["tp"] of #mesh
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
  // CHECK: weft.reduce_scatter sum %{{.*}} dim 0 over ["tp"] of #mesh : tensor<4x16xf32> -> tensor<1x16xf32>
  %1 = weft.reduce_scatter sum %y dim 0 over ["tp"] of #mesh
      : tensor<4x16xf32> -> tensor<1x16xf32>
  return
}

// CHECK-LABEL: @all_to_all
func.func @all_to_all(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>, %y: tensor<1x16xf32>) {
  // CHECK: weft.all_to_all %{{.*}} split 1 concat 0 over ["tp"] of #mesh : {{.*}} -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {"tp"}]>>
  %0 = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {"tp"}]>>
  // CHECK: weft.all_to_all %{{.*}} split 1 concat 0 over ["tp"] of #mesh : tensor<1x16xf32> -> tensor<4x4xf32>
  %1 = weft.all_to_all %y split 1 concat 0 over ["tp"] of #mesh
      : tensor<1x16xf32> -> tensor<4x4xf32>
  return
}

// CHECK-LABEL: @permute
func.func @permute(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>, %y: tensor<1x16xf32>) {
  // CHECK: weft.permute %{{.*}} over ["dp", "tp"] of #mesh from [0, 2, 4, 6, 1, 3, 5, 7] : {{.*}} -> tensor<8x16xf32, #weft.sharding<#mesh, [{"tp", "dp"}, {}]>>
  %0 = weft.permute %x over ["dp", "tp"] of #mesh from [0, 2, 4, 6, 1, 3, 5, 7]
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{"tp", "dp"}, {}]>>
  // CHECK: weft.permute %{{.*}} over ["dp"] of #mesh from [1, 0] : tensor<1x16xf32> -> tensor<1x16xf32>
  %1 = weft.permute %y over ["dp"] of #mesh from [1, 0] : tensor<1x16xf32> -> tensor<1x16xf32>
  return
}

// CHECK-LABEL: @slice
func.func @slice(
    %x: tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>, %y: tensor<4x16xf32>, %i: index) {
  // CHECK: weft.slice %{{.*}} dim 0 over ["tp"] of #mesh : {{.*}} -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh
      : tensor<8x16xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>
      -> tensor<8x16xf32, #weft.sharding<#mesh, [{"dp", "tp"}, {}]>>
  // CHECK: weft.slice %{{.*}} dim 0 over ["tp"] of #mesh index %{{.*}} : tensor<4x16xf32> -> tensor<1x16xf32>
  %1 = weft.slice %y dim 0 over ["tp"] of #mesh index %i : tensor<4x16xf32> -> tensor<1x16xf32>
  return
}

// CHECK-LABEL: @partial
func.func @partial(
    %x: tensor<8xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>>, %y: tensor<8xf32>,
    %i: index) {
  // CHECK: weft.partial %{{.*}} over ["dp"] of #mesh : {{.*}} -> tensor<8xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"dp", "tp"}>>
  %0 = weft.partial %x over ["dp"] of #mesh
      : tensor<8xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>>
      -> tensor<8xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"dp", "tp"}>>
  // CHECK: weft.partial %{{.*}} over ["dp"] of #mesh index %{{.*}} : tensor<8xf32> -> tensor<8xf32>
  %1 = weft.partial %y over ["dp"] of #mesh index %i : tensor<8xf32> -> tensor<8xf32>
  return
}

// CHECK-LABEL: @axis_index
func.func @axis_index() -> index {
  // CHECK: weft.axis_index "tp" of #mesh
  %0 = weft.axis_index "tp" of #mesh
  return %0 : index
}
