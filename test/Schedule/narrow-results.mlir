// RUN: weft-opt %s --narrow-results --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK-NEXT:    %[[Y:.*]] = weft.contract "bk,nk->bn"{{.*}} -> tensor<8x6xbf16>
// CHECK-NEXT:    return %[[Y]]
func.func @description(%x: tensor<8x4xbf16>, %w: tensor<6x4xbf16>) -> tensor<8x6xbf16> {
  %1 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  %2 = weft.map ins(%1 : tensor<8x6xf32>) maps [#id] -> tensor<8x6xbf16> {
  ^bb0(%a: f32):
    %3 = arith.truncf %a : f32 to bf16
    weft.yield %3 : bf16
  }
  return %2 : tensor<8x6xbf16>
}

// CHECK-LABEL: @read_otherwise(
// CHECK-NEXT:    weft.contract {{.*}} -> tensor<8x6xf32>
// CHECK-NEXT:    weft.map
func.func @read_otherwise(%x: tensor<8x4xbf16>, %w: tensor<6x4xbf16>)
    -> (tensor<8x6xf32>, tensor<8x6xbf16>) {
  %1 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  %2 = weft.map ins(%1 : tensor<8x6xf32>) maps [#id] -> tensor<8x6xbf16> {
  ^bb0(%a: f32):
    %3 = arith.truncf %a : f32 to bf16
    weft.yield %3 : bf16
  }
  return %1, %2 : tensor<8x6xf32>, tensor<8x6xbf16>
}

// A sum is no matmul for a library, and a matmul of float32 has nothing to round to.
// CHECK-LABEL: @others_stay(
// CHECK-NEXT:    weft.contract {{.*}} -> tensor<6xf32>
// CHECK:         weft.contract {{.*}} -> tensor<8x6xf32>
// CHECK-NEXT:    weft.map
func.func @others_stay(%s: tensor<8x6xbf16>, %x: tensor<8x4xf32>, %w: tensor<6x4xf32>)
    -> (tensor<6xbf16>, tensor<8x6xbf16>) {
  %0 = weft.contract "bn->n"(%s) : (tensor<8x6xbf16>) -> tensor<6xf32>
  %1 = weft.map ins(%0 : tensor<6xf32>) maps [affine_map<(i) -> (i)>] -> tensor<6xbf16> {
  ^bb0(%a: f32):
    %5 = arith.truncf %a : f32 to bf16
    weft.yield %5 : bf16
  }
  %2 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %3 = weft.map ins(%2 : tensor<8x6xf32>) maps [#id] -> tensor<8x6xbf16> {
  ^bb0(%a: f32):
    %5 = arith.truncf %a : f32 to bf16
    weft.yield %5 : bf16
  }
  return %1, %3 : tensor<6xbf16>, tensor<8x6xbf16>
}

// Between a convolution's matmul and its rounding stands a reshape.
// CHECK-LABEL: @reshaped(
// CHECK-NEXT:    %[[Y:.*]] = weft.contract "ok,nkp->nop"{{.*}} -> tensor<2x6x9xbf16>
// CHECK-NEXT:    %[[Z:.*]] = weft.reshape %[[Y]] {{.*}} -> tensor<2x6x3x3xbf16>
// CHECK-NEXT:    return %[[Z]]
func.func @reshaped(%w: tensor<6x4xbf16>, %x: tensor<2x4x9xbf16>) -> tensor<2x6x3x3xbf16> {
  %0 = weft.contract "ok,nkp->nop"(%w, %x) : (tensor<6x4xbf16>, tensor<2x4x9xbf16>) -> tensor<2x6x9xf32>
  %1 = weft.reshape %0 [[0], [1], [2, 3]] : tensor<2x6x9xf32> -> tensor<2x6x3x3xf32>
  %2 = weft.map ins(%1 : tensor<2x6x3x3xf32>)
      maps [affine_map<(a, b, c, d) -> (a, b, c, d)>] -> tensor<2x6x3x3xbf16> {
  ^bb0(%a: f32):
    %3 = arith.truncf %a : f32 to bf16
    weft.yield %3 : bf16
  }
  return %2 : tensor<2x6x3x3xbf16>
}

// A sum of several matmuls is rounded when it is whole.
// CHECK-LABEL: @sum_of_matmuls(
// CHECK-NEXT:    weft.contract {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT:    weft.map
func.func @sum_of_matmuls(%g: tensor<2x6x9xbf16>, %x: tensor<2x4x9xbf16>) -> tensor<6x4xbf16> {
  %0 = weft.contract "nop,nkp->ok"(%g, %x) : (tensor<2x6x9xbf16>, tensor<2x4x9xbf16>) -> tensor<6x4xf32>
  %1 = weft.map ins(%0 : tensor<6x4xf32>) maps [#id] -> tensor<6x4xbf16> {
  ^bb0(%a: f32):
    %3 = arith.truncf %a : f32 to bf16
    weft.yield %3 : bf16
  }
  return %1 : tensor<6x4xbf16>
}

// On the host, gradients of queries are summed in float32 in their place.
// CHECK-LABEL: @attention_on_host(
// CHECK-NEXT:    weft.attention_grad{{.*}} -> tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
// CHECK-COUNT-3: weft.map
func.func @attention_on_host(%q: tensor<2x4x1x1x2xbf16>, %k: tensor<2x4x1x2xbf16>, %l: tensor<2x1x1x4xf32>)
    -> (tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>) {
  %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 1.0 dropout = 0.0
      : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x1x2xbf16>,
        tensor<2x1x1x4xf32>, tensor<2x4x1x1x2xbf16>
      -> tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
  %1 = weft.map ins(%0#0 : tensor<2x4x1x1x2xf32>)
      maps [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>] -> tensor<2x4x1x1x2xbf16> {
  ^bb0(%a: f32):
    %5 = arith.truncf %a : f32 to bf16
    weft.yield %5 : bf16
  }
  %2 = weft.map ins(%0#1 : tensor<2x4x1x2xf32>)
      maps [affine_map<(a, b, c, d) -> (a, b, c, d)>] -> tensor<2x4x1x2xbf16> {
  ^bb0(%a: f32):
    %5 = arith.truncf %a : f32 to bf16
    weft.yield %5 : bf16
  }
  %3 = weft.map ins(%0#2 : tensor<2x4x1x2xf32>)
      maps [affine_map<(a, b, c, d) -> (a, b, c, d)>] -> tensor<2x4x1x2xbf16> {
  ^bb0(%a: f32):
    %5 = arith.truncf %a : f32 to bf16
    weft.yield %5 : bf16
  }
  return %1, %2, %3 : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>
}

// -----

// Kernels of devices, and cuDNN, write each gradient once.
module attributes {weft.target = "cuda"} {
  // CHECK-LABEL: @attention(
  // CHECK-NEXT:    %[[Q:.*]], %[[K:.*]], %[[V:.*]] = weft.attention_grad{{.*}} -> tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>
  // CHECK-NEXT:    return %[[Q]], %[[K]], %[[V]]
  func.func @attention(%q: tensor<2x4x1x1x2xbf16>, %k: tensor<2x4x1x2xbf16>, %l: tensor<2x1x1x4xf32>)
      -> (tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>) {
    %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 1.0 dropout = 0.0
        : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x1x2xbf16>,
          tensor<2x1x1x4xf32>, tensor<2x4x1x1x2xbf16>
        -> tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
    %1 = weft.map ins(%0#0 : tensor<2x4x1x1x2xf32>)
        maps [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>] -> tensor<2x4x1x1x2xbf16> {
    ^bb0(%a: f32):
      %5 = arith.truncf %a : f32 to bf16
      weft.yield %5 : bf16
    }
    %2 = weft.map ins(%0#1 : tensor<2x4x1x2xf32>)
        maps [affine_map<(a, b, c, d) -> (a, b, c, d)>] -> tensor<2x4x1x2xbf16> {
    ^bb0(%a: f32):
      %5 = arith.truncf %a : f32 to bf16
      weft.yield %5 : bf16
    }
    %3 = weft.map ins(%0#2 : tensor<2x4x1x2xf32>)
        maps [affine_map<(a, b, c, d) -> (a, b, c, d)>] -> tensor<2x4x1x2xbf16> {
    ^bb0(%a: f32):
      %5 = arith.truncf %a : f32 to bf16
      weft.yield %5 : bf16
    }
    return %1, %2, %3 : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>
  }

  // The gradients of keys are read otherwise: all three stay.
  // CHECK-LABEL: @one_is_read_otherwise(
  // CHECK-NEXT:    weft.attention_grad{{.*}} -> tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
  // CHECK-NEXT:    weft.map
  func.func @one_is_read_otherwise(%q: tensor<2x4x1x1x2xbf16>, %k: tensor<2x4x1x2xbf16>, %l: tensor<2x1x1x4xf32>)
      -> (tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) {
    %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 1.0 dropout = 0.0
        : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x1x2xbf16>,
          tensor<2x1x1x4xf32>, tensor<2x4x1x1x2xbf16>
        -> tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
    %1 = weft.map ins(%0#0 : tensor<2x4x1x1x2xf32>)
        maps [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>] -> tensor<2x4x1x1x2xbf16> {
    ^bb0(%a: f32):
      %5 = arith.truncf %a : f32 to bf16
      weft.yield %5 : bf16
    }
    return %1, %0#1, %0#2 : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>
  }
}
