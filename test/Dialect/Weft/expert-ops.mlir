// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Routings and tokens at experts, as they print, and how they may be cut.

#mesh = #weft.mesh<"dp"=2, "ep"=2>
#tokens = #weft.sharding<#mesh, [{"dp"}, {}, {}]>
#pending = #weft.sharding<#mesh, [{"dp"}, {}, {}], unreduced = sum{"ep"}>
#routing = #weft.sharding<#mesh, [{"dp"}, {}, {}]>
#routing_cut = #weft.sharding<#mesh, [{"dp"}, {}, {"ep"}]>
#slots = #weft.sharding<#mesh, [{"ep"}, {"dp"}, {}, {}]>
#groups = #weft.sharding<#mesh, [{}, {"dp"}, {}, {}]>
#hidden = #weft.sharding<#mesh, [{"dp"}, {}, {"ep"}]>
#slots_hidden = #weft.sharding<#mesh, [{}, {"dp"}, {}, {"ep"}]>
#routing_pending = #weft.sharding<#mesh, [{"dp"}, {}, {}], unreduced = sum{"ep"}>

// CHECK-LABEL: @top_k
func.func @top_k(%x: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  // CHECK: weft.top_k 2 of %{{.*}} : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  %0 = weft.top_k 2 of %x : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  // CHECK: weft.top_k 3 of %{{.*}} bias(%{{.*}} : tensor<8xf32>) {groups = 4 : i64, kept_groups = 2 : i64}
  %1 = weft.top_k 3 of %0 bias(%b : tensor<8xf32>) {groups = 4 : i64, kept_groups = 2 : i64}
      : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  // CHECK: weft.top_k 3 of %{{.*}} columns [6] bias(%{{.*}} : tensor<8xf32>) {groups = 3 : i64, kept_groups = 2 : i64}
  %2 = weft.top_k 3 of %1 columns [6] bias(%b : tensor<8xf32>) {groups = 3 : i64, kept_groups = 2 : i64}
      : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  return %2 : tensor<2x3x8xf32>
}

// CHECK-LABEL: @cumulative_sum
func.func @cumulative_sum(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  // CHECK: weft.cumulative_sum %{{.*}} along 1 :
  %0 = weft.cumulative_sum %x along 1 : tensor<2x3xf64> -> tensor<2x3xf64>
  // CHECK: weft.cumulative_sum reverse %{{.*}} along 0 :
  %1 = weft.cumulative_sum reverse %0 along 0 : tensor<2x3xf64> -> tensor<2x3xf64>
  return %1 : tensor<2x3xf64>
}

// Each rank fills the buffers of its own experts, and has a part of what comes back.
// CHECK-LABEL: @experts_cut
func.func @experts_cut(%x: tensor<2x6x4xbf16, #tokens>, %m: tensor<2x6x8xf32, #routing_cut>)
    -> tensor<2x6x4xf32, #pending> {
  // CHECK: weft.dispatch %{{.*}} by %{{.*}} at %{{.*}} : tensor<2x6x4xbf16
  %0 = weft.dispatch %x by %m at %m : tensor<2x6x4xbf16, #tokens>,
      tensor<2x6x8xf32, #routing_cut>, tensor<2x6x8xf32, #routing_cut>
      -> tensor<8x2x3x4xbf16, #slots>
  // CHECK: weft.combine %{{.*}} by %{{.*}} at %{{.*}} : tensor<8x2x3x4xbf16
  %1 = weft.combine %0 by %m at %m : tensor<8x2x3x4xbf16, #slots>,
      tensor<2x6x8xf32, #routing_cut>, tensor<2x6x8xf32, #routing_cut>
      -> tensor<2x6x4xf32, #pending>
  return %1 : tensor<2x6x4xf32, #pending>
}

// Or each has the buffers of all experts for its own groups, and these are moved.
// CHECK-LABEL: @experts_moved
func.func @experts_moved(%x: tensor<2x6x4xf64, #tokens>, %m: tensor<2x6x8xf64, #routing>)
    -> tensor<8x2x3x4xf64, #slots> {
  %0 = weft.dispatch %x by %m at %m : tensor<2x6x4xf64, #tokens>, tensor<2x6x8xf64, #routing>,
      tensor<2x6x8xf64, #routing> -> tensor<8x2x3x4xf64, #groups>
  %1 = weft.reshard %0 : tensor<8x2x3x4xf64, #groups> -> tensor<8x2x3x4xf64, #slots>
  return %1 : tensor<8x2x3x4xf64, #slots>
}

// CHECK-LABEL: @hidden_cut
func.func @hidden_cut(%x: tensor<2x6x4xf32, #hidden>, %y: tensor<8x2x3x4xf32, #slots_hidden>,
                      %m: tensor<2x6x8xf32, #routing>) -> tensor<2x6x8xf32, #routing_pending> {
  // CHECK: weft.slot_products %{{.*}}, %{{.*}} at %{{.*}} : tensor<2x6x4xf32
  %0 = weft.slot_products %x, %y at %m : tensor<2x6x4xf32, #hidden>,
      tensor<8x2x3x4xf32, #slots_hidden>, tensor<2x6x8xf32, #routing>
      -> tensor<2x6x8xf32, #routing_pending>
  return %0 : tensor<2x6x8xf32, #routing_pending>
}
