// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 4 device { name: "d" peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: "l" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
// RUN: weft-opt %s -price-plan='machine="%{machine}"' 2>&1 | FileCheck %s

// Two stages of 2 ranks each, and two micro-batches. A matmul of whole tensors is 2 * 64 * 64 * 64
// operations, 0.524288 ms on a rank of 1 Gflop/s, and one cut in two takes half of it. A whole tensor
// has 32768 bytes, one cut in two 16384. Stage 0 keeps the result of its forward, cut in two, for its
// backward; stage 1 keeps what it receives, made whole by an all-gather of 0.016 ms, and its result.
// Forward of stage 0 has the slice of x for itself, backward the product that it adds to its sum. A
// stage holds its variables and its sum; @x is read in place.

#mesh = #weft.mesh<"tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#id = affine_map<(i, j) -> (i, j)>
// CHECK: remark: price-plan: {{.*}}; chunk 0 of stage 0 keeps 16384 bytes, forward 2.621768E-04 seconds 16384 bytes, backward 5.283840E-04 seconds 32768 bytes, inputs 0.000000E+00 seconds, weights 5.283840E-04 seconds, for which 0 bytes are kept; chunk 1 of stage 1 keeps 65536 bytes, forward 5.406720E-04 seconds 0 bytes, backward 1.052672E-03 seconds 32768 bytes, inputs 5.242880E-04 seconds, weights 5.283840E-04 seconds, for which 65536 bytes are kept; stage 0 once 3.276800E-08 seconds, holds 98304 bytes; stage 1 once 3.276800E-08 seconds, holds 65536 bytes
module attributes {weft.mesh = #mesh} {
  weft.variable input @x ["sequence", "hidden"] {weft.stage = 0 : i64} : tensor<64x64xf64, #whole>
  weft.variable parameter @w0 ["ffn", "hidden"] {weft.stage = 0 : i64} : tensor<64x64xf64, #whole>
  weft.variable parameter @w1 ["ffn", "hidden"] {weft.stage = 1 : i64} : tensor<64x64xf64, #whole>
  func.func private @forward_0(%x: tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #rows> attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %w = weft.read @w0 : tensor<64x64xf64, #whole>
    %s = weft.reshard %x : tensor<64x64xf64, #whole> -> tensor<64x64xf64, #rows>
    %0 = weft.contract "sk,nk->sn"(%s, %w) : (tensor<64x64xf64, #rows>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #rows>
    return %0 : tensor<64x64xf64, #rows>
  }
  func.func private @forward_1(%a: tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole> attributes {weft.micro_batch, weft.stage = 1 : i64} {
    %w = weft.read @w1 : tensor<64x64xf64, #whole>
    %0 = weft.contract "sk,nk->sn"(%a, %w) : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    return %0 : tensor<64x64xf64, #whole>
  }
  func.func private @backward_1(%sum: tensor<64x64xf64, #whole>, %a: tensor<64x64xf64, #whole>, %y: tensor<64x64xf64, #whole>) -> (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) attributes {weft.micro_batch, weft.stage = 1 : i64} {
    %w = weft.read @w1 : tensor<64x64xf64, #whole>
    %d = weft.contract "sn,sk->nk"(%y, %a) : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    %next = weft.map ins(%sum, %d : tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) maps [#id, #id] -> tensor<64x64xf64, #whole> {
    ^bb0(%s: f64, %t: f64):
      %u = arith.addf %s, %t : f64
      weft.yield %u : f64
    }
    %g = weft.contract "sn,nk->sk"(%y, %w) : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    return %next, %g : tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>
  }
  func.func private @backward_0(%sum: tensor<64x64xf64, #whole>, %a: tensor<64x64xf64, #rows>, %g: tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole> attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %d = weft.contract "sn,sk->nk"(%g, %g) : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    %next = weft.map ins(%sum, %d : tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) maps [#id, #id] -> tensor<64x64xf64, #whole> {
    ^bb0(%s: f64, %t: f64):
      %u = arith.addf %s, %t : f64
      weft.yield %u : f64
    }
    return %next : tensor<64x64xf64, #whole>
  }
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf64, #whole>
    %z0 = weft.map maps [] {weft.stage = 0 : i64} -> tensor<64x64xf64, #whole> {
    ^bb0:
      %c = arith.constant 0.0 : f64
      weft.yield %c : f64
    }
    %z1 = weft.map maps [] {weft.stage = 1 : i64} -> tensor<64x64xf64, #whole> {
    ^bb0:
      %c = arith.constant 0.0 : f64
      weft.yield %c : f64
    }
    %a0 = weft.call @forward_0(%x) label "" {weft.stage = 0 : i64} : (tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #rows>
    %t0 = weft.transfer %a0 from 0 to 1 : tensor<64x64xf64, #rows>
    %b0 = weft.reshard %t0 : tensor<64x64xf64, #rows> -> tensor<64x64xf64, #whole>
    %y0 = weft.call @forward_1(%b0) label "" {weft.stage = 1 : i64} : (tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    %s0, %g0 = weft.call @backward_1(%z1, %b0, %y0) label "" {weft.stage = 1 : i64} : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>)
    %h0 = weft.transfer %g0 from 1 to 0 : tensor<64x64xf64, #whole>
    %r0 = weft.call @backward_0(%z0, %a0, %h0) label "" {weft.stage = 0 : i64} : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #rows>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    %a1 = weft.call @forward_0(%x) label "" {weft.stage = 0 : i64} : (tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #rows>
    %t1 = weft.transfer %a1 from 0 to 1 : tensor<64x64xf64, #rows>
    %b1 = weft.reshard %t1 : tensor<64x64xf64, #rows> -> tensor<64x64xf64, #whole>
    %y1 = weft.call @forward_1(%b1) label "" {weft.stage = 1 : i64} : (tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    %s1, %g1 = weft.call @backward_1(%s0, %b1, %y1) label "" {weft.stage = 1 : i64} : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>) -> (tensor<64x64xf64, #whole>, tensor<64x64xf64, #whole>)
    %h1 = weft.transfer %g1 from 1 to 0 : tensor<64x64xf64, #whole>
    %r1 = weft.call @backward_0(%r0, %a1, %h1) label "" {weft.stage = 0 : i64} : (tensor<64x64xf64, #whole>, tensor<64x64xf64, #rows>, tensor<64x64xf64, #whole>) -> tensor<64x64xf64, #whole>
    weft.assign @w0, %r1 {weft.stage = 0 : i64} : tensor<64x64xf64, #whole>
    weft.assign @w1, %s1 {weft.stage = 1 : i64} : tensor<64x64xf64, #whole>
    return
  }
}
