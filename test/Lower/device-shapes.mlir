// Kernels in the form for devices: neighbors by 16 bytes, rows by blocks. Kernels that call no function of the toolkit need no toolkit.
// RUN: rm -rf %t && mkdir -p %t/bin %t/nvvm/libdevice && touch %t/bin/ptxas && chmod +x %t/bin/ptxas
// RUN: llvm-as /dev/null -o %t/nvvm/libdevice/libdevice.10.bc
// RUN: weft-opt %s -lower=devices=true -o %t/module.mlir
// RUN: env CUDA_HOME=%t weft-translate --kernels-to-ptx %t/module.mlir | FileCheck %s
// RUN: FileCheck %s --check-prefix=MODULE < %t/module.mlir

// The host's kernels are beside those of devices, with the phases of their own.
// MODULE: llvm.func @kernel_map_0({{.*}}weft.iterations = array<i64: 4096>
// MODULE: llvm.func @kernel_norm_grad_0({{.*}}weft.iterations = array<i64: 1>
// MODULE: module @devices
// MODULE: llvm.func @kernel_map_0({{.*}}weft.iterations = array<i64: 1048576>
// MODULE-NOT: weft.threads
// MODULE: llvm.func @kernel_norm_0({{.*}}weft.iterations = array<i64: 8192>{{.*}}weft.threads = array<i64: 256>
// MODULE: llvm.func @kernel_norm_grad_0({{.*}}weft.iterations = array<i64: 396, 64>{{.*}}weft.threads = array<i64: 256, 256>
// Many threads share the work that one thread of a host does.
// MODULE: llvm.func @kernel_copy_0({{.*}}weft.iterations = array<i64: 2097152>
// MODULE: llvm.func @kernel_partial_0({{.*}}weft.iterations = array<i64: 2097152>
// MODULE: llvm.func @kernel_contract_0({{.*}}weft.iterations = array<i64: 256>{{.*}}weft.threads = array<i64: 256>
// MODULE: llvm.func @kernel_contract_1({{.*}}weft.iterations = array<i64: 2097152>
// A block takes 16 rows of 16 chunks.
// MODULE: llvm.func @kernel_norm_1({{.*}}weft.iterations = array<i64: 4096>{{.*}}weft.threads = array<i64: 256>
// MODULE: llvm.func @kernel_contract_2({{.*}}weft.iterations = array<i64: 4096>{{.*}}weft.threads = array<i64: 256>

// Eight elements of bf16 at once, also of the operand that has one dimension, and nothing else.
// CHECK-LABEL: .entry kernel_map_0_phase_0(
// CHECK: .maxntid 256
// CHECK-NOT: ld.global.nc.b16
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global.nc.b16
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: st.global.b16
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
func.func private @kernel_map_0(%x: tensor<4096x2048xbf16>, %y: tensor<2048xbf16>)
    -> tensor<4096x2048xbf16> attributes {weft.tied = array<i64: -1>} {
  %z = weft.map ins(%x, %y : tensor<4096x2048xbf16>, tensor<2048xbf16>)
    maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<4096x2048xbf16> {
  ^bb0(%0: bf16, %1: bf16):
    %2 = arith.extf %0 : bf16 to f32
    %3 = arith.extf %1 : bf16 to f32
    %4 = arith.addf %2, %3 : f32
    %5 = arith.truncf %4 : f32 to bf16
    weft.yield %5 : bf16
  }
  return %z : tensor<4096x2048xbf16>
}

// A block takes a row, which is read once: what was added up is still in registers.
// CHECK-LABEL: .entry kernel_norm_0_phase_0(
// CHECK: .reqntid 256
// CHECK-DAG: st.global.v4.b32
// CHECK-DAG: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK-DAG: bar.sync 0;
// CHECK-DAG: st.shared.b32
// CHECK-NOT: atom
func.func private @kernel_norm_0(%x: tensor<8192x2048xbf16>, %s: tensor<2048xf32>)
    -> tensor<8192x2048xbf16> attributes {weft.tied = array<i64: -1>} {
  %y = weft.norm rms %x scale(%s : tensor<2048xf32>) epsilon = 1.0e-5
    : tensor<8192x2048xbf16> -> tensor<8192x2048xbf16>
  return %y : tensor<8192x2048xbf16>
}

// The sums for the scale's gradient stay in registers for all of a block's rows, and are added up by a second phase.
// CHECK-LABEL: .entry kernel_norm_grad_0_phase_0(
// CHECK: .reqntid 256
// CHECK-NOT: ld.local
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: st.global.v4.b32
// CHECK-NOT: atom
// CHECK-LABEL: .entry kernel_norm_grad_0_phase_1(
// CHECK: bar.sync 0;
// CHECK-NOT: kernel_norm_grad_0_phase_2(
func.func private @kernel_norm_grad_0(%x: tensor<8192x2048xbf16>, %s: tensor<2048xf32>,
                                      %g: tensor<8192x2048xbf16>)
    -> (tensor<8192x2048xbf16>, tensor<2048xf32>) attributes {weft.tied = array<i64: -1, -1>} {
  %y:2 = weft.norm_grad rms %x scale(%s : tensor<2048xf32>)
    gradient(%g : tensor<8192x2048xbf16>) epsilon = 1.0e-5
    : tensor<8192x2048xbf16> -> tensor<8192x2048xbf16>, tensor<2048xf32>
  return %y#0, %y#1 : tensor<8192x2048xbf16>, tensor<2048xf32>
}

func.func private @kernel_copy_0(%x: tensor<8192x2048xbf16>) -> tensor<8192x2048xbf16>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<8192x2048xbf16>
}

func.func private @kernel_partial_0(%i: index, %x: tensor<8192x2048xbf16>) -> tensor<8192x2048xbf16>
    attributes {weft.tied = array<i64: 1>} {
  %y = weft.partial %x over ["dp"] of #weft.mesh<"dp"=2> index %i
    : tensor<8192x2048xbf16> -> tensor<8192x2048xbf16>
  return %y : tensor<8192x2048xbf16>
}

// What is summed lies between what is kept.
func.func private @kernel_contract_0(%x: tensor<8x512x2048xbf16>) -> tensor<8x2048xbf16>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.contract "ijk->ik" (%x) : (tensor<8x512x2048xbf16>) -> tensor<8x2048xbf16>
  return %y : tensor<8x2048xbf16>
}

// Nothing is summed.
func.func private @kernel_contract_1(%x: tensor<8192x2048xbf16>, %y: tensor<8192xbf16>)
    -> tensor<8192x2048xbf16> attributes {weft.tied = array<i64: -1>} {
  %z = weft.contract "ij,i->ij" (%x, %y)
    : (tensor<8192x2048xbf16>, tensor<8192xbf16>) -> tensor<8192x2048xbf16>
  return %z : tensor<8192x2048xbf16>
}

// A row is half a warp's work, which needs no barrier.
// CHECK-LABEL: .entry kernel_norm_1_phase_0(
// CHECK-NOT: bar.sync
// CHECK: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1;
// CHECK-NOT: bar.sync
func.func private @kernel_norm_1(%x: tensor<65536x128xbf16>, %s: tensor<128xf32>)
    -> tensor<65536x128xbf16> attributes {weft.tied = array<i64: -1>} {
  %y = weft.norm rms %x scale(%s : tensor<128xf32>) epsilon = 1.0e-5
    : tensor<65536x128xbf16> -> tensor<65536x128xbf16>
  return %y : tensor<65536x128xbf16>
}

// Tiles go through shared memory: loads and stores are of 16 bytes.
// CHECK-LABEL: .entry kernel_contract_2_phase_0(
// CHECK-NOT: ld.global.nc.b16
// CHECK: ld.global.nc.v4.b32
// CHECK: bar.sync 0;
// CHECK-NOT: st.global.b16
// CHECK: st.global.v4.b32
func.func private @kernel_contract_2(%x: tensor<8192x2048xbf16>) -> tensor<2048x8192xbf16>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.contract "ij->ji" (%x) : (tensor<8192x2048xbf16>) -> tensor<2048x8192xbf16>
  return %y : tensor<2048x8192xbf16>
}
