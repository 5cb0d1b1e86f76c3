// RUN: weft-opt %s -accumulate-micro-batches="accumulation=2 samples=8" -substitute-batch="batch=4" -apply-plan="pins=dp=2,zero=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: weft-opt %s -accumulate-micro-batches="accumulation=2 samples=8" -substitute-batch="batch=4" -apply-plan="pins=dp=2,zero=2" | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: weft-opt %s -accumulate-micro-batches="accumulation=2 samples=8" -substitute-batch="batch=4" -apply-plan="pins=dp=2,zero=3" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: weft-opt %s -accumulate-micro-batches="accumulation=2 samples=8" -substitute-batch="batch=4" -apply-plan="pins=dp=2,zero=1" -resolve-constraints -search-shardings | FileCheck %s --check-prefix=FOUND

// The values that have homes beside variables: the rounded copies of parameters and sums of gradients. @n is
// read as it is, so the variable itself has the home of its name.

// ONE:   @w ["ffn", "hidden"] {weft.pins = {{\[}}[], ["dp"]]}
// TWO:   @w ["ffn", "hidden"] {weft.pins = {{\[}}[], ["dp"]]}
// THREE: @w ["ffn", "hidden"] {weft.pins = {{\[}}[], ["dp"]]}
// ONE:   @n ["hidden"] {weft.pins = {{\[}}[]]}
// TWO:   @n ["hidden"] {weft.pins = {{\[}}[]]}
// THREE: @n ["hidden"] {weft.pins = {{\[}}["dp"]]}
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf32>
weft.variable parameter @n ["hidden"] : tensor<4xf32>
weft.variable input @x ["batch", "feature"] : tensor<?x4xf32>

// Each micro-batch reads the same copy; from stage 2 on sums of gradients are cut, and before they are whole.
// CHECK-LABEL: func.func private @step_micro_batch(%{{[a-z0-9]+}}: index
// ONE-SAME:    tensor<8x4xf32> {weft.may_pend, weft.pins = {{\[}}[], [], {all = ["dp"]}]}
// TWO-SAME:    tensor<8x4xf32> {weft.may_pend, weft.pins = {{\[}}[], ["dp"]]}
// THREE-SAME:  tensor<8x4xf32> {weft.may_pend, weft.pins = {{\[}}[], ["dp"]]}
// CHECK-SAME:  %[[COPY:[a-z0-9]+]]: tensor<8x4xbf16>)
// CHECK:         weft.contract "bk,nk->bn"(%{{.*}}, %[[COPY]])
// CHECK-NOT:     arith.truncf

// CHECK-LABEL: func.func @step
// CHECK:         arith.truncf
// ONE:           %[[HELD:.*]] = weft.constrain %{{.*}} {{\[}}[], []]
// TWO:           %[[HELD:.*]] = weft.constrain %{{.*}} {{\[}}[], []]
// THREE:         %[[HELD:.*]] = weft.constrain %{{.*}} {{\[}}[], ["dp"]]
// CHECK:         weft.call @step_micro_batch({{.*}}, %[[HELD]]) label "micro-batch 0"
// CHECK:         weft.call @step_micro_batch({{.*}}, %[[HELD]]) label "micro-batch 1"

// A master's shard is rounded before it is gathered, once for all micro-batches, and the sum stays pending
// until the last one.
// FOUND-LABEL: func.func private @step_micro_batch
// FOUND-SAME:    tensor<8x4xf32, #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp"}>>
// FOUND-SAME:    tensor<8x4xbf16, #weft.sharding<#mesh, [{}, {}]>>)
// FOUND-LABEL: func.func @step
// FOUND:         %[[SHARD:.*]] = weft.read @w : tensor<8x4xf32, #weft.sharding<#mesh, [{}, {"dp"}]>>
// FOUND:         %[[ROUNDED:.*]] = weft.map ins(%[[SHARD]] : {{.*}} -> tensor<8x4xbf16, #weft.sharding<#mesh, [{}, {"dp"}]>>
// FOUND:         %[[WHOLE:.*]] = weft.reshard %[[ROUNDED]] : {{.*}} -> tensor<8x4xbf16, #weft.sharding<#mesh, [{}, {}]>>
// FOUND:         weft.constrain %[[WHOLE]]
// FOUND:         weft.call @step_micro_batch{{.*}} label "micro-batch 1"
// FOUND-NOT:     weft.call
// FOUND:         weft.reshard %{{.*}} : {{.*}}unreduced = sum{"dp"}>> -> tensor<8x4xf32, #weft.sharding<#mesh, [{}, {"dp"}]>>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  %w = weft.read @w : tensor<8x4xf32>
  %n = weft.read @n : tensor<4xf32>
  %copy = weft.map ins(%w : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x4xbf16> {
  ^bb0(%a: f32):
    %b = arith.truncf %a : f32 to bf16
    weft.yield %b : bf16
  }
  %scaled = weft.map ins(%x, %n : tensor<?x4xf32>, tensor<4xf32>) maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<?x4xbf16> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.truncf %d : f32 to bf16
    weft.yield %e : bf16
  }
  %y = weft.contract "bk,nk->bn"(%scaled, %copy) : (tensor<?x4xbf16>, tensor<8x4xbf16>) -> tensor<?x8xbf16>
  %g = weft.contract "bn,bk->nk"(%y, %scaled) : (tensor<?x8xbf16>, tensor<?x4xbf16>) -> tensor<8x4xf32>
  weft.observe "gradient/w", %g : tensor<8x4xf32>
  %new = weft.map ins(%w, %g : tensor<8x4xf32>, tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    weft.yield %c : f32
  }
  weft.assign @w, %new : tensor<8x4xf32>
  return
}
