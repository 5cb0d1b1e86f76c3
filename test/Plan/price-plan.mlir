// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: "l" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
// RUN: weft-opt %s -split-input-file -price-plan='machine="%{machine}"' 2>&1 | FileCheck %s
// RUN: not weft-opt %s -split-input-file -price-plan='machine="%{machine}" seconds=6.226575e-4 bytes=98304' 2>&1 | FileCheck %s --check-prefix=SAYS

// A layer that is called twice, on ranks of 1 Gflop/s with 1 GB/s between them. In each call each of
// 2 ranks computes half of 2 * 64 * 64 * 64 operations, 0.262144 ms, and gives half of 64 * 64 * 8 bytes
// twice to an all-reduce, 0.032768 ms; half of that is read and written by the slice, at 1 TB/s. x is
// 32768 bytes, half of w 16384, and the first call's result, which the second one uses, as much as x.

#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
#sum = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
// CHECK: remark: price-plan: 5.898895E-04 seconds; contract 5.242880E-04; tp 6.560154E-05; parameter 49152 bytes; saved 32768 bytes
// SAYS: error: price-plan: internal error: the search says 6.226575E-04 seconds and 98304 bytes, but its module takes 5.898895E-04 seconds and 81920 bytes
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf64, #whole>
  weft.variable parameter @w ["ffn", "hidden"] : tensor<64x64xf64, #columns>
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf64, #whole>
    %w = weft.read @w : tensor<64x64xf64, #columns>
    %a = weft.call @layer(%x, %w) label "" : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #columns>) -> tensor<64x64xf64, #whole>
    %b = weft.call @layer(%a, %w) label "" : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #columns>) -> tensor<64x64xf64, #whole>
    weft.assign @x, %b : tensor<64x64xf64, #whole>
    return
  }
  func.func private @layer(%x: tensor<64x64xf64, #whole>, %w: tensor<64x64xf64, #columns>) -> tensor<64x64xf64, #whole> {
    %0 = weft.reshard %x : tensor<64x64xf64, #whole> -> tensor<64x64xf64, #columns>
    %1 = weft.contract "sk,nk->sn"(%0, %w) : (tensor<64x64xf64, #columns>, tensor<64x64xf64, #columns>) -> tensor<64x64xf64, #sum>
    %2 = weft.reshard %1 : tensor<64x64xf64, #sum> -> tensor<64x64xf64, #whole>
    return %2 : tensor<64x64xf64, #whole>
  }
}

// -----

// An all-gather of 64 * 64 * 8 / 2 bytes from the other rank, 0.016384 ms, and a slice. %e is made before
// the instant of most memory, when %f is there, and used after it; it lies cut in two, and %f whole.

#mesh = #weft.mesh<"tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
#id = affine_map<(i, j) -> (i, j)>
// CHECK: remark: price-plan: {{.*}}; map {{.*}}; tp 1.641677E-05; parameter 16384 bytes; saved 49152 bytes
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf64, #rows>
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf64, #rows>
    %e = weft.map ins(%x : tensor<64x64xf64, #rows>) maps [#id] -> tensor<64x64xf64, #rows> {
    ^bb0(%s: f64):
      %t = math.exp %s : f64
      weft.yield %t : f64
    }
    %g = weft.reshard %e : tensor<64x64xf64, #rows> -> tensor<64x64xf64, #whole>
    %f = weft.map ins(%g : tensor<64x64xf64, #whole>) maps [#id] -> tensor<64x64xf64, #whole> {
    ^bb0(%s: f64):
      %t = math.exp %s : f64
      weft.yield %t : f64
    }
    %h = weft.reshard %f : tensor<64x64xf64, #whole> -> tensor<64x64xf64, #rows>
    %k = weft.map ins(%h, %e : tensor<64x64xf64, #rows>, tensor<64x64xf64, #rows>) maps [#id, #id] -> tensor<64x64xf64, #rows> {
    ^bb0(%s: f64, %r: f64):
      %t = arith.addf %s, %r : f64
      weft.yield %t : f64
    }
    weft.assign @x, %k : tensor<64x64xf64, #rows>
    return
  }
}
