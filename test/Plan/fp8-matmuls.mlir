// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F32 flops: 1e12 } peak_flops { precision: BF16 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e9
// DEFINE: %{link} = links { name: "l" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
// RUN: weft-opt %s -split-input-file -price-plan='machine="%{machine} peak_flops { precision: F8 flops: 4e9 } } %{link}" fp8-matmuls' 2>&1 | FileCheck %s
// RUN: weft-opt %s -split-input-file -price-plan='machine="%{machine} peak_flops { precision: F8 flops: 4e9 } } %{link}"' 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: weft-opt %s -split-input-file -price-plan='machine="%{machine} } %{link}" fp8-matmuls' 2>&1 | FileCheck %s --check-prefix=WIDE

// Devices compute 1 Gflop/s in bf16 and 4 in FP8, and read and write 1 GB/s. A matmul of
// 2 * 64 * 64 * 64 operations takes 0.524288 or 0.131072 ms; in front of it a kernel for each operand reads 64 * 64
// numbers of two bytes and writes as many bytes, 0.012288 ms.

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#whole = #weft.sharding<#mesh, [{}, {}]>
// CHECK: remark: price-plan: {{.*}}; contract 1.556480E-04;
// WIDE: remark: price-plan: {{.*}}; contract 5.242880E-04;
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf32, #whole>
  weft.variable parameter @m [] : tensor<f32, #scalar>
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf32, #whole>
    %m = weft.read @m : tensor<f32, #scalar>
    %q = weft.quantize e4m3 %x by %m : tensor<64x64xf32, #whole>, tensor<f32, #scalar> -> tensor<64x64xbf16, #whole>
    %y = weft.contract "sk,nk->sn"(%q, %q) : (tensor<64x64xbf16, #whole>, tensor<64x64xbf16, #whole>) -> tensor<64x64xf32, #whole>
    weft.assign @x, %y : tensor<64x64xf32, #whole>
    return
  }
}

// -----

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#sum = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
// A rank has 8 of k, which is no multiple of 16: 2 * 64 * 64 * 8 operations in bf16.
// CHECK: remark: price-plan: {{.*}}; contract 6.553600E-05;
// WIDE: remark: price-plan: {{.*}}; contract 6.553600E-05;
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x16xf32, #columns>
  weft.variable parameter @m [] : tensor<f32, #scalar>
  func.func @step() -> tensor<64x64xf32, #sum> {
    %x = weft.read @x : tensor<64x16xf32, #columns>
    %m = weft.read @m : tensor<f32, #scalar>
    %q = weft.quantize e4m3 %x by %m : tensor<64x16xf32, #columns>, tensor<f32, #scalar> -> tensor<64x16xbf16, #columns>
    %y = weft.contract "sk,nk->sn"(%q, %q) : (tensor<64x16xbf16, #columns>, tensor<64x16xbf16, #columns>) -> tensor<64x64xf32, #sum>
    return %y : tensor<64x64xf32, #sum>
  }
}

// -----

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#whole = #weft.sharding<#mesh, [{}, {}]>
// Nothing multiplies e5m2 by itself, and an operand of the other matmul is not quantized.
// CHECK: remark: price-plan: {{.*}}; contract 1.048576E-03;
// WIDE: remark: price-plan: {{.*}}; contract 1.048576E-03;
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf32, #whole>
  weft.variable parameter @m [] : tensor<f32, #scalar>
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf32, #whole>
    %m = weft.read @m : tensor<f32, #scalar>
    %q = weft.quantize e5m2 %x by %m : tensor<64x64xf32, #whole>, tensor<f32, #scalar> -> tensor<64x64xbf16, #whole>
    %y = weft.contract "sk,nk->sn"(%q, %q) : (tensor<64x64xbf16, #whole>, tensor<64x64xbf16, #whole>) -> tensor<64x64xbf16, #whole>
    %z = weft.contract "sk,nk->sn"(%q, %y) : (tensor<64x64xbf16, #whole>, tensor<64x64xbf16, #whole>) -> tensor<64x64xf32, #whole>
    weft.assign @x, %z : tensor<64x64xf32, #whole>
    return
  }
}

// -----

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
// Behind a call and a reshard, of half the rows: 0.065536 ms, and 0.006144 and 0.012288 ms for bytes.
// CHECK: remark: price-plan: {{.*}}; contract 8.396800E-05;
// WIDE: remark: price-plan: {{.*}}; contract 2.621440E-04;
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf32, #whole>
  weft.variable parameter @m [] : tensor<f32, #scalar>
  func.func @step() -> tensor<64x64xf32, #rows> {
    %x = weft.read @x : tensor<64x64xf32, #whole>
    %m = weft.read @m : tensor<f32, #scalar>
    %q = weft.quantize e4m3 %x by %m : tensor<64x64xf32, #whole>, tensor<f32, #scalar> -> tensor<64x64xbf16, #whole>
    %y = weft.call @matmul(%q) label "" : (tensor<64x64xbf16, #whole>) -> tensor<64x64xf32, #rows>
    return %y : tensor<64x64xf32, #rows>
  }
  func.func private @matmul(%q: tensor<64x64xbf16, #whole>) -> tensor<64x64xf32, #rows> {
    %p = weft.reshard %q : tensor<64x64xbf16, #whole> -> tensor<64x64xbf16, #rows>
    %y = weft.contract "sk,kn->sn"(%p, %q) : (tensor<64x64xbf16, #rows>, tensor<64x64xbf16, #whole>) -> tensor<64x64xf32, #rows>
    return %y : tensor<64x64xf32, #rows>
  }
}

// -----

#mesh = #weft.mesh<"tp"=2>
#scalar = #weft.sharding<#mesh, []>
#whole = #weft.sharding<#mesh, [{}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#sum = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
// Of what was joined, a part behind a reshard is what it was: 2 * 64 * 64 * 32 operations in 0.065536 ms, and 0.006144 ms
// for the bytes of each operand.
// CHECK: remark: price-plan: {{.*}}; contract 7.782400E-05;
// WIDE: remark: price-plan: {{.*}}; contract 2.621440E-04;
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf32, #whole>
  weft.variable parameter @m [] : tensor<f32, #scalar>
  func.func @step() -> tensor<64x64xf32, #sum> {
    %x = weft.read @x : tensor<64x64xf32, #whole>
    %m = weft.read @m : tensor<f32, #scalar>
    %q = weft.quantize e4m3 %x by %m : tensor<64x64xf32, #whole>, tensor<f32, #scalar> -> tensor<64x64xbf16, #whole>
    %c = weft.concat %q, %q dim 0 : tensor<64x64xbf16, #whole>, tensor<64x64xbf16, #whole> -> tensor<128x64xbf16, #whole>
    %r = weft.reshard %c : tensor<128x64xbf16, #whole> -> tensor<128x64xbf16, #columns>
    %s:2 = weft.split %r dim 0 : tensor<128x64xbf16, #columns> -> tensor<64x64xbf16, #columns>, tensor<64x64xbf16, #columns>
    %y = weft.contract "sk,nk->sn"(%s#0, %s#1) : (tensor<64x64xbf16, #columns>, tensor<64x64xbf16, #columns>) -> tensor<64x64xf32, #sum>
    return %y : tensor<64x64xf32, #sum>
  }
}
