// RUN: weft-opt %s -substitute-batch -apply-plan="pins=tp=2" | FileCheck %s --check-prefixes=CHECK,TP
// RUN: weft-opt %s -substitute-batch="batch=4" -apply-plan="pins=tp=2,dp=2" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: weft-opt %s -substitute-batch="batch=3" -apply-plan | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: weft-opt %s -substitute-batch="batch=6" -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2} axis {name: 'y' size: 3}} sharding {dimension: 'batch' axes: 'y' axes: 'x'} sharding {value: '*.norm' dimension: 'hidden' axes: 'x'} home {value: '*/*' dimension: 'hidden'} sharding {value: 'lookup' dimension: 'hidden' axes: 'x'}}" | FileCheck %s --check-prefixes=CHECK,TEXT

// The same program under pins and under the text of a plan. The example of the pass's description is
// @w and the contraction with tp=2.

// TP:   #[[MESH:.*]] = #weft.mesh<"tp"=2>
// BOTH: #[[MESH:.*]] = #weft.mesh<"dp"=2, "tp"=2>
// ONE:  #[[MESH:.*]] = #weft.mesh<>
// TEXT: #[[MESH:.*]] = #weft.mesh<"x"=2, "y"=3>
// CHECK: module attributes {weft.mesh = #[[MESH]]}

// TP:   @w ["ffn", "hidden"] {weft.pins = {{\[}}["tp"], unit]} : tensor<8x4xf64>
// BOTH: @w ["ffn", "hidden"] {weft.pins = {{\[}}["tp"], unit]} : tensor<8x4xf64>
// ONE:  @w ["ffn", "hidden"] : tensor<8x4xf64>
// TEXT: @w ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>

// A state is cut as its parameter is...
// TP:   @"adam_m/w" ["ffn", "hidden"] {weft.pins = {{\[}}["tp"], unit]}
// TEXT: @"adam_m/w" ["ffn", "hidden"] {weft.pins = [unit, []]}
weft.variable optimizer @"adam_m/w" ["ffn", "hidden"] : tensor<8x4xf64>

// ... also where the plan speaks of one value, but not where it has a home.
// TEXT: @final.norm ["hidden"] {weft.pins = {{\[}}["x"]]}
// TEXT: @"momentum/final.norm" ["hidden"] {weft.pins = {{\[}}[]]}
weft.variable parameter @final.norm ["hidden"] : tensor<4xf64>
weft.variable optimizer @"momentum/final.norm" ["hidden"] : tensor<4xf64>

// TP:   @tokens ["batch", "sequence"] {weft.pins = {{\[}}[], unit]} : tensor<1x16xi32>
// BOTH: @tokens ["batch", "sequence"] {weft.pins = {{\[}}["dp"], unit]} : tensor<4x16xi32>
// ONE:  @tokens ["batch", "sequence"] : tensor<3x16xi32>
// TEXT: @tokens ["batch", "sequence"] {weft.pins = {{\[}}["y", "x"], unit]} : tensor<6x16xi32>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x16xi32>

// Of an image a rank gets its samples, each whole.
// TP:   @images ["batch", "ffn"] {weft.pins = {{\[}}[], unit]}
weft.variable input @images ["batch", "ffn"] : tensor<?x8xf64>

// A factor goes by the names of the variables' dimensions that it is joined with, here through a
// layer: b is the batch, n is ffn. One axis does one thing: of an op whose factors would both be cut by
// x, the first is.
// The batch is known in every type.
// CHECK-LABEL: func.func @step()
// ONE:   weft.call @layer(%{{.*}}) label "" : (tensor<3x16xi32>, tensor<8x4xf64>) -> tensor<3x16x8xf64>
// CHECK-LABEL: func.func private @layer
// TP:    weft.embedding {{.*}} {weft.pins = {{\[}}["tp"], unit, [], unit]}
// TEXT:  weft.embedding {{.*}} {weft.pins = [unit, ["x"], unit, unit]}
// TP:    weft.contract "bsk,nk->bsn"{{.*}} {weft.pins = {{\[}}[], unit, unit, ["tp"]]}
// BOTH:  weft.contract "bsk,nk->bsn"{{.*}} {weft.pins = {{\[}}["dp"], unit, unit, ["tp"]]}
// ONE-NOT: weft.pins
func.func @step() {
  %0 = weft.read @tokens : tensor<?x16xi32>
  %w = weft.read @w : tensor<8x4xf64>
  %1 = weft.call @layer(%0, %w) label "" : (tensor<?x16xi32>, tensor<8x4xf64>) -> tensor<?x16x8xf64>
  return
}
func.func private @layer(%ids: tensor<?x16xi32>, %w: tensor<8x4xf64>) -> tensor<?x16x8xf64> {
  %0 = weft.embedding %w[%ids] : tensor<8x4xf64>[tensor<?x16xi32>] -> tensor<?x16x4xf64> loc("lookup")
  %1 = weft.contract "bsk,nk->bsn" (%0, %w) : (tensor<?x16x4xf64>, tensor<8x4xf64>) -> tensor<?x16x8xf64>
  return %1 : tensor<?x16x8xf64>
}
