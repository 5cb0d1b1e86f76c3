// Rows of matmuls are aligned for devices: 16 bytes are 4 elements here, and the whole row is a multiple of 128 bytes
// where that takes at most 1 % more. What tp cuts has aligned shards.
// RUN: weft-opt %s -pad-dimensions="align-rows" | FileCheck %s --check-prefixes=ROWS,ALONE
// RUN: weft-opt %s -pad-dimensions="align-rows pins=tp=16" | FileCheck %s --check-prefixes=ROWS,CUT
// RUN: weft-opt %s -pad-dimensions="align-rows plan={version: 1 padding: false}" | FileCheck %s --check-prefix=PLAIN
// RUN: weft-opt %s -pad-dimensions | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: unpadded
// ALONE: @table ["vocab", "hidden"] unpadded {{\[}}50257, 36] : tensor<50272x36xf32>
// CUT:   @table ["vocab", "hidden"] unpadded {{\[}}50257, 36] : tensor<50304x36xf32>
// 128 bytes would be more than 1 %.
// ALONE: @up ["ffn", "hidden"] unpadded {{\[}}101, 36] : tensor<104x36xf32>
// CUT:   @up ["ffn", "hidden"] unpadded {{\[}}101, 36] : tensor<128x36xf32>
// Already aligned, and not padded to 128 bytes.
// ALONE: @aligned ["aligned", "hidden"] : tensor<100x36xf32>
// A norm forbids padding.
// ROWS: @normed ["normed", "hidden"] : tensor<7x36xf32>
// Experts would add more operations than the router's matmul has.
// ROWS: @router ["experts", "hidden"] : tensor<6x36xf32>
// ROWS: @down ["experts", "hidden", "inner"] : tensor<6x36x36xf32>
// ROWS-LABEL: func.func @step
// ALONE: weft.cross_entropy {{.*}} of [50257] : tensor<2x4x50272xf32>

weft.variable parameter @table ["vocab", "hidden"] : tensor<50257x36xf32>
weft.variable parameter @up ["ffn", "hidden"] : tensor<101x36xf32>
weft.variable parameter @aligned ["aligned", "hidden"] : tensor<100x36xf32>
weft.variable parameter @normed ["normed", "hidden"] : tensor<7x36xf32>
weft.variable parameter @scale ["normed"] : tensor<7xf32>
weft.variable parameter @router ["experts", "hidden"] : tensor<6x36xf32>
weft.variable parameter @down ["experts", "hidden", "inner"] : tensor<6x36x36xf32>
weft.variable input @tokens ["batch", "sequence"] : tensor<2x4xi32>
func.func @step() {
  %table = weft.read @table : tensor<50257x36xf32>
  %ids = weft.read @tokens : tensor<2x4xi32>
  %x = weft.embedding %table[%ids] : tensor<50257x36xf32>[tensor<2x4xi32>] -> tensor<2x4x36xf32>
  %up = weft.read @up : tensor<101x36xf32>
  %h = weft.contract "bsk,nk->bsn" (%x, %up) : (tensor<2x4x36xf32>, tensor<101x36xf32>) -> tensor<2x4x101xf32>
  %aligned = weft.read @aligned : tensor<100x36xf32>
  %a = weft.contract "bsk,nk->bsn" (%x, %aligned) : (tensor<2x4x36xf32>, tensor<100x36xf32>) -> tensor<2x4x100xf32>
  %normed = weft.read @normed : tensor<7x36xf32>
  %n = weft.contract "bsk,nk->bsn" (%x, %normed) : (tensor<2x4x36xf32>, tensor<7x36xf32>) -> tensor<2x4x7xf32>
  %s = weft.read @scale : tensor<7xf32>
  %p = weft.norm rms %n scale(%s : tensor<7xf32>) epsilon = 1.0e-5 : tensor<2x4x7xf32> -> tensor<2x4x7xf32>
  %router = weft.read @router : tensor<6x36xf32>
  %e = weft.contract "bsk,ek->bse" (%x, %router) : (tensor<2x4x36xf32>, tensor<6x36xf32>) -> tensor<2x4x6xf32>
  %down = weft.read @down : tensor<6x36x36xf32>
  %d = weft.contract "bsk,ekl->ebsl" (%x, %down) : (tensor<2x4x36xf32>, tensor<6x36x36xf32>) -> tensor<6x2x4x36xf32>
  %y = weft.contract "ebsl,bse->bsl" (%d, %e) : (tensor<6x2x4x36xf32>, tensor<2x4x6xf32>) -> tensor<2x4x36xf32>
  %logits = weft.contract "bsk,nk->bsn" (%x, %table) : (tensor<2x4x36xf32>, tensor<50257x36xf32>) -> tensor<2x4x50257xf32>
  %lse, %picked = weft.cross_entropy %logits[%ids] : tensor<2x4x50257xf32>[tensor<2x4xi32>] -> tensor<2x4xf32>, tensor<2x4xf32>
  return
}
