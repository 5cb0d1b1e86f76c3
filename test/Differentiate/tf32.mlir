// RUN: weft-opt %s -build-gradients | FileCheck %s

// The gradients of a matmul that rounds to tf32 are matmuls that do.

weft.variable parameter @x ["batch", "hidden"] : tensor<2x4xf32>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf32>

// CHECK-LABEL: func.func @step
// CHECK:         weft.contract "bk,nk->bn"({{.*}}) tf32 :
// CHECK:         weft.contract "bn->"({{.*}}) :
// CHECK:         weft.contract "bn,nk->bk"({{.*}}) tf32 :
// CHECK:         weft.contract "bn,bk->nk"({{.*}}) tf32 :
func.func @loss() -> tensor<f32> {
  %x = weft.read @x : tensor<2x4xf32>
  %w = weft.read @w : tensor<8x4xf32>
  %y = weft.contract "bk,nk->bn" (%x, %w) tf32 : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %loss = weft.contract "bn->" (%y) : (tensor<2x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
