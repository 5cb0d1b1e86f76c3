// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F32 flops: 1e12 } peak_flops { precision: BF16 flops: 1e9 } peak_flops { precision: F8 flops: 4e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e9 } links { name: "l" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
// RUN: weft-opt %s -search-shardings='machine="%{machine}" fp8-matmuls' -verify-plan | FileCheck %s
// RUN: weft-opt %s -search-shardings='machine="%{machine}"' -verify-plan | FileCheck %s --check-prefix=WIDE

// In bf16 each rank does half of a matmul of 8192 operations, in 4 us, since nothing takes long on the way to the
// other. Of bytes, whose sizes have to be multiples of 16, there are no halves: each rank does all, in 2 us, and in
// 1.5 us the bytes.

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<16x16xf32, #whole>
  weft.variable parameter @m [] : tensor<f32, #scalar>

  // CHECK: weft.contract {{.*}} -> tensor<16x16xf32, {{.*}}[{}, {}]>>
  // WIDE-NOT: weft.contract {{.*}} -> tensor<16x16xf32, {{.*}}[{}, {}]>>
  // WIDE: weft.contract
  func.func @step() {
    %x = weft.read @x : tensor<16x16xf32>
    %m = weft.read @m : tensor<f32>
    %q = weft.quantize e4m3 %x by %m : tensor<16x16xf32>, tensor<f32> -> tensor<16x16xbf16>
    %y = weft.contract "sk,nk->sn"(%q, %q)
        : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xf32>
    weft.assign @x, %y : tensor<16x16xf32>
    return
  }
}
