// Registers and memory of kernels on each architecture, by the toolkit's assembler.
// REQUIRES: cuda-toolkit
// RUN: weft-opt %s -lower | weft-translate --kernels-to-resources | FileCheck %s

// CHECK:      sm_80 kernel_map_0_phase_0: {{[0-9]+}} registers, {{[0-9]+}} bytes of stack, 0 spilled, 0 shared
// CHECK-NEXT: sm_80 kernel_map_1_phase_0: {{[0-9]+}} registers, {{[0-9]+}} bytes of stack, 0 spilled, 0 shared
// CHECK-NEXT: sm_90 kernel_map_0_phase_0:
// CHECK-NEXT: sm_90 kernel_map_1_phase_0
// CHECK-NEXT: sm_100 kernel_map_0_phase_0
// CHECK-NEXT: sm_100 kernel_map_1_phase_0
// CHECK-NOT: kernel_map

// A function of the C library, and intrinsics that devices have no instructions for.
func.func private @kernel_map_0(%x: tensor<4xf64>) -> tensor<4xf64>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x : tensor<4xf64>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%0: f64):
    %1 = math.erf %0 : f64
    %2 = math.cos %1 : f64
    %3 = math.log %2 : f64
    weft.yield %3 : f64
  }
  return %y : tensor<4xf64>
}
func.func private @kernel_map_1(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%0: f32):
    %1 = math.sin %0 : f32
    %2 = math.sqrt %1 : f32
    weft.yield %2 : f32
  }
  return %y : tensor<4xf32>
}
