// Kernels as entries for CUDA devices. Kernels that call no function of the toolkit need no toolkit: this one is a fake.
// RUN: rm -rf %t && mkdir -p %t/bin %t/nvvm/libdevice && touch %t/bin/ptxas && chmod +x %t/bin/ptxas
// RUN: llvm-as /dev/null -o %t/nvvm/libdevice/libdevice.10.bc
// RUN: weft-opt %s -lower | env CUDA_HOME=%t weft-translate --kernels-to-ptx | FileCheck %s

// CHECK: .version 8.0
// CHECK: .target sm_80

// The kernel itself is gone: its one phase is an entry.
// CHECK-NOT: .func
// CHECK-LABEL: .entry kernel_map_0_phase_0(
// CHECK: .maxntid 256
// CHECK: .minnctapersm 2
// Threads take turns at 24 rounds.
// CHECK: %ctaid.x
// CHECK: setp.gt.u64 {{.*}}, 23
// CHECK: %nctaid.x
// The rows stay loops. Operands are in the device's memory, and one of them is read-only.
// CHECK: .pragma "nounroll"
// CHECK: ld.global.nc
// CHECK: st.global
// CHECK-NOT: kernel_map_0_phase_1(

func.func private @kernel_map_0(%x: tensor<24x1024xf32>, %y: tensor<1024xf32>) -> tensor<24x1024xf32>
    attributes {weft.tied = array<i64: -1>} {
  %z = weft.map ins(%x, %y : tensor<24x1024xf32>, tensor<1024xf32>)
    maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<24x1024xf32> {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    weft.yield %2 : f32
  }
  return %z : tensor<24x1024xf32>
}

// The coordinates and buffers come before immediates.
// CHECK-LABEL: .entry kernel_copy_0_phase_0(
// CHECK-NEXT: .param .u64 .ptr
// CHECK-NEXT: .param .u64 .ptr
// CHECK-NEXT: .param .u64 .ptr
// CHECK-NEXT: .param .u64 kernel_copy_0_phase_0_param_3
func.func private @kernel_copy_0(%i: index, %x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<4xf32>
}
