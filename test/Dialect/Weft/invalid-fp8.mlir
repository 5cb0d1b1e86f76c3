// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @of_f64(%x: tensor<4x8xf64>, %m: tensor<f32>) {
  // encode_c1
  // expected-error @+1 {{expected numbers of f32 or a narrow type, got 'tensor<4x8xf64>'}}
  %0, %1 = weft.encode e4m3 %x by %m lead 0 : tensor<4x8xf64> -> rows tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @of_another_format(%x: tensor<4x8xf32>, %m: tensor<f32>) {
  // encode_c2
  // expected-error @+1 {{expected bytes of 'tensor<4x8xf8E4M3FN>' or, turned, of 'tensor<4x8xf8E4M3FN>'}}
  %0, %1 = weft.encode e4m3 %x by %m lead 0 : tensor<4x8xf32> -> rows tensor<4x8xf8E5M2>
  return
}

// -----

func.func @not_turned(%x: tensor<4x8xf32>, %m: tensor<f32>) {
  // encode_c2
  // expected-error @+1 {{expected bytes of 'tensor<4x8xf8E4M3FN>' or, turned, of 'tensor<8x4xf8E4M3FN>'}}
  %0, %1 = weft.encode e4m3 %x by %m lead 1 : tensor<4x8xf32> -> turned tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @nothing_leads(%x: tensor<4x8xf32>, %m: tensor<f32>) {
  // encode_c3
  // expected-error @+1 {{expected turned bytes if and only if some, not all, dimensions lead, got 2 of 'tensor<4x8xf32>'}}
  %0, %1 = weft.encode e4m3 %x by %m lead 2 : tensor<4x8xf32> -> turned tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @equation(%x: tensor<16x16xf8E4M3FN>, %f: tensor<f32>) {
  // fp8_matmul_c1
  // expected-error @+1 {{expected an equation with a letter for each dimension of two operands and the result, got "bk,k->bn"}}
  %0 = weft.fp8_matmul "bk,k->bn"(%x, %x) factors(%f, %f)
      : tensor<16x16xf8E4M3FN>, tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
  return
}

// -----

func.func @both_of_e5m2(%x: tensor<16x16xf8E5M2>, %f: tensor<f32>) {
  // fp8_matmul_c2
  // expected-error @+1 {{expected an operand of f8E4M3FN and a result of f32 or bf16}}
  %0 = weft.fp8_matmul "bk,nk->bn"(%x, %x) factors(%f, %f)
      : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  return
}

// -----

func.func @wide_bias(%x: tensor<16x16xf8E4M3FN>, %f: tensor<f32>, %b: tensor<16xf32>) {
  // fp8_matmul_c3
  // expected-error @+1 {{expected an addend and the last dimensions of a bias of type 'tensor<16x16xf32>'}}
  %0 = weft.fp8_matmul "bk,nk->bn"(%x, %x) factors(%f, %f) bias %b : tensor<16xf32>
      : tensor<16x16xf8E4M3FN>, tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
  return
}
