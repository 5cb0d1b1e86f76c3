// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Meshes print as aliases, because every type repeats them.

// CHECK-DAG: #[[LINE:.*]] = #weft.mesh<"tp"=2>
// CHECK-DAG: #[[POINT:.*]] = #weft.mesh<>
// CHECK-DAG: #[[BOX:.*]] = #weft.mesh<"dp"=2, "tp"=4>
#line = #weft.mesh<"tp"=2>
#point = #weft.mesh<>
#box = #weft.mesh<"dp"=2, "tp"=4>

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
}
