// RUN: weft-opt %s --split-input-file --fuse-launches | FileCheck %s

// The example of the pass's description: the norm's gradient adds that of the residual, which the
// result replaces, and in another function it also sums the gradients of its result.
module attributes {weft.target = "cuda"} {
// CHECK-LABEL: func.func private @residual(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16xbf16>, %[[S:[^:]*]]: tensor<16xf32>, %[[G:[^:]*]]: tensor<8x16xbf16>, %[[R:[^:]*]]: tensor<8x16xbf16>)
// CHECK-NEXT:    %[[NEW:.*]]:2 = weft.launch @kernel_fused_norm_grad_0(%[[X]], %[[S]], %[[G]], %[[R]]) tied [-1, 3]
// CHECK-NEXT:    return %[[NEW]]#1, %[[NEW]]#0
func.func private @residual(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>,
    %r: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%r, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
// CHECK-LABEL: func.func private @sums(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16xbf16>, %[[S:[^:]*]]: tensor<16xf32>, %[[G:[^:]*]]: tensor<8x16xbf16>, %[[H:[^:]*]]: tensor<8x16xbf16>, %[[R:[^:]*]]: tensor<8x16xbf16>)
// CHECK-NEXT:    %[[NEW:.*]]:2 = weft.launch @kernel_fused_norm_grad_2(%[[G]], %[[H]], %[[X]], %[[S]], %[[R]]) tied [-1, 4]
// CHECK-NEXT:    return %[[NEW]]#1, %[[NEW]]#0
func.func private @sums(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>,
    %h: tensor<8x16xbf16>, %r: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %sum = weft.launch @kernel_map_1(%g, %h) tied [-1]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %sum) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%r, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
// A result that takes over the value takes over what the value took over: here the norm's input.
// CHECK-LABEL: func.func private @in_place(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16xbf16>, %[[S:[^:]*]]: tensor<16xf32>, %[[G:[^:]*]]: tensor<8x16xbf16>, %[[R:[^:]*]]: tensor<8x16xbf16>)
// CHECK-NEXT:    %[[NEW:.*]]:2 = weft.launch @kernel_fused_norm_grad_3(%[[X]], %[[S]], %[[G]], %[[R]]) tied [-1, 0]
func.func private @in_place(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>,
    %r: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_1(%x, %s, %g) tied [0, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_2(%r, %0#0) tied [1]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
// Not where the map overwrites what the norm's gradient reads, by a reshape or as a call passes one
// value for two arguments; where another op reads the value; or where the value is the other
// gradient, of which a device adds up parts.
// CHECK-LABEL: func.func private @overwrites(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_0
// CHECK-LABEL: func.func private @overwrites_reshaped(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_0
// CHECK-LABEL: func.func private @called_with_one(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_0
// CHECK-LABEL: func.func private @reads_twice(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_0
// CHECK-LABEL: func.func private @scales(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_3
func.func private @overwrites(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>)
    -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%g, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @overwrites_reshaped(%x: tensor<8x16xbf16>, %s: tensor<16xf32>,
    %f: tensor<128xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %g = weft.reshape %f [[0, 1]] : tensor<128xbf16> -> tensor<8x16xbf16>
  %h = weft.reshape %f [[0, 1]] : tensor<128xbf16> -> tensor<8x16xbf16>
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%h, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @called_with_one(%x: tensor<8x16xbf16>, %s: tensor<16xf32>,
    %g: tensor<8x16xbf16>, %r: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%r, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @caller(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>)
    -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.call @called_with_one(%x, %s, %g, %g) label "one" : (tensor<8x16xbf16>, tensor<16xf32>,
      tensor<8x16xbf16>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  return %0#0, %0#1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @reads_twice(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>,
    %r: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%r, %0#0) tied [0]
      : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0#0 : tensor<8x16xbf16>, tensor<8x16xbf16>
}
func.func private @scales(%x: tensor<8x16xbf16>, %s: tensor<16xf32>, %g: tensor<8x16xbf16>)
    -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xbf16>, tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_3(%0#1) tied [0] : (tensor<16xf32>) -> tensor<16xf32>
  return %0#0, %1 : tensor<8x16xbf16>, tensor<16xf32>
}
// CHECK-LABEL: func.func private @kernel_fused_norm_grad_0(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16xbf16>, %[[S:[^:]*]]: tensor<16xf32>, %[[G:[^:]*]]: tensor<8x16xbf16>, %[[R:[^:]*]]: tensor<8x16xbf16>)
// CHECK-SAME:    weft.tied = array<i64: -1, 3>
// CHECK-NEXT:    %[[DX:.*]], %[[DS:.*]] = weft.norm_grad rms %[[X]] scale(%[[S]] : tensor<16xf32>) gradient(%[[G]]
// CHECK-NEXT:    %[[NEW:.*]] = weft.map ins(%[[R]], %[[DX]]
// CHECK:         return %[[DS]], %[[NEW]]
// CHECK-LABEL: func.func private @kernel_fused_norm_grad_2(
// CHECK:         %[[SUM:.*]] = weft.map
// CHECK:         %[[DX:.*]], %{{.*}} = weft.norm_grad {{.*}} gradient(%[[SUM]]
// CHECK:         weft.map ins(%{{.*}}, %[[DX]]
func.func private @kernel_norm_grad_0(%x: tensor<8x16xbf16>, %s: tensor<16xf32>,
    %g: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %0, %1 = weft.norm_grad rms %x scale(%s : tensor<16xf32>) gradient(%g : tensor<8x16xbf16>)
      epsilon = 1.0e-5 : tensor<8x16xbf16> -> tensor<8x16xbf16>, tensor<16xf32>
  return %0, %1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @kernel_norm_grad_1(%x: tensor<8x16xbf16>, %s: tensor<16xf32>,
    %g: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
    attributes {weft.tied = array<i64: 0, -1>} {
  %0, %1 = weft.norm_grad rms %x scale(%s : tensor<16xf32>) gradient(%g : tensor<8x16xbf16>)
      epsilon = 1.0e-5 : tensor<8x16xbf16> -> tensor<8x16xbf16>, tensor<16xf32>
  return %0, %1 : tensor<8x16xbf16>, tensor<16xf32>
}
func.func private @kernel_map_0(%r: tensor<8x16xbf16>, %g: tensor<8x16xbf16>) -> tensor<8x16xbf16>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%r, %g : tensor<8x16xbf16>, tensor<8x16xbf16>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<8x16xbf16> {
  ^bb0(%a: bf16, %b: bf16):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    weft.yield %4 : bf16
  }
  return %0 : tensor<8x16xbf16>
}
func.func private @kernel_map_1(%r: tensor<8x16xbf16>, %g: tensor<8x16xbf16>) -> tensor<8x16xbf16>
    attributes {weft.tied = array<i64: -1>} {
  %0 = weft.map ins(%r, %g : tensor<8x16xbf16>, tensor<8x16xbf16>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<8x16xbf16> {
  ^bb0(%a: bf16, %b: bf16):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    weft.yield %4 : bf16
  }
  return %0 : tensor<8x16xbf16>
}
func.func private @kernel_map_2(%r: tensor<8x16xbf16>, %g: tensor<8x16xbf16>) -> tensor<8x16xbf16>
    attributes {weft.tied = array<i64: 1>} {
  %0 = weft.map ins(%r, %g : tensor<8x16xbf16>, tensor<8x16xbf16>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<8x16xbf16> {
  ^bb0(%a: bf16, %b: bf16):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    weft.yield %4 : bf16
  }
  return %0 : tensor<8x16xbf16>
}
func.func private @kernel_map_3(%s: tensor<16xf32>) -> tensor<16xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%s : tensor<16xf32>) maps [affine_map<(i) -> (i)>] -> tensor<16xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<16xf32>
}
}

// -----

// Without the target nothing changes.
// CHECK-LABEL: func.func private @host(
// CHECK:         weft.launch @kernel_norm_grad_0
// CHECK-NEXT:    weft.launch @kernel_map_0
func.func private @host(%x: tensor<8x16xf32>, %s: tensor<16xf32>, %g: tensor<8x16xf32>)
    -> (tensor<8x16xf32>, tensor<16xf32>) {
  %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1]
      : (tensor<8x16xf32>, tensor<16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>)
  %1 = weft.launch @kernel_map_0(%0#0) tied [0] : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %1, %0#1 : tensor<8x16xf32>, tensor<16xf32>
}
func.func private @kernel_norm_grad_0(%x: tensor<8x16xf32>, %s: tensor<16xf32>,
    %g: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %0, %1 = weft.norm_grad rms %x scale(%s : tensor<16xf32>) gradient(%g : tensor<8x16xf32>)
      epsilon = 1.0e-5 : tensor<8x16xf32> -> tensor<8x16xf32>, tensor<16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<16xf32>
}
func.func private @kernel_map_0(%x: tensor<8x16xf32>) -> tensor<8x16xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%x : tensor<8x16xf32>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x16xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<8x16xf32>
}
