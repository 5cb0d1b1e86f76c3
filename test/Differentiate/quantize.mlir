// RUN: weft-opt %s -build-gradients | FileCheck %s

// Straight through: the gradient of what was quantized is that of the quantized. The gradient of a
// matmul is quantized once, and both gradients are computed from that.

weft.variable parameter @x ["batch", "hidden"] : tensor<2x4xf32>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf32>

// CHECK-LABEL: func.func @step
// CHECK:         %[[X:.*]] = weft.quantize e4m3
// CHECK:         %[[W:.*]] = weft.quantize e4m3
// CHECK:         %[[G:.*]] = weft.map {{.*}} -> tensor<2x8xf32>
// CHECK:         %[[AMAX:.*]] = weft.amax %[[G]] : tensor<2x8xf32> -> tensor<f32>
// CHECK-NEXT:    %[[Q:.*]] = weft.quantize e5m2 %[[G]] by %[[AMAX]] : tensor<2x8xf32>, tensor<f32> -> tensor<2x8xbf16>
// CHECK-NEXT:    %[[DX:.*]] = weft.contract "bn,nk->bk"(%[[Q]], %[[W]]) : {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT:    %[[DW:.*]] = weft.contract "bn,bk->nk"(%[[Q]], %[[X]]) : {{.*}} -> tensor<8x4xf32>
// CHECK:         weft.observe {{.*}}"gradient/x"{{.*}} %[[DX]]
// CHECK:         weft.observe {{.*}}"gradient/w"{{.*}} %[[DW]]
func.func @loss() -> tensor<f32> {
  %x = weft.read @x : tensor<2x4xf32>
  %w = weft.read @w : tensor<8x4xf32>
  %mx = weft.amax %x : tensor<2x4xf32> -> tensor<f32>
  %qx = weft.quantize e4m3 %x by %mx : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xbf16>
  %mw = weft.amax %w : tensor<8x4xf32> -> tensor<f32>
  %qw = weft.quantize e4m3 %w by %mw : tensor<8x4xf32>, tensor<f32> -> tensor<8x4xbf16>
  %y = weft.contract "bk,nk->bn" (%qx, %qw) gradient e5m2
      : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xf32>
  %loss = weft.contract "bn->" (%y) : (tensor<2x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
