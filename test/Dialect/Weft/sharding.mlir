// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Meshes print as aliases, because every type repeats them.

// CHECK-DAG: #[[LINE:.*]] = #weft.mesh<"tp"=2>
// CHECK-DAG: #[[POINT:.*]] = #weft.mesh<>
// CHECK-DAG: #[[BOX:.*]] = #weft.mesh<"dp"=2, "tp"=4>
// CHECK-DAG: #[[SPLIT:.*]] = #weft.mesh<"dp"=2, "tp"=2x2x3>
#line = #weft.mesh<"tp"=2>
#point = #weft.mesh<>
#box = #weft.mesh<"dp"=2, "tp"=4>
#split = #weft.mesh<"dp"=2, "tp"=2x2x3>

// CHECK: module attributes {weft.mesh = #[[BOX]]}
module attributes {weft.mesh = #box} {
  // CHECK: @one_rank(tensor<4x4xf32, #weft.sharding<#[[POINT]], [{}, {}]>>)
  func.func private @one_rank(tensor<4x4xf32, #weft.sharding<#point, [{}, {}]>>)
  // CHECK: @scalar(tensor<i64, #weft.sharding<#[[LINE]], []>>)
  func.func private @scalar(tensor<i64, #weft.sharding<#line, []>>)
  // CHECK: @rows(tensor<4x4xf32, #weft.sharding<#[[BOX]], [{"dp"}, {}]>>)
  func.func private @rows(tensor<4x4xf32, #weft.sharding<#box, [{"dp"}, {}]>>)
  // CHECK: @tiles(tensor<4x4xf32, #weft.sharding<#[[BOX]], [{"dp"}, {"tp"}]>>)
  func.func private @tiles(tensor<4x4xf32, #weft.sharding<#box, [{"dp"}, {"tp"}]>>)
  // The first axis is major: this is not the cut over {"dp", "tp"}.
  // CHECK: @minor_first(tensor<8xf32, #weft.sharding<#[[BOX]], [{"tp", "dp"}]>>)
  func.func private @minor_first(tensor<8xf32, #weft.sharding<#box, [{"tp", "dp"}]>>)
  // CHECK: @pending_sum(tensor<8xf32, #weft.sharding<#[[BOX]], [{"dp"}], unreduced = sum{"tp"}>>)
  func.func private @pending_sum(
      tensor<8xf32, #weft.sharding<#box, [{"dp"}], unreduced = sum{"tp"}>>)
  // CHECK: @pending_others(tensor<8xf32, #weft.sharding<#[[BOX]], [{}], unreduced = logsumexp{"dp", "tp"}>>, tensor<f32, #weft.sharding<#[[LINE]], [], unreduced = max{"tp"}>>)
  func.func private @pending_others(
      tensor<8xf32, #weft.sharding<#box, [{}], unreduced = logsumexp{"dp", "tp"}>>,
      tensor<f32, #weft.sharding<#line, [], unreduced = max{"tp"}>>)
  // An unknown batch may be cut: its size is checked once it is known.
  // CHECK: @batch(tensor<?x3xf32, #weft.sharding<#[[BOX]], [{"dp", "tp"}, {}]>>)
  func.func private @batch(tensor<?x3xf32, #weft.sharding<#box, [{"dp", "tp"}, {}]>>)
  // A sub-axis of 2 ranks cuts two heads, the rest cuts their groups, and all of tp another dimension.
  // CHECK: @heads(tensor<2x6xf32, #weft.sharding<#[[SPLIT]], [{"tp:(1)2"}, {"tp:(2)6"}]>>)
  func.func private @heads(tensor<2x6xf32, #weft.sharding<#split, [{"tp:(1)2"}, {"tp:(2)6"}]>>)
  // CHECK: @whole(tensor<24xf32, #weft.sharding<#[[SPLIT]], [{"tp", "dp"}]>>)
  func.func private @whole(
      tensor<24xf32, #weft.sharding<#split, [{"tp:(1)2", "tp:(2)6", "dp"}]>>)
  // Minor before major is another order.
  // CHECK: @turned(tensor<4xf32, #weft.sharding<#[[SPLIT]], [{"tp:(2)2", "tp:(1)2"}], unreduced = sum{"tp:(4)3"}>>)
  func.func private @turned(
      tensor<4xf32, #weft.sharding<#split, [{"tp:(2)2", "tp:(1)2"}], unreduced = sum{"tp:(4)3"}>>)
  // CHECK: @gather
  // CHECK: weft.all_gather %{{.*}} dim 0 over ["tp:(1)4"] of #[[SPLIT]]
  // CHECK: weft.all_reduce sum %{{.*}} over ["dp", "tp"] of #[[SPLIT]]
  func.func @gather(%x: tensor<3xf32>) -> tensor<12xf32> {
    %0 = weft.all_gather %x dim 0 over ["tp:(1)2", "tp:(2)2"] of #split
        : tensor<3xf32> -> tensor<12xf32>
    %1 = weft.all_reduce sum %0 over ["dp", "tp"] of #split : tensor<12xf32> -> tensor<12xf32>
    return %1 : tensor<12xf32>
  }
}
