// Kernels of few rows, of short rows, and of rows that begin anywhere, in the form for devices.
// REQUIRES: cuda-toolkit
// RUN: weft-opt %s -lower=devices=true -o %t.mlir
// RUN: weft-translate --kernels-to-ptx %t.mlir | FileCheck %s
// RUN: FileCheck %s --check-prefix=MODULE < %t.mlir

// MODULE: module @devices
// Eight rows of 32 chunks each are a block's.
// MODULE: llvm.func @kernel_top_k_0({{.*}}weft.iterations = array<i64: 16384>{{.*}}weft.threads = array<i64: 256>
// MODULE: llvm.func @kernel_softmax_0({{.*}}weft.iterations = array<i64: 16384>{{.*}}weft.threads = array<i64: 256>
// A block takes eight columns.
// MODULE: llvm.func @kernel_cumulative_sum_0({{.*}}weft.iterations = array<i64: 512>{{.*}}weft.threads = array<i64: 256>
// Tokens are sorted by rows; then warps take the thirds of rows, of 64 tokens and of the table.
// MODULE: llvm.func @kernel_embedding_grad_0({{.*}}weft.iterations = array<i64: 65024, 1, 65024, 12573, 50257, 12573, 192, 18847>{{.*}}weft.threads = array<i64: 0, 512, 0, 0, 0, 0, 256, 256>
// Eight blocks share each of 64 sums.
// MODULE: llvm.func @kernel_contract_0({{.*}}weft.iterations = array<i64: 512, 8>{{.*}}weft.threads = array<i64: 256, 256>
// MODULE: llvm.func @kernel_norm_0({{.*}}weft.iterations = array<i64: 8192>{{.*}}weft.threads = array<i64: 256>

// A row is read once, and what is picked is in registers.
// CHECK-LABEL: .entry kernel_top_k_0_phase_0(
// CHECK-NOT: bar.sync
// CHECK-NOT: ld.global.nc.b32
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: shfl.sync.bfly.b32
// CHECK-NOT: st.global.b32
// CHECK: st.global.v4.b32
func.func private @kernel_top_k_0(%x: tensor<32x4096x128xf32>) -> tensor<32x4096x128xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.top_k 2 of %x : tensor<32x4096x128xf32> -> tensor<32x4096x128xf32>
  return %y : tensor<32x4096x128xf32>
}

// CHECK-LABEL: .entry kernel_softmax_0_phase_0(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK-NOT: st.global.b32
// CHECK: st.global.v4.b32
func.func private @kernel_softmax_0(%x: tensor<32x4096x128xf32>) -> tensor<32x4096x128xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.softmax %x : tensor<32x4096x128xf32> -> tensor<32x4096x128xf32>
  return %y : tensor<32x4096x128xf32>
}

func.func private @kernel_cumulative_sum_0(%x: tensor<32x4096x128xf32>) -> tensor<32x4096x128xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.cumulative_sum %x along 1 : tensor<32x4096x128xf32> -> tensor<32x4096x128xf32>
  return %y : tensor<32x4096x128xf32>
}

// CHECK-LABEL: .entry kernel_embedding_grad_0_phase_0(
// CHECK-NOT: atom
// CHECK-LABEL: .entry kernel_embedding_grad_0_phase_7(
// CHECK-NOT: ld.local
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: st.global.v4.b32
func.func private @kernel_embedding_grad_0(%g: tensor<32x1024x768xbf16>, %i: tensor<32x1024xi32>)
    -> tensor<50257x768xf32> attributes {weft.tied = array<i64: -1>} {
  %y = weft.embedding_grad %g[%i]
    : tensor<32x1024x768xbf16>[tensor<32x1024xi32>] -> tensor<50257x768xf32>
  return %y : tensor<50257x768xf32>
}

// What is summed are two dimensions: neighbors of the inner one are divided together, and loaded.
// CHECK-LABEL: .entry kernel_contract_0_phase_0(
// CHECK-NOT: ld.global.nc.b16
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global.nc.b16
// CHECK-LABEL: .entry kernel_contract_0_phase_1(
// CHECK-NOT: atom
func.func private @kernel_contract_0(%x: tensor<256x64x3136xbf16>) -> tensor<64xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.contract "ijk->j" (%x) : (tensor<256x64x3136xbf16>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// Chunks begin where memory is aligned, and what is before and behind them is single elements.
// CHECK-LABEL: .entry kernel_norm_0_phase_0(
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK: st.global.b16
func.func private @kernel_norm_0(%x: tensor<8192x2047xbf16>, %s: tensor<2047xf32>)
    -> tensor<8192x2047xbf16> attributes {weft.tied = array<i64: -1>} {
  %y = weft.norm rms %x scale(%s : tensor<2047xf32>) epsilon = 1.0e-5
    : tensor<8192x2047xbf16> -> tensor<8192x2047xbf16>
  return %y : tensor<8192x2047xbf16>
}
