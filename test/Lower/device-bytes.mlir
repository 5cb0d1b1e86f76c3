// Numbers become bytes 16 at a time, in the order of rows, of columns, or both from one reading.
// RUN: rm -rf %t && mkdir -p %t/bin %t/nvvm/libdevice && touch %t/bin/ptxas && chmod +x %t/bin/ptxas
// RUN: llvm-as /dev/null -o %t/nvvm/libdevice/libdevice.10.bc
// RUN: weft-opt %s -lower=devices=true -o %t/module.mlir
// RUN: env CUDA_HOME=%t weft-translate --kernels-to-ptx %t/module.mlir | FileCheck %s

// CHECK-LABEL:    .entry kernel_encode_0_phase_0(
// CHECK-COUNT-4:  ld.global.nc.v4.b32
// CHECK:          st.global.v4.b32
// CHECK-NOT:      st.global.b8
func.func private @kernel_encode_0(%x: tensor<4096x4096xf32>, %m: tensor<f32>)
    -> (tensor<4096x4096xf8E4M3FN>, tensor<f32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %b, %f = weft.encode e4m3 %x by %m lead 0
      : tensor<4096x4096xf32> -> rows tensor<4096x4096xf8E4M3FN>
  return %b, %f : tensor<4096x4096xf8E4M3FN>, tensor<f32>
}

// CHECK-LABEL:    .entry kernel_encode_1_phase_0(
// CHECK-COUNT-2:  ld.global.nc.v4.b32
// CHECK:          st.global.v4.b32
// CHECK-COUNT-16: ld.shared.b8
// CHECK:          st.global.v4.b32
// CHECK-NOT:      st.global.b8
func.func private @kernel_encode_1(%x: tensor<4096x4096xbf16>, %m: tensor<f32>)
    -> (tensor<4096x4096xf8E5M2>, tensor<4096x4096xf8E5M2>, tensor<f32>)
    attributes {weft.tied = array<i64: -1, -1, -1>} {
  %b, %t, %f = weft.encode e5m2 %x by %m lead 1 : tensor<4096x4096xbf16>
      -> rows tensor<4096x4096xf8E5M2> turned tensor<4096x4096xf8E5M2>
  return %b, %t, %f : tensor<4096x4096xf8E5M2>, tensor<4096x4096xf8E5M2>, tensor<f32>
}

// Tiles that reach beyond the matrix.
// CHECK-LABEL:    .entry kernel_encode_2_phase_0(
// CHECK-COUNT-2:  ld.global.nc.v4.b32
// CHECK-COUNT-16: ld.shared.b8
// CHECK:          st.global.v4.b32
// CHECK-NOT:      st.global.b8
func.func private @kernel_encode_2(%x: tensor<80x48xbf16>, %m: tensor<f32>)
    -> (tensor<48x80xf8E5M2>, tensor<f32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %t, %f = weft.encode e5m2 %x by %m lead 1 : tensor<80x48xbf16> -> turned tensor<48x80xf8E5M2>
  return %t, %f : tensor<48x80xf8E5M2>, tensor<f32>
}
