// A node of 4 ranks, of which two meet in 10 us; a link moves 1e10 bytes per second, a kernel that copies
// takes 1 us and 2e11 bytes per second.
// DEFINE: %{device} = device { name: \"d\" peak_flops { precision: F32 flops: 1e12 } memory_bandwidth_bytes_per_second: 2e11 measured { launch_seconds: 1e-6 } memory_bytes:
// DEFINE: %{machine} = version: 1 name: \"m\" nodes: 1 devices_per_node: 4 links { name: \"in\" scope: NODE latency_seconds: 1e-5 bandwidth_bytes_per_second: 1e10 } %{device}
// RUN: weft-opt %s -split-input-file -bucket-collectives="machine='%{machine} 1073741824 }'" | FileCheck %s
// RUN: weft-opt %s -split-input-file -bucket-collectives="machine='%{machine} 1048576 }'" \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: weft-opt %s -split-input-file -bucket-collectives | FileCheck %s --check-prefix=NONE
// RUN: not weft-opt %s -split-input-file -bucket-collectives="machine='version: 2'" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED

// Without a machine, the pass has no times to compare.
// NONE-NOT: weft.concat

// REFUSED: bucket-collectives: machine:1:{{.*}}version

// The example of the pass's description.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @description
  // CHECK-SAME:    %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<4x3xf32>
  // CHECK-NEXT:    %[[A1:.*]] = weft.reshape %[[A]] {{\[}}[0, 1]] : tensor<8xf32> -> tensor<2x4xf32>
  // CHECK-NEXT:    %[[B1:.*]] = weft.reshape %[[B]] {{\[}}[0, 1]] : tensor<4x3xf32> -> tensor<12xf32>
  // CHECK-NEXT:    %[[B2:.*]] = weft.reshape %[[B1]] {{\[}}[0, 1]] : tensor<12xf32> -> tensor<2x6xf32>
  // CHECK-NEXT:    %[[IN:.*]] = weft.concat %[[A1]], %[[B2]] dim 1 : tensor<2x4xf32>, tensor<2x6xf32> -> tensor<2x10xf32>
  // CHECK-NEXT:    %[[OUT:.*]] = weft.reduce_scatter sum %[[IN]] dim 0 over ["dp"] of #mesh : tensor<2x10xf32> -> tensor<1x10xf32>
  // CHECK-NEXT:    %[[PARTS:.*]]:2 = weft.split %[[OUT]] dim 1 : tensor<1x10xf32> -> tensor<1x4xf32>, tensor<1x6xf32>
  // CHECK-NEXT:    %[[C:.*]] = weft.reshape %[[PARTS]]#0 {{\[}}[0, 1]] : tensor<1x4xf32> -> tensor<4xf32>
  // CHECK-NEXT:    %[[D1:.*]] = weft.reshape %[[PARTS]]#1 {{\[}}[0, 1]] : tensor<1x6xf32> -> tensor<6xf32>
  // CHECK-NEXT:    %[[D:.*]] = weft.reshape %[[D1]] {{\[}}[0, 1]] : tensor<6xf32> -> tensor<2x3xf32>
  // CHECK-NEXT:    return %[[C]], %[[D]]
  func.func private @description(%a: tensor<8xf32>, %b: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>) {
    %0 = weft.reduce_scatter sum %a dim 0 over ["dp"] of #mesh : tensor<8xf32> -> tensor<4xf32>
    %1 = weft.reduce_scatter sum %b dim 0 over ["dp"] of #mesh : tensor<4x3xf32> -> tensor<2x3xf32>
    return %0, %1 : tensor<4xf32>, tensor<2x3xf32>
  }
}

// -----

// Shares along an inner dimension are put in rows, and back.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @inner_dimensions
  // CHECK:         weft.contract "abc->bac"({{.*}}) : (tensor<3x2x2xf32>) -> tensor<2x3x2xf32>
  // CHECK:         weft.reduce_scatter sum %{{.*}} dim 0 {{.*}} : tensor<2x10xf32> -> tensor<1x10xf32>
  // CHECK-NOT:     weft.reduce_scatter
  // CHECK:         weft.all_gather %{{.*}} dim 0 {{.*}} : tensor<1x10xf32> -> tensor<2x10xf32>
  // CHECK-NOT:     weft.all_gather
  // CHECK:         weft.contract "abc->bac"({{.*}}) : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
  // CHECK:         return
  func.func private @inner_dimensions(%a: tensor<3x4xf32>, %b: tensor<1x8xf32>, %c: tensor<3x2xf32>, %d: tensor<4xf32>)
      -> (tensor<3x2xf32>, tensor<1x4xf32>, tensor<3x4xf32>, tensor<8xf32>) {
    %0 = weft.reduce_scatter sum %a dim 1 over ["dp"] of #mesh : tensor<3x4xf32> -> tensor<3x2xf32>
    %1 = weft.reduce_scatter sum %b dim 1 over ["dp"] of #mesh : tensor<1x8xf32> -> tensor<1x4xf32>
    %2 = weft.all_gather %c dim 1 over ["dp"] of #mesh : tensor<3x2xf32> -> tensor<3x4xf32>
    %3 = weft.all_gather %d dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
    return %0, %1, %2, %3 : tensor<3x2xf32>, tensor<1x4xf32>, tensor<3x4xf32>, tensor<8xf32>
  }
}

// -----

// A large one stays alone, and others are joined past it.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @large_stays
  // CHECK:         weft.all_reduce sum {{.*}} : tensor<1048576xf32>
  // CHECK:         weft.all_reduce sum {{.*}} : tensor<1x24xf32>
  // CHECK-NOT:     weft.all_reduce
  // CHECK:         return
  func.func private @large_stays(%a: tensor<8xf32>, %b: tensor<1048576xf32>, %c: tensor<4x4xf32>)
      -> (tensor<8xf32>, tensor<1048576xf32>, tensor<4x4xf32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %1 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<1048576xf32> -> tensor<1048576xf32>
    %2 = weft.all_reduce sum %c over ["dp"] of #mesh : tensor<4x4xf32> -> tensor<4x4xf32>
    return %0, %1, %2 : tensor<8xf32>, tensor<1048576xf32>, tensor<4x4xf32>
  }
}

// -----

// Other axes, another reduction, another type: of another kind each. A single number is left alone.
#mesh = #weft.mesh<"dp"=2, "tp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @kinds
  // CHECK-NOT:     weft.concat
  // CHECK:         return
  func.func private @kinds(%a: tensor<8xf32>, %b: tensor<8xbf16>, %c: tensor<f32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %1 = weft.all_reduce sum %a over ["tp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %2 = weft.all_reduce max %a over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %3 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<8xbf16> -> tensor<8xbf16>
    %4 = weft.reduce_scatter sum %a dim 0 over ["dp"] of #mesh : tensor<8xf32> -> tensor<4xf32>
    %5 = weft.all_reduce sum %c over ["dp"] of #mesh : tensor<f32> -> tensor<f32>
    %6 = weft.all_reduce sum %c over ["dp"] of #mesh : tensor<f32> -> tensor<f32>
    return
  }
}

// -----

// Two reductions in each of two groups of ranks. What is done with the first's result alone waits,
// reductions after it among them, which are then joined in turn; observations keep their order.
#mesh = #weft.mesh<"dp"=2, "fsdp"=2>
#whole = #weft.sharding<#mesh, [{"fsdp"}]>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @chains
  // CHECK:         weft.reduce_scatter sum {{.*}} over ["fsdp"] of #mesh : tensor<2x8xf32> -> tensor<1x8xf32>
  // CHECK:         weft.all_reduce sum {{.*}} over ["dp"] of #mesh : tensor<1x8xf32> -> tensor<1x8xf32>
  // CHECK:         weft.observe "gradient/a"
  // CHECK:         weft.observe "gradient/b"
  // CHECK:         return
  func.func private @chains(%a: tensor<8xf32>, %b: tensor<8xf32>) {
    %0 = weft.reduce_scatter sum %a dim 0 over ["fsdp"] of #mesh : tensor<8xf32> -> tensor<4xf32>
    %1 = weft.all_reduce sum %0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
    weft.observe "gradient/a", %1 layout tensor<8xf32, #whole> : tensor<4xf32>
    %2 = weft.reduce_scatter sum %b dim 0 over ["fsdp"] of #mesh : tensor<8xf32> -> tensor<4xf32>
    %3 = weft.all_reduce sum %2 over ["dp"] of #mesh : tensor<4xf32> -> tensor<4xf32>
    weft.observe "gradient/b", %3 layout tensor<8xf32, #whole> : tensor<4xf32>
    return
  }
}

// -----

// What needs a result together with anything else does not wait, nor does what is not pure; so
// parameters are gathered before each layer, and not all at once.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @uses
  // CHECK:         weft.all_gather {{.*}} : tensor<1x8xf32> -> tensor<2x8xf32>
  // CHECK:         weft.call @layer
  // CHECK:         weft.all_gather {{.*}} : tensor<4xf32> -> tensor<8xf32>
  // CHECK:         weft.call @layer
  // CHECK:         return
  func.func private @uses(%x: tensor<8xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<8xf32> {
    %0 = weft.all_gather %a dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
    %1 = weft.all_gather %b dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
    %2 = weft.call @layer(%x, %0, %1) label "layers.0" : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = weft.all_gather %c dim 0 over ["dp"] of #mesh : tensor<4xf32> -> tensor<8xf32>
    %4 = weft.call @layer(%2, %3, %3) label "layers.1" : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %4 : tensor<8xf32>
  }
  func.func private @layer(%x: tensor<8xf32>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
  // CHECK-LABEL: @needs
  // CHECK-NOT:     weft.concat
  // CHECK:         return
  func.func private @needs(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %1 = weft.all_reduce sum %0 over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// Beside what the function holds, and those that call it, there must be room for copies: 16 KiB each
// of operands, results and the bucket's two, while the caller waits with 940 kB for the end.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @outer
  // SMALL-LABEL: @outer
  func.func private @outer(%a: tensor<4096xf32>) -> (tensor<235000xf32>, tensor<4096xf32>, tensor<4096xf32>) {
    %0 = weft.map maps [] -> tensor<235000xf32> {
      %2 = arith.constant 0.0 : f32
      weft.yield %2 : f32
    }
    %1:2 = weft.call @inner(%a, %a) label "inner" : (tensor<4096xf32>, tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>)
    return %0, %1#0, %1#1 : tensor<235000xf32>, tensor<4096xf32>, tensor<4096xf32>
  }
  // CHECK-LABEL: @inner
  // CHECK:         weft.all_reduce sum {{.*}} : tensor<1x8192xf32>
  // SMALL-LABEL: @inner
  // SMALL-COUNT-2: weft.all_reduce sum {{.*}} : tensor<4096xf32>
  func.func private @inner(%a: tensor<4096xf32>, %b: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %1 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    return %0, %1 : tensor<4096xf32>, tensor<4096xf32>
  }
  // By itself it has room enough.
  // SMALL-LABEL: @alone
  // SMALL:         weft.all_reduce sum {{.*}} : tensor<1x8192xf32>
  func.func private @alone(%a: tensor<4096xf32>, %b: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %1 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    return %0, %1 : tensor<4096xf32>, tensor<4096xf32>
  }
}

// -----

// A bucket ends where its members take a tenth of the memory, 32 KiB each, so that its results can be used beside
// the next.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @ends
  // CHECK:         weft.all_reduce sum {{.*}} : tensor<1x24576xf32>
  // SMALL-LABEL: @ends
  // SMALL:         weft.all_reduce sum {{.*}} : tensor<1x16384xf32>
  // SMALL:         weft.all_reduce sum {{.*}} : tensor<1x8192xf32>
  func.func private @ends(%a: tensor<4096xf32>, %b: tensor<4096xf32>, %c: tensor<4096xf32>, %d: tensor<4096xf32>, %e: tensor<4096xf32>, %f: tensor<4096xf32>)
      -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %1 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %2 = weft.all_reduce sum %c over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %3 = weft.all_reduce sum %d over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %4 = weft.all_reduce sum %e over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    %5 = weft.all_reduce sum %f over ["dp"] of #mesh : tensor<4096xf32> -> tensor<4096xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
  }
}

// -----

// What verify-schedule refuses later, a function that calls itself, does no harm.
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  // CHECK-LABEL: @itself
  // CHECK:         weft.all_reduce sum {{.*}} : tensor<1x16xf32>
  func.func private @itself(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %0 = weft.all_reduce sum %a over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %1 = weft.all_reduce sum %b over ["dp"] of #mesh : tensor<8xf32> -> tensor<8xf32>
    %2:2 = weft.call @itself(%0, %1) label "again" : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %2#0, %2#1 : tensor<8xf32>, tensor<8xf32>
  }
}
