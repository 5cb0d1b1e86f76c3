// A launch takes 1 us, a kernel moves 2e11 bytes per second.
// DEFINE: %{device} = device { name: \"d\" peak_flops { precision: F32 flops: 1e12 } memory_bandwidth_bytes_per_second: 2e11 measured { launch_seconds: 1e-6 } memory_bytes:
// DEFINE: %{machine} = version: 1 name: \"m\" nodes: 1 devices_per_node: 4 links { name: \"in\" scope: NODE latency_seconds: 1e-5 bandwidth_bytes_per_second: 1e10 } %{device}
// RUN: weft-opt %s -split-input-file -pack-collectives="machine='%{machine} 1073741824 }'" | FileCheck %s
// RUN: weft-opt %s -split-input-file -pack-collectives | FileCheck %s --check-prefix=NONE
// RUN: not weft-opt %s -split-input-file -pack-collectives="machine='version: 2'" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED

// Without a machine, the pass has no times to compare.
// NONE-NOT: weft.contract

// REFUSED: pack-collectives: machine:1:{{.*}}version

// The example of the pass's description.
#mesh = #weft.mesh<"dp"=2>
// CHECK-LABEL: @description
// CHECK-SAME:    %[[X:.*]]: tensor<256x8xf32>
// CHECK-NEXT:    %[[A:.*]] = weft.reshape %[[X]] {{\[}}[0, 1]] : tensor<256x8xf32> -> tensor<2048xf32>
// CHECK-NEXT:    %[[B:.*]] = weft.reshape %[[A]] {{\[}}[0, 1]] : tensor<2048xf32> -> tensor<1x2048xf32>
// CHECK-NEXT:    %[[C:.*]] = weft.all_gather %[[B]] dim 0 over ["dp"] of #mesh : tensor<1x2048xf32> -> tensor<2x2048xf32>
// CHECK-NEXT:    %[[D:.*]] = weft.reshape %[[C]] {{\[}}[0, 1]] : tensor<2x2048xf32> -> tensor<4096xf32>
// CHECK-NEXT:    %[[E:.*]] = weft.reshape %[[D]] {{\[}}[0, 1, 2]] : tensor<4096xf32> -> tensor<2x256x8xf32>
// CHECK-NEXT:    %[[F:.*]] = weft.contract "abc->bac"(%[[E]]) : (tensor<2x256x8xf32>) -> tensor<256x2x8xf32>
// CHECK-NEXT:    %[[G:.*]] = weft.reshape %[[F]] {{\[}}[0, 1, 2]] : tensor<256x2x8xf32> -> tensor<4096xf32>
// CHECK-NEXT:    %[[H:.*]] = weft.reshape %[[G]] {{\[}}[0, 1]] : tensor<4096xf32> -> tensor<256x16xf32>
// CHECK-NEXT:    return %[[H]]
func.func private @description(%x: tensor<256x8xf32>) -> tensor<256x16xf32> {
  %0 = weft.all_gather %x dim 1 over ["dp"] of #mesh : tensor<256x8xf32> -> tensor<256x16xf32>
  return %0 : tensor<256x16xf32>
}

// -----

// What a rank is to get becomes a row before.
#mesh = #weft.mesh<"dp"=4>
// CHECK-LABEL: @scatter
// CHECK:         weft.contract "abc->bac"({{.*}}) : (tensor<96x4x6xf32>) -> tensor<4x96x6xf32>
// CHECK:         weft.reduce_scatter sum %{{.*}} dim 0 {{.*}} : tensor<4x576xf32> -> tensor<1x576xf32>
// CHECK-NOT:     weft.contract
// CHECK:         -> tensor<32x3x2x3xf32>
// CHECK-NEXT:    return
func.func private @scatter(%x: tensor<32x3x8x3xf32>) -> tensor<32x3x2x3xf32> {
  %0 = weft.reduce_scatter sum %x dim 2 over ["dp"] of #mesh : tensor<32x3x8x3xf32> -> tensor<32x3x2x3xf32>
  return %0 : tensor<32x3x2x3xf32>
}

// -----

// An all-to-all has shards on both sides.
#mesh = #weft.mesh<"cp"=2>
// CHECK-LABEL: @both_sides
// CHECK:         weft.contract "abc->bac"({{.*}}) : (tensor<64x2x8xf32>) -> tensor<2x64x8xf32>
// CHECK:         %[[IN:.*]] = weft.reshape {{.*}} -> tensor<2x1x512xf32>
// CHECK:         %[[OUT:.*]] = weft.all_to_all %[[IN]] split 0 concat 1 over ["cp"] of #mesh : tensor<2x1x512xf32> -> tensor<1x2x512xf32>
// CHECK:         weft.contract "abc->bac"({{.*}}) : (tensor<2x4x128xf32>) -> tensor<4x2x128xf32>
// CHECK:         -> tensor<4x32x4x2xf32>
// CHECK-NEXT:    return
func.func private @both_sides(%x: tensor<4x16x8x2xf32>) -> tensor<4x32x4x2xf32> {
  %0 = weft.all_to_all %x split 2 concat 1 over ["cp"] of #mesh : tensor<4x16x8x2xf32> -> tensor<4x32x4x2xf32>
  return %0 : tensor<4x32x4x2xf32>
}

// -----

// Few parts, which are calls of their own; parts that take long to move; whole shards; what is not cut; integers.
#mesh = #weft.mesh<"dp"=2>
// CHECK-LABEL: @stay
// CHECK-NOT:     weft.contract
// CHECK-NOT:     weft.reshape
// CHECK:         return
func.func private @stay(%a: tensor<2x8xf32>, %b: tensor<64x65536xf32>, %c: tensor<1x8xf32>, %d: tensor<256x8xf32>, %e: tensor<256x8xi32>)
    -> (tensor<2x16xf32>, tensor<64x131072xf32>, tensor<1x16xf32>, tensor<256x8xf32>, tensor<256x16xi32>) {
  %0 = weft.all_gather %a dim 1 over ["dp"] of #mesh : tensor<2x8xf32> -> tensor<2x16xf32>
  %1 = weft.all_gather %b dim 1 over ["dp"] of #mesh : tensor<64x65536xf32> -> tensor<64x131072xf32>
  %2 = weft.all_gather %c dim 1 over ["dp"] of #mesh : tensor<1x8xf32> -> tensor<1x16xf32>
  %3 = weft.all_reduce sum %d over ["dp"] of #mesh : tensor<256x8xf32> -> tensor<256x8xf32>
  %4 = weft.all_gather %e dim 1 over ["dp"] of #mesh : tensor<256x8xi32> -> tensor<256x16xi32>
  return %0, %1, %2, %3, %4 : tensor<2x16xf32>, tensor<64x131072xf32>, tensor<1x16xf32>, tensor<256x8xf32>, tensor<256x16xi32>
}
