// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: "l" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
// DEFINE: %{plan} = version: 1 mesh { axis { name: "tp" size: 2 } } sharding { value: "y" dimension: "ffn" axes: "tp" }
// RUN: weft-opt %s -apply-plan='origins plan={%{plan}}' -resolve-constraints -search-shardings='why machine={%{machine}}' | FileCheck %s
// RUN: weft-opt %s -apply-plan='plan={%{plan}}' -resolve-constraints -search-shardings='why' | FileCheck %s --check-prefix=BYTES
// RUN: weft-opt %s -apply-plan='plan={%{plan}}' -resolve-constraints -search-shardings | FileCheck %s --check-prefix=NONE

// Every decision states its reason if asked for: the pin or constraint that sets it, that
// it has no choice, or what the next best way would take while nothing else moves.

// CHECK: @w ["ffn", "hidden"] {weft.why = "chosen for {{[0-9.]+}} us here; {{.*}} would take {{[0-9.]+}} us more{{.*}}"} :
// CHECK: @odd ["heads"] {weft.why = "the only way that is allowed"} :
// CHECK: func.func private @layer(%{{.*}} {weft.why = "{{.*}}"}
// CHECK-LABEL: func.func @step
// CHECK: weft.contract "bk,nk->bn"{{.*}}weft.why = "pinned by plan:1:{{[0-9]+}}: { value: \22y\22 dimension: \22ffn\22 axes: [\22tp\22] }; of what that leaves open, chosen for {{[0-9.]+}} ms here; {{.*}}"
// CHECK: weft.constrain {{.*}} {weft.why = "constrained"}

// BYTES: @w ["ffn", "hidden"] {weft.why = "chosen for {{[0-9]+}} bytes here; {{.*}} would take {{[0-9]+}} bytes more
// BYTES: weft.contract "bk,nk->bn"{{.*}}weft.why = "pinned by the plan

// NONE-NOT: weft.why
// NONE-NOT: weft.pinned_by

weft.variable parameter @w ["ffn", "hidden"] : tensor<64x32xf64>
weft.variable parameter @odd ["heads"] : tensor<3xf64>
func.func private @layer(%y: tensor<128x64xf64>) -> tensor<128x64xf64> {
  %0 = weft.map ins(%y : tensor<128x64xf64>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<128x64xf64> {
  ^bb0(%a: f64):
    %b = math.exp %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<128x64xf64>
}
func.func @step() {
  %x = weft.fill constant 1.0 : tensor<128x32xf64>
  %w = weft.read @w : tensor<64x32xf64>
  %y = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<128x32xf64>, tensor<64x32xf64>) -> tensor<128x64xf64> loc("y")
  %z = weft.constrain %y [[], []] : tensor<128x64xf64>
  %l = weft.call @layer(%z) label "layers.0" : (tensor<128x64xf64>) -> tensor<128x64xf64>
  weft.observe "l", %l : tensor<128x64xf64>
  %odd = weft.read @odd : tensor<3xf64>
  weft.observe "odd", %odd : tensor<3xf64>
  return
}
