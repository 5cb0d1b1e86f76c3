// RUN: weft-opt %s -apply-plan="pins=tp=2" | FileCheck %s --check-prefixes=CHECK,TP
// RUN: weft-opt %s -apply-plan="pins=tp=2,dp=2 batch=4" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: weft-opt %s -apply-plan="batch=3" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: weft-opt %s -apply-plan="batch=6 plan={version: 1 mesh {axis {name: 'x' size: 2} axis {name: 'y' size: 3}} sharding {dimension: 'batch' axes: 'y' axes: 'x'} sharding {value: '*.norm' dimension: 'hidden' axes: 'x'}}" | FileCheck %s --check-prefixes=CHECK,TEXT

// The same program under pins and under the text of a plan. The example of the pass's description is
// @w with tp=2.

// TP:   #[[MESH:.*]] = #weft.mesh<"tp"=2>
// BOTH: #[[MESH:.*]] = #weft.mesh<"dp"=2, "tp"=2>
// ONE:  #[[MESH:.*]] = #weft.mesh<>
// TEXT: #[[MESH:.*]] = #weft.mesh<"x"=2, "y"=3>
// CHECK: module attributes {weft.mesh = #[[MESH]]}

// TP:   @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#[[MESH]], [{"tp"}, {}]>>
// BOTH: @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#[[MESH]], [{"tp"}, {}]>>
// ONE:  @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#[[MESH]], [{}, {}]>>
// TEXT: @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#[[MESH]], [{}, {}]>>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>

// A state is cut as its parameter is.
// TP:   @"adam_m/w" ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#[[MESH]], [{"tp"}, {}]>>
weft.variable optimizer @"adam_m/w" ["ffn", "hidden"] : tensor<8x4xf64>

// A plan may speak of one value, and then of its states too.
// TEXT: @final.norm ["hidden"] : tensor<4xf64, #weft.sharding<#[[MESH]], [{"x"}]>>
// TEXT: @"momentum/final.norm" ["hidden"] : tensor<4xf64, #weft.sharding<#[[MESH]], [{"x"}]>>
weft.variable parameter @final.norm ["hidden"] : tensor<4xf64>
weft.variable optimizer @"momentum/final.norm" ["hidden"] : tensor<4xf64>

// TP:   @tokens ["batch", "sequence"] : tensor<1x16xi32, #weft.sharding<#[[MESH]], [{}, {}]>>
// BOTH: @tokens ["batch", "sequence"] : tensor<4x16xi32, #weft.sharding<#[[MESH]], [{"dp"}, {}]>>
// ONE:  @tokens ["batch", "sequence"] : tensor<3x16xi32, #weft.sharding<#[[MESH]], [{}, {}]>>
// TEXT: @tokens ["batch", "sequence"] : tensor<6x16xi32, #weft.sharding<#[[MESH]], [{"y", "x"}, {}]>>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x16xi32>

// BOTH: @seed [] : tensor<i64, #weft.sharding<#[[MESH]], []>>
weft.variable input @seed [] : tensor<i64>

// The batch is known in every type, and values have no sharding yet.
// CHECK-LABEL: func.func @step()
// ONE:   weft.read @tokens : tensor<3x16xi32>
// ONE:   weft.call @layer(%{{.*}}) label "" : (tensor<3x16xi32>) -> tensor<3x16x4xf64>
// CHECK-LABEL: func.func private @layer
// ONE-SAME: (%{{.*}}: tensor<3x16xi32>) -> tensor<3x16x4xf64>
// ONE:   return %{{.*}} : tensor<3x16x4xf64>
func.func @step() {
  %0 = weft.read @tokens : tensor<?x16xi32>
  %1 = weft.call @layer(%0) label "" : (tensor<?x16xi32>) -> tensor<?x16x4xf64>
  return
}
func.func private @layer(%ids: tensor<?x16xi32>) -> tensor<?x16x4xf64> {
  %t = weft.fill constant 1.0 : tensor<8x4xf64>
  %0 = weft.embedding %t[%ids] : tensor<8x4xf64>[tensor<?x16xi32>] -> tensor<?x16x4xf64>
  return %0 : tensor<?x16x4xf64>
}
