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
// CHECK-NOT: inline asm
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

// With more than 12 operands, threads compute all addresses in each turn from its number, whose
// origin LLVM does not see. Otherwise it would keep each address from turn to turn, in registers.
// CHECK-LABEL: .entry kernel_map_1_phase_0(
// CHECK: begin inline asm
// CHECK-NEXT: mov.u64
// CHECK-NEXT: end inline asm
// CHECK-NOT: setp
// CHECK: ld.global.nc
func.func private @kernel_map_1(
    %x0: tensor<65536xf32>, %x1: tensor<65536xf32>, %x2: tensor<65536xf32>,
    %x3: tensor<65536xf32>, %x4: tensor<65536xf32>, %x5: tensor<65536xf32>,
    %x6: tensor<65536xf32>, %x7: tensor<65536xf32>, %x8: tensor<65536xf32>,
    %x9: tensor<65536xf32>, %x10: tensor<65536xf32>, %x11: tensor<65536xf32>) -> tensor<65536xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11 :
    tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>,
    tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>,
    tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>)
    maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
    affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
    affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
    affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<65536xf32> {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32,
      %a6: f32, %a7: f32, %a8: f32, %a9: f32, %a10: f32, %a11: f32):
    %s1 = arith.addf %a0, %a1 : f32
    %s2 = arith.addf %s1, %a2 : f32
    %s3 = arith.addf %s2, %a3 : f32
    %s4 = arith.addf %s3, %a4 : f32
    %s5 = arith.addf %s4, %a5 : f32
    %s6 = arith.addf %s5, %a6 : f32
    %s7 = arith.addf %s6, %a7 : f32
    %s8 = arith.addf %s7, %a8 : f32
    %s9 = arith.addf %s8, %a9 : f32
    %s10 = arith.addf %s9, %a10 : f32
    %s11 = arith.addf %s10, %a11 : f32
    weft.yield %s11 : f32
  }
  return %y : tensor<65536xf32>
}
