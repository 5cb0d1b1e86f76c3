// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @map_falling_dims(%x: tensor<4x8xf32>) {
  // map_c1
  // expected-error @+1 {{map #0 must name distinct dimensions in rising order, got affine_map<(d0, d1) -> (d1, d0)>}}
  %0 = weft.map ins(%x : tensor<4x8xf32>) maps [affine_map<(i, j) -> (j, i)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_of_sum(%x: tensor<4xf32>) {
  // map_c1
  // expected-error @+1 {{map #0 must name distinct dimensions in rising order}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i + 1)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_from_other_space(%x: tensor<4xf32>) {
  // map_c1
  // expected-error @+1 {{map #0 must go from the 1 dimensions of the result}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i, j) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_with_symbol(%x: tensor<4xf32>) {
  // map_c1
  // expected-error @+1 {{map #0 must go from the 1 dimensions of the result}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i)[s] -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_without_a_map(%x: tensor<f32>) {
  // map_c1
  // expected-error @+1 {{has 0 maps, expected one for each operand: 1}}
  %0 = weft.map ins(%x : tensor<f32>) maps [] -> tensor<f32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_with_too_many_maps(%x: tensor<4xf32>) {
  // map_c1
  // expected-error @+1 {{has 2 maps, expected one for each operand: 1}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>]
      -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_of_result_space_unlike(%x: tensor<4xf32>) {
  // map_c2
  // expected-error @+1 {{result #1 dimension 0 has size 8, expected 4 as operand #0 dimension 0}}
  %0:2 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>]
      -> tensor<4xf32>, tensor<8xf32> {
  ^bb0(%a: f32):
    weft.yield %a, %a : f32, f32
  }
  return
}

// -----

func.func @map_operand_of_other_size(%x: tensor<4xf32>) {
  // map_c2
  // expected-error @+1 {{result #0 dimension 1 has size 8, expected 4 as operand #0 dimension 0}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i, j) -> (j)>] -> tensor<2x8xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_without_results(%x: tensor<4xf32>) {
  // map_c2
  // expected-error @+1 {{must have a result}}
  "weft.map"(%x) <{maps = []}> ({
  ^bb0(%a: f32):
    "weft.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @map_takes_too_few(%x: tensor<4xf32>) {
  // map_c3
  // expected-error @+1 {{region takes 0 scalars, expected one for each operand: 1}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
    %c = arith.constant 1.0 : f32
    weft.yield %c : f32
  }
  return
}

// -----

func.func @map_takes_other_type(%x: tensor<4xf32>) {
  // map_c3
  // expected-error @+1 {{region argument #0 must be 'f32', got 'f64'}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f64):
    weft.yield %a : f64
  }
  return
}

// -----

func.func @map_yields_too_few(%x: tensor<4xf32>) {
  // map_c3
  // expected-error @+1 {{region yields 0 scalars, expected one for each result: 1}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield
  }
  return
}

// -----

func.func @map_yields_other_type(%x: tensor<4xf32>) {
  // map_c3
  // expected-error @+1 {{region yields 'f32' for result #0, expected 'f64'}}
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_holds_other_op(%x: tensor<4xf32>) {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    // map_c4
    // expected-error @+1 {{is not a scalar op that a weft.map may contain}}
    %b = math.floor %a : f32
    weft.yield %b : f32
  }
  return
}

// -----

func.func @contract_one_term_for_two(%x: tensor<4xf32>) {
  // contract_c1
  // expected-error @+1 {{expected an equation with 2 operand terms and a result, got 'a->a'}}
  %0 = weft.contract "a->a" (%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_without_result_term(%x: tensor<4xf32>) {
  // contract_c1
  // expected-error @+1 {{expected an equation with 1 operand terms and a result, got 'a'}}
  %0 = weft.contract "a" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_three_operands(%x: tensor<4xf32>) {
  // contract_c1
  // expected-error @+1 {{takes one or two operands, got 3}}
  %0 = weft.contract "a,a,a->a" (%x, %x, %x)
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_no_operands() {
  // contract_c1
  // expected-error @+1 {{takes one or two operands, got 0}}
  %0 = weft.contract "->a" () : () -> tensor<4xf32>
  return
}

// -----

func.func @contract_term_too_long(%x: tensor<4xf32>) {
  // contract_c1
  // expected-error @+1 {{expected one letter for each dimension of 'tensor<4xf32>', got 'ab'}}
  %0 = weft.contract "ab->a" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_capital_letter(%x: tensor<4xf32>) {
  // contract_c1
  // expected-error @+1 {{expected distinct lower-case letters, got 'A'}}
  %0 = weft.contract "A->A" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_letter_twice(%x: tensor<4x4xf32>) {
  // contract_c2
  // expected-error @+1 {{expected distinct lower-case letters, got 'aa'}}
  %0 = weft.contract "aa->a" (%x) : (tensor<4x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_unknown_letter(%x: tensor<4xf32>) {
  // contract_c2
  // expected-error @+1 {{letter 'b' of the result occurs in no operand}}
  %0 = weft.contract "a->b" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_sizes(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // contract_c3
  // expected-error @+1 {{operand #1 dimension 0 has size 8, expected 4 as operand #0 dimension 0}}
  %0 = weft.contract "a,a->" (%x, %y) : (tensor<4xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @contract_unknown_size(%x: tensor<?xf32>, %y: tensor<8xf32>) {
  // contract_c3
  // expected-error @+1 {{operand #1 dimension 0 has size 8, expected ? as operand #0 dimension 0}}
  %0 = weft.contract "a,a->" (%x, %y) : (tensor<?xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @contract_element_types(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // contract_c4
  // expected-error @+1 {{operand of 'f32' must have the result's element type 'f64'}}
  %0 = weft.contract "a,a->" (%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<f64>
  return
}

// -----

func.func @fill_normal_without_seed() {
  // fill_c1
  // expected-error @+1 {{a normal distribution needs a seed and a stream}}
  %0 = weft.fill normal 1.0 : tensor<4xf32>
  return
}

// -----

func.func @fill_constant_with_seed(%seed: tensor<i64>, %stream: index) {
  // fill_c1
  // expected-error @+1 {{a constant takes no seed and no stream}}
  %0 = weft.fill constant 1.0 seed(%seed : tensor<i64>) stream(%stream) : tensor<4xf32>
  return
}

// -----

func.func @fill_without_deviation(%seed: tensor<i64>, %stream: index) {
  // fill_c2
  // expected-error @+1 {{expected a positive standard deviation, got 0}}
  %0 = weft.fill normal 0.0 seed(%seed : tensor<i64>) stream(%stream) : tensor<4xf32>
  return
}

// -----

func.func @fill_offset_of_a_constant(%i: index) {
  // fill_c3
  // expected-error @+1 {{has 1 offsets and 1 sizes of the whole, expected none or 0 of each}}
  %0 = weft.fill constant 1.0 offsets(%i) of [8] : tensor<4xf32>
  return
}

// -----

func.func @fill_too_few_offsets(%seed: tensor<i64>, %i: index) {
  // fill_c3
  // expected-error @+1 {{has 1 offsets and 2 sizes of the whole, expected none or 2 of each}}
  %0 = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%i) offsets(%i) of [8, 8] : tensor<4x8xf32>
  return
}

// -----

func.func @fill_deviation_of_a_constant(%i: index) {
  // fill_c4
  // expected-error @+1 {{a deviation is given, expected a normal distribution of value 1}}
  %0 = weft.fill constant 1.0 deviation(%i) : tensor<4xf32>
  return
}

// -----

func.func @fill_two_deviations(%seed: tensor<i64>, %i: index) {
  // fill_c4
  // expected-error @+1 {{a deviation is given, expected a normal distribution of value 1}}
  %0 = weft.fill normal 0.5 seed(%seed : tensor<i64>) stream(%i) deviation(%i) : tensor<4xf32>
  return
}

// -----

func.func @map_sum_maps(%x: tensor<8x4xf32>) {
  // map_sum_c1
  // expected-error @+1 {{expected a result, and one map for each operand: 1, got 0}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [] over [8, 4] to [0] -> tensor<8xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_sum_order(%x: tensor<8x4xf32>) {
  // map_sum_c1
  // expected-error @+1 {{map #0 must name distinct dimensions in rising order}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [affine_map<(i, j) -> (j, i)>] over [8, 4] to [0] -> tensor<8xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_sum_sizes(%x: tensor<8x4xf32>) {
  // map_sum_c1
  // expected-error @+1 {{operand #0 does not have the sizes of its map: 'tensor<8x4xf32>'}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] over [8, 5] to [0] -> tensor<8xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_sum_keeps_last(%x: tensor<8x4xf32>) {
  // map_sum_c2
  // expected-error @+1 {{keeps dimension 1, expected rising numbers below 1}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] over [8, 4] to [1] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_sum_result(%x: tensor<8x4xf32>) {
  // map_sum_c2
  // expected-error @+1 {{must result in wide tensors with the sizes of the kept dimensions, got 'tensor<4xf32>'}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] over [8, 4] to [0] -> tensor<4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  return
}

// -----

func.func @map_sum_region(%x: tensor<8x4xf32>) {
  // map_sum_c3
  // expected-error @+1 {{region takes 0 scalars, expected one for each operand: 1}}
  %0 = weft.map_sum ins(%x : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] over [8, 4] to [0] -> tensor<8xf32> {
    %c = arith.constant 1.0 : f32
    weft.yield %c : f32
  }
  return
}

// -----

func.func @map_sum_narrow(%x: tensor<8x4xbf16>) {
  // map_sum_c4
  // expected-error @+1 {{must result in wide tensors with the sizes of the kept dimensions, got 'tensor<8xbf16>'}}
  %0 = weft.map_sum ins(%x : tensor<8x4xbf16>) maps [affine_map<(i, j) -> (i, j)>] over [8, 4] to [0] -> tensor<8xbf16> {
  ^bb0(%a: bf16):
    weft.yield %a : bf16
  }
  return
}

// -----

func.func @sum_of_tf32(%x: tensor<4xf32>) {
  // contract_c6
  // expected-error @+1 {{rounds to tf32, expected two operands of f32}}
  %0 = weft.contract "a->" (%x) tf32 : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @tf32_of_bf16(%x: tensor<4xbf16>) {
  // contract_c6
  // expected-error @+1 {{rounds to tf32, expected two operands of f32}}
  %0 = weft.contract "a,a->" (%x, %x) tf32 : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<f32>
  return
}

// -----

func.func @matmul_equation(%a: tensor<8x32xf32>, %b: tensor<16x32xf32>) {
  // matmul_c1
  // expected-error @+1 {{expected an equation with a letter for each dimension of two operands and the result, got "bk,nk->b"}}
  %0 = weft.matmul "bk,nk->b"(%a, %b)
      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
  return
}

// -----

func.func @matmul_types(%a: tensor<8x32xf32>, %b: tensor<16x32xf32>, %c: tensor<8xf32>) {
  // matmul_c2
  // expected-error @+1 {{expected 'tensor<8x16xf32>', as of the result, got 'tensor<8xf32>'}}
  %0 = weft.matmul "bk,nk->bn"(%a, %b) plus %c : tensor<8xf32>
      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
  return
}

// -----

func.func @matmul_bias(%a: tensor<8x32xf32>, %b: tensor<16x32xf32>, %c: tensor<8xf32>) {
  // matmul_c3
  // expected-error @+1 {{expected a bias with the last dimensions of 'tensor<8x16xf32>', got 'tensor<8xf32>'}}
  %0 = weft.matmul "bk,nk->bn"(%a, %b) bias %c : tensor<8xf32>
      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
  return
}

// -----

func.func @matmul_keeps(%a: tensor<8x32xf32>, %b: tensor<16x32xf32>) {
  // matmul_c4
  // expected-error @+1 {{expected GELU or its gradient, not both, and a kept value only with GELU}}
  %0, %1 = weft.matmul "bk,nk->bn"(%a, %b)
      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32> keeps tensor<8x16xf32>
  return
}

// -----

func.func @matmul_sums(%a: tensor<8x32xf32>, %b: tensor<16x32xf32>) {
  // matmul_c5
  // expected-error @+1 {{expected sums of 'tensor<8xf32>', got 'tensor<16xf32>'}}
  %0, %1 = weft.matmul "bk,nk->bn"(%a, %b)
      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32> sums tensor<16xf32>
  return
}
