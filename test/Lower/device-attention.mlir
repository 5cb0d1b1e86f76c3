// Attention that no library does, in the shape that devices run.
// REQUIRES: cuda-toolkit
// RUN: weft-opt %s -lower=devices=true | weft-translate --kernels-to-ptx | FileCheck %s

// Tiles of scores come from shared memory, four numbers at once, and what is added up is in registers.
// CHECK-LABEL: .entry kernel_attention_0_phase_0(
// CHECK: .reqntid 256
// CHECK-NOT: .local
// CHECK-DAG: ld.shared.v4.b32
// CHECK-DAG: st.shared.v4.b32
// CHECK-DAG: fma.rn.f32
// CHECK-DAG: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1;
// CHECK-NOT: atom
// CHECK-NOT: kernel_attention_0_phase_1(
func.func private @kernel_attention_0(%q: tensor<2x4096x8x4x128xbf16>, %k: tensor<2x4096x8x128xbf16>,
                                      %v: tensor<2x4096x8x128xbf16>)
    -> (tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %o, %l = weft.attention (%q, %k, %v) scale = 0.125 dropout = 0.0
    : tensor<2x4096x8x4x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>
    -> tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>
  return %o, %l : tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>
}

// Starts of documents are looked up, not stored.
// CHECK-LABEL: .entry kernel_attention_1_phase_0(
// CHECK-NOT: .local
// CHECK: ld.global{{.*}}b32
// CHECK-NOT: kernel_attention_1_phase_1(
func.func private @kernel_attention_1(%q: tensor<2x4096x8x4x128xbf16>, %k: tensor<2x4096x8x128xbf16>,
                                      %v: tensor<2x4096x8x128xbf16>, %s: tensor<2x4096xi32>)
    -> (tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %o, %l = weft.attention (%q, %k, %v) scale = 0.125 dropout = 0.0 starts(%s : tensor<2x4096xi32>)
    : tensor<2x4096x8x4x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>
    -> tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>
  return %o, %l : tensor<2x4096x8x4x128xbf16>, tensor<2x8x4x4096xf32>
}

// First the gradients of queries, and o'·o of each for what comes then: those of keys and values, each by one block in one order.
// CHECK-LABEL: .entry kernel_attention_grad_0_phase_0(
// CHECK-NOT: atom
// CHECK-LABEL: .entry kernel_attention_grad_0_phase_1(
// CHECK-NOT: atom
// CHECK-NOT: kernel_attention_grad_0_phase_2(
func.func private @kernel_attention_grad_0(%q: tensor<2x4096x8x4x128xf32>, %k: tensor<2x4096x8x128xf32>,
                                           %v: tensor<2x4096x8x128xf32>, %o: tensor<2x4096x8x4x128xf32>,
                                           %l: tensor<2x8x4x4096xf32>, %g: tensor<2x4096x8x4x128xf32>)
    -> (tensor<2x4096x8x4x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>)
    attributes {weft.tied = array<i64: -1, -1, -1>} {
  %y:3 = weft.attention_grad (%q, %k, %v) output(%o, %l) gradient(%g) scale = 0.125 dropout = 0.0
    : tensor<2x4096x8x4x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x8x4x128xf32>, tensor<2x8x4x4096xf32>, tensor<2x4096x8x4x128xf32>
    -> tensor<2x4096x8x4x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>
  return %y#0, %y#1, %y#2 : tensor<2x4096x8x4x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>
}
