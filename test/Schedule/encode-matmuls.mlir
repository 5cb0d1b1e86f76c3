// RUN: weft-opt %s --split-input-file --encode-matmuls 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t
// RUN: weft-opt %s --split-input-file --pass-pipeline='builtin.module(encode-matmuls,func.func(fuse-epilogues))' 2>/dev/null | FileCheck %s --check-prefix=FUSED
// RUN: weft-opt %s --split-input-file --encode-matmuls="machine='version: 1 name: \"a\" devices_per_node: 1 device { name: \"d\" peak_flops { precision: BF16 flops: 1e12 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e10 }'" 2>&1 >/dev/null | FileCheck %s --check-prefix=NONE

// NONE: warning: encode-matmuls: 1 of 1 FP8 matmuls stay in 16 or 32 bits, the first of them here: the machine has no rate for F8

module attributes {weft.target = "cuda"} {

// The example of the pass's description: nothing is left of what was quantized.
// CHECK-LABEL: @description(
// CHECK-SAME:    %[[A:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[M:[^:]*]]: tensor<f32>, %[[N:[^:]*]]: tensor<f32>)
// CHECK-NEXT:    %[[D:.*]], %[[E:.*]] = weft.encode e5m2 %[[B]] by %[[N]] lead 1 : tensor<32x16xf32> -> turned tensor<16x32xf8E5M2>
// CHECK-NEXT:    %[[X:.*]], %[[F:.*]] = weft.encode e4m3 %[[A]] by %[[M]] lead 1 : tensor<32x64xf32> -> turned tensor<64x32xf8E4M3FN>
// CHECK-NEXT:    %[[Y:.*]] = weft.fp8_matmul "nb,kb->nk"(%[[D]], %[[X]]) factors(%[[E]], %[[F]]) : tensor<16x32xf8E5M2>, tensor<64x32xf8E4M3FN> -> tensor<16x64xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @description(%a: tensor<32x64xf32>, %b: tensor<32x16xf32>, %m: tensor<f32>,
                       %n: tensor<f32>) -> tensor<16x64xf32> {
  %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %d = weft.quantize e5m2 %b by %n : tensor<32x16xf32>, tensor<f32> -> tensor<32x16xbf16>
  %0 = weft.contract "bn,bk->nk"(%d, %x)
      : (tensor<32x16xbf16>, tensor<32x64xbf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
}

// -----

#mesh = #weft.mesh<"dp" = 2>
#id = affine_map<(i, j) -> (i, j)>

module attributes {weft.mesh = #mesh, weft.target = "cuda"} {

// The forward pass gives what the backward pass needs: scales go along. The weight comes as two
// halves, which a collective has joined.
// CHECK-LABEL: func.func private @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<32x64xf32>, %[[W:[^:]*]]: tensor<16x64xbf16>, %[[AW:[^:]*]]: tensor<f32>)
// CHECK-SAME:    -> (tensor<32x16xf32>, tensor<32x64xbf16>, tensor<f32>)
// CHECK:         %[[AX:.*]] = weft.amax %[[X]]
// CHECK:         %[[Q:.*]] = weft.quantize e4m3 %[[X]] by %[[AX]]
// CHECK:         %[[BX:.*]], %[[FX:.*]] = weft.encode e4m3 %[[Q]] by %[[AX]] lead 0 : tensor<32x64xbf16> -> rows tensor<32x64xf8E4M3FN>
// CHECK:         %[[BW:.*]], %[[FW:.*]] = weft.encode e4m3 %[[W]] by %[[AW]] lead 0
// CHECK:         %[[Y:.*]] = weft.fp8_matmul "bk,nk->bn"(%[[BX]], %[[BW]]) factors(%[[FX]], %[[FW]])
// CHECK:         return %[[Y]], %[[Q]], %[[AX]]
func.func private @forward(%x: tensor<32x64xf32>, %w: tensor<16x64xbf16>)
    -> (tensor<32x16xf32>, tensor<32x64xbf16>) {
  %m = weft.amax %x : tensor<32x64xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %x by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%q, %w)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  return %0, %q : tensor<32x16xf32>, tensor<32x64xbf16>
}

// The gradient is read once for both its forms.
// CHECK-LABEL: func.func private @backward(
// CHECK-SAME:    %[[D:[^:]*]]: tensor<32x16xf32>, %[[Q:[^:]*]]: tensor<32x64xbf16>, %[[W:[^:]*]]: tensor<16x64xbf16>, %[[AW:[^:]*]]: tensor<f32>, %[[AQ:[^:]*]]: tensor<f32>)
// CHECK:         %[[AD:.*]] = weft.amax %[[D]]
// CHECK:         %[[R:.*]], %[[T:.*]], %[[FD:.*]] = weft.encode e5m2 %[[D]] by %[[AD]] lead 1 : tensor<32x16xf32> -> rows tensor<32x16xf8E5M2> turned tensor<16x32xf8E5M2>
// CHECK:         %[[BW:.*]], %[[FW:.*]] = weft.encode e4m3 %[[W]] by %[[AW]] lead 1
// CHECK:         weft.fp8_matmul "bn,kn->bk"(%[[R]], %[[BW]]) factors(%[[FD]], %[[FW]])
// CHECK:         %[[BQ:.*]], %[[FQ:.*]] = weft.encode e4m3 %[[Q]] by %[[AQ]] lead 1
// CHECK:         weft.fp8_matmul "nb,kb->nk"(%[[T]], %[[BQ]]) factors(%[[FD]], %[[FQ]])
func.func private @backward(%d: tensor<32x16xf32>, %q: tensor<32x64xbf16>, %w: tensor<16x64xbf16>)
    -> (tensor<32x64xf32>, tensor<16x64xf32>) {
  %m = weft.amax %d : tensor<32x16xf32> -> tensor<f32>
  %e = weft.quantize e5m2 %d by %m : tensor<32x16xf32>, tensor<f32> -> tensor<32x16xbf16>
  %0 = weft.contract "bn,nk->bk"(%e, %w)
      : (tensor<32x16xbf16>, tensor<16x64xbf16>) -> tensor<32x64xf32>
  %1 = weft.contract "bn,bk->nk"(%e, %q)
      : (tensor<32x16xbf16>, tensor<32x64xbf16>) -> tensor<16x64xf32>
  return %0, %1 : tensor<32x64xf32>, tensor<16x64xf32>
}

// CHECK-LABEL: func.func @step(
// CHECK:         %[[AW:.*]] = weft.amax
// CHECK:         %[[Y:.*]]:3 = weft.call @forward(%{{.*}}, %[[W:.*]], %[[AW]]) label "a"
// CHECK:         weft.call @backward(%[[Y]]#0, %[[Y]]#1, %[[W]], %[[AW]], %[[Y]]#2) label "a backward"
func.func @step(%x: tensor<32x64xf32>, %half: tensor<8x64xf32>, %other: tensor<8x4xf32>)
    -> tensor<16x64xf32> {
  %m = weft.amax %half : tensor<8x64xf32> -> tensor<f32>
  %v = weft.quantize e4m3 %half by %m : tensor<8x64xf32>, tensor<f32> -> tensor<8x64xbf16>
  %o = weft.quantize e4m3 %other by %m : tensor<8x4xf32>, tensor<f32> -> tensor<8x4xbf16>
  %c = weft.concat %o, %v dim 1 : tensor<8x4xbf16>, tensor<8x64xbf16> -> tensor<8x68xbf16>
  %g = weft.all_gather %c dim 0 over ["dp"] of #mesh : tensor<8x68xbf16> -> tensor<16x68xbf16>
  %s:2 = weft.split %g dim 1 : tensor<16x68xbf16> -> tensor<16x4xbf16>, tensor<16x64xbf16>
  %y:2 = weft.call @forward(%x, %s#1) label "a"
      : (tensor<32x64xf32>, tensor<16x64xbf16>) -> (tensor<32x16xf32>, tensor<32x64xbf16>)
  %z:2 = weft.call @backward(%y#0, %y#1, %s#1) label "a backward"
      : (tensor<32x16xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>)
      -> (tensor<32x64xf32>, tensor<16x64xf32>)
  return %z#1 : tensor<16x64xf32>
}
}

// -----

module attributes {weft.target = "cuda"} {

func.func private @quantize(%x: tensor<32x64xf32>) -> tensor<32x64xbf16> {
  %m = weft.amax %x : tensor<32x64xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %x by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  return %q : tensor<32x64xbf16>
}

// A matmul reads what a call gives, which becomes another call.
// CHECK-LABEL: @called(
// CHECK:         %[[Y:.*]]:2 = weft.call @quantize(%{{.*}}) label "a"
// CHECK:         weft.encode e4m3 %[[Y]]#0 by %[[Y]]#1 lead 0
func.func @called(%x: tensor<32x64xf32>, %w: tensor<16x64xf32>, %m: tensor<f32>)
    -> tensor<32x16xf32> {
  %v = weft.quantize e4m3 %w by %m : tensor<16x64xf32>, tensor<f32> -> tensor<16x64xbf16>
  %y = weft.call @quantize(%x) label "a" : (tensor<32x64xf32>) -> tensor<32x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%y, %v)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

module attributes {weft.target = "cuda"} {

// Of what is done to a result the library adds to it.
// FUSED-LABEL: @epilogues(
// FUSED-SAME:    %{{[^:]*}}: {{[^,]*}}, %{{[^:]*}}: {{[^,]*}}, %{{[^:]*}}: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[R:[^:]*]]:
// FUSED:         weft.fp8_matmul {{.*}} plus %[[R]] : tensor<32x16xbf16> bias %[[B]] : tensor<16xbf16>
// FUSED-NOT:     arith.addf
// FUSED:         math.tanh
func.func @epilogues(%a: tensor<32x64xf32>, %b: tensor<16x64xf32>, %m: tensor<f32>,
                     %c: tensor<16xbf16>, %r: tensor<32x16xbf16>) -> tensor<32x16xbf16> {
  %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %w = weft.quantize e4m3 %b by %m : tensor<16x64xf32>, tensor<f32> -> tensor<16x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  %1 = weft.map ins(%0, %c, %r : tensor<32x16xf32>, tensor<16xbf16>, tensor<32x16xbf16>)
      maps [#id, #row, #id] -> tensor<32x16xbf16> {
  ^bb0(%p: f32, %q: bf16, %s: bf16):
    %2 = arith.extf %q : bf16 to f32
    %3 = arith.extf %s : bf16 to f32
    %4 = arith.addf %p, %2 : f32
    %5 = arith.addf %4, %3 : f32
    %6 = arith.truncf %5 : f32 to bf16
    weft.yield %6 : bf16
  }
  %7 = weft.map ins(%1 : tensor<32x16xbf16>) maps [#id] -> tensor<32x16xbf16> {
  ^bb0(%p: bf16):
    %8 = arith.extf %p : bf16 to f32
    %9 = math.tanh %8 : f32
    %10 = arith.truncf %9 : f32 to bf16
    weft.yield %10 : bf16
  }
  return %7 : tensor<32x16xbf16>
}
}

// -----

module attributes {weft.target = "cuda"} {

// What stays is said, of each kind once. A batch is one before all else.
// SAID: warning: encode-matmuls: 2 of 6 FP8 matmuls stay in 16 or 32 bits, the first of them here: expected sizes that are multiples of 16
// SAID: warning: encode-matmuls: 2 of 6 FP8 matmuls {{.*}}: it is a batch of matmuls
// SAID: warning: encode-matmuls: 1 of 6 FP8 matmuls {{.*}}: both operands are of e5m2
// SAID: warning: encode-matmuls: 1 of 6 FP8 matmuls {{.*}}: the summed dimensions are not contiguous
// CHECK-LABEL: @refused
// CHECK-NOT:   weft.encode
func.func @refused(%a: tensor<32x64xf32>, %b: tensor<24x64xf32>, %c: tensor<4x16x64xf32>,
                   %d: tensor<16x64xf32>, %f: tensor<4x16x64xbf16>, %m: tensor<f32>)
    -> (tensor<32x24xf32>, tensor<24x32xf32>, tensor<4x16x16xf32>, tensor<16x16xf32>,
        tensor<4x64x64xf32>, tensor<1x64x64xf32>) {
  %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %w = weft.quantize e4m3 %b by %m : tensor<24x64xf32>, tensor<f32> -> tensor<24x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<32x64xbf16>, tensor<24x64xbf16>) -> tensor<32x24xf32>
  %1 = weft.contract "nk,bk->nb"(%w, %x)
      : (tensor<24x64xbf16>, tensor<32x64xbf16>) -> tensor<24x32xf32>
  %e = weft.quantize e4m3 %c by %m : tensor<4x16x64xf32>, tensor<f32> -> tensor<4x16x64xbf16>
  %2 = weft.contract "ebk,enk->ebn"(%e, %e)
      : (tensor<4x16x64xbf16>, tensor<4x16x64xbf16>) -> tensor<4x16x16xf32>
  %g = weft.quantize e5m2 %d by %m : tensor<16x64xf32>, tensor<f32> -> tensor<16x64xbf16>
  %3 = weft.contract "bk,nk->bn"(%g, %g)
      : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32>
  %4 = weft.contract "enk,enj->ekj"(%e, %f)
      : (tensor<4x16x64xbf16>, tensor<4x16x64xbf16>) -> tensor<4x64x64xf32>
  %z = weft.quantize e4m3 %d by %m : tensor<16x64xf32>, tensor<f32> -> tensor<16x64xbf16>
  %h = weft.reshape %z [[0, 1], [2]] : tensor<16x64xbf16> -> tensor<1x16x64xbf16>
  %5 = weft.contract "akb,kn->abn"(%h, %z)
      : (tensor<1x16x64xbf16>, tensor<16x64xbf16>) -> tensor<1x64x64xf32>
  return %0, %1, %2, %3, %4, %5
      : tensor<32x24xf32>, tensor<24x32xf32>, tensor<4x16x16xf32>, tensor<16x16xf32>,
        tensor<4x64x64xf32>, tensor<1x64x64xf32>
}
}

// -----

#mesh = #weft.mesh<"dp" = 2>

module attributes {weft.mesh = #mesh, weft.target = "cuda"} {

// Both halves of what was scaled once have that scale.
// CHECK-LABEL: @halves(
// CHECK:         weft.encode e4m3 %{{.*}}#0 by %[[M:.*]] lead 0
// CHECK:         weft.fp8_matmul
// CHECK:         weft.encode e4m3 %{{.*}}#1 by %[[M]] lead 0
// CHECK:         weft.fp8_matmul
func.func @halves(%x: tensor<32x64xf32>, %m: tensor<f32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %q = weft.quantize e4m3 %x by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %s:2 = weft.split %q dim 0 : tensor<32x64xbf16> -> tensor<16x64xbf16>, tensor<16x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%q, %s#0)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  %1 = weft.contract "bk,nk->bn"(%q, %s#1)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  return %0, %1 : tensor<32x16xf32>, tensor<32x16xf32>
}

// What was joined, and is taken apart where ranks' parts meet, where other sizes are, or after rows
// became columns, has several scales, which is said.
// SAID: warning: encode-matmuls: 5 of 7 FP8 matmuls {{.*}}: the scale of an operand is unknown
// CHECK-LABEL: @joined(
// CHECK-NOT:     weft.encode
// CHECK:         return
func.func @joined(%x: tensor<32x64xf32>, %a: tensor<32x64xf32>, %w: tensor<32x64xbf16>,
                  %m: tensor<f32>, %n: tensor<f32>)
    -> (tensor<32x64xf32>, tensor<32x48xf32>, tensor<32x32xf32>, tensor<64x64xf32>,
        tensor<32x32xf32>) {
  %q = weft.quantize e4m3 %x by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %v = weft.quantize e4m3 %a by %n : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %c = weft.concat %q, %v dim 0 : tensor<32x64xbf16>, tensor<32x64xbf16> -> tensor<64x64xbf16>
  %g = weft.all_gather %c dim 0 over ["dp"] of #mesh : tensor<64x64xbf16> -> tensor<128x64xbf16>
  %s:2 = weft.split %g dim 0 : tensor<128x64xbf16> -> tensor<64x64xbf16>, tensor<64x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%q, %s#1)
      : (tensor<32x64xbf16>, tensor<64x64xbf16>) -> tensor<32x64xf32>
  %t:2 = weft.split %c dim 0 : tensor<64x64xbf16> -> tensor<16x64xbf16>, tensor<48x64xbf16>
  %1 = weft.contract "bk,nk->bn"(%q, %t#1)
      : (tensor<32x64xbf16>, tensor<48x64xbf16>) -> tensor<32x48xf32>
  %p = weft.contract "ij->ji"(%c) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %u:2 = weft.split %p dim 0 : tensor<64x64xbf16> -> tensor<32x64xbf16>, tensor<32x64xbf16>
  %2 = weft.contract "bk,nk->bn"(%q, %u#1)
      : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x32xf32>
  // Neither operand has one scale, or one has none.
  %3 = weft.contract "bk,nk->bn"(%c, %c)
      : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %4 = weft.contract "bk,nk->bn"(%q, %w)
      : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x32xf32>
  return %0, %1, %2, %3, %4 : tensor<32x64xf32>, tensor<32x48xf32>, tensor<32x32xf32>,
                              tensor<64x64xf32>, tensor<32x32xf32>
}
}

// -----

module attributes {weft.target = "cuda"} {

// What a call gets may be what another has given.
// SAID: warning: encode-matmuls: 1 of 1 FP8 matmuls {{.*}}: the scale of an operand is unknown
// CHECK-LABEL: func.func private @passed(
// CHECK:         weft.contract
func.func private @passed(%x: tensor<32x64xbf16>, %w: tensor<16x64xbf16>)
    -> (tensor<32x16xf32>, tensor<32x64xbf16>) {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32>
  return %0, %x : tensor<32x16xf32>, tensor<32x64xbf16>
}
func.func @twice(%a: tensor<32x64xf32>, %b: tensor<16x64xf32>, %m: tensor<f32>)
    -> tensor<32x16xf32> {
  %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %w = weft.quantize e4m3 %b by %m : tensor<16x64xf32>, tensor<f32> -> tensor<16x64xbf16>
  %y:2 = weft.call @passed(%x, %w) label "a" : (tensor<32x64xbf16>, tensor<16x64xbf16>)
      -> (tensor<32x16xf32>, tensor<32x64xbf16>)
  %z:2 = weft.call @passed(%y#1, %w) label "b" : (tensor<32x64xbf16>, tensor<16x64xbf16>)
      -> (tensor<32x16xf32>, tensor<32x64xbf16>)
  return %z#0 : tensor<32x16xf32>
}
}

// -----

// Other targets have no such matmuls, nor has float64.
// CHECK-LABEL: @host
// CHECK:         weft.contract
func.func @host(%a: tensor<32x64xf32>, %m: tensor<f32>) -> tensor<32x32xf32> {
  %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
  %0 = weft.contract "bk,nk->bn"(%x, %x)
      : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// A variable that is padded between steps is gathered with its padding, which is cut off then.
module attributes {weft.target = "cuda"} {
// CHECK-LABEL: @padded(
// CHECK: weft.fp8_matmul
// CHECK-NOT: weft.contract
func.func @padded(%a: tensor<34x64xf32>, %b: tensor<32x16xf32>, %m: tensor<f32>,
                  %n: tensor<f32>) -> tensor<16x64xf32> {
  %x = weft.quantize e4m3 %a by %m : tensor<34x64xf32>, tensor<f32> -> tensor<34x64xbf16>
  %c = weft.extract %x from [0, 0] by [1, 1] : tensor<34x64xbf16> -> tensor<32x64xbf16>
  %d = weft.quantize e5m2 %b by %n : tensor<32x16xf32>, tensor<f32> -> tensor<32x16xbf16>
  %0 = weft.contract "bn,bk->nk"(%d, %c)
      : (tensor<32x16xbf16>, tensor<32x64xbf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
}
