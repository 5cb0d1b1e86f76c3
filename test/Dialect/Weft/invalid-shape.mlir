// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @reshape_out_of_order(%x: tensor<2x3x4xf32>) {
  // reshape_c1
  // expected-error @+1 {{expected 2 groups of the 3 dimensions of 'tensor<2x3x4xf32>' in order, got}}
  %0 = weft.reshape %x [[1], [0, 2]] : tensor<2x3x4xf32> -> tensor<3x8xf32>
  return
}

// -----

func.func @reshape_missing(%x: tensor<2x3x1xf32>) {
  // reshape_c1
  // expected-error @+1 {{expected 2 groups of the 3 dimensions of 'tensor<2x3x1xf32>' in order, got}}
  %0 = weft.reshape %x [[0], [1]] : tensor<2x3x1xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_empty_group(%x: tensor<2x3xf32>) {
  // reshape_c1
  // expected-error @+1 {{expected 1 groups of the 2 dimensions of 'tensor<2x3xf32>' in order, got}}
  %0 = weft.reshape %x [[0, 1], []] : tensor<2x3xf32> -> tensor<6xf32>
  return
}

// -----

func.func @reshape_of_nothing(%x: tensor<2x3xf32>) {
  // reshape_c1
  // expected-error @+1 {{expected 2 groups of the 2 dimensions of 'tensor<2x3xf32>' in order, got}}
  %0 = weft.reshape %x [[0], [1]] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_sizes(%x: tensor<2x3x4xf32>) {
  // reshape_c2
  // expected-error @+1 {{dimension 1 of 'tensor<2x11xf32>' is not as long as its group in 'tensor<2x3x4xf32>' together}}
  %0 = weft.reshape %x [[0], [1, 2]] : tensor<2x3x4xf32> -> tensor<2x11xf32>
  return
}

// -----

func.func @reshape_batch_merged(%x: tensor<?x3xf32>) {
  // reshape_c2
  // expected-error @+1 {{dimension 0 of 'tensor<?xf32>' is not as long as its group in 'tensor<?x3xf32>' together}}
  %0 = weft.reshape %x [[0, 1]] : tensor<?x3xf32> -> tensor<?xf32>
  return
}

// -----

func.func @reshape_element(%x: tensor<2x3xf32>) {
  // reshape_c3
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'f64'}}
  %0 = weft.reshape %x [[0, 1]] : tensor<2x3xf32> -> tensor<6xf64>
  return
}

// -----

// Six heads do not go over four ranks, though their 24 features would.
#mesh = #weft.mesh<"tp"=4>
func.func @reshape_cut_through_a_group(
    %x: tensor<24xf32, #weft.sharding<#mesh, [{"tp"}]>>) {
  // expected-error @+2 {{dimension 0 of size 6 is cut over axes ["tp"] into 4 shards, which does not divide it}}
  %0 = weft.reshape %x [[0, 1]] : tensor<24xf32, #weft.sharding<#mesh, [{"tp"}]>>
      -> tensor<6x4xf32, #weft.sharding<#mesh, [{"tp"}, {}]>>
  return
}

// -----

#mesh = #weft.mesh<"tp"=4>
func.func @reshape_minor_cut(%x: tensor<2x4xf32, #weft.sharding<#mesh, [{}, {"tp"}]>>) {
  // rule_c4
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 1, which must be replicated}}
  %0 = weft.reshape %x [[0, 1]] : tensor<2x4xf32, #weft.sharding<#mesh, [{}, {"tp"}]>>
      -> tensor<8xf32, #weft.sharding<#mesh, [{}]>>
  return
}

// -----

func.func @concat_of_nothing() {
  // concat_c1
  // expected-error @+1 {{expected an operand and a dimension of 'tensor<2x3xf32>', got 0 and 1}}
  %0 = "weft.concat"() {dim = 1 : i64} : () -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_dimension(%x: tensor<2x3xf32>) {
  // concat_c1
  // expected-error @+1 {{expected an operand and a dimension of 'tensor<2x3xf32>', got 1 and 2}}
  %0 = weft.concat %x dim 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_sizes(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // concat_c2
  // expected-error @+1 {{expected 7 as the output's dimension 1, got 8}}
  %0 = weft.concat %x, %y dim 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @concat_batch(%x: tensor<?x3xf32>) {
  // concat_c2
  // expected-error @+1 {{dimension 0 of an operand has an unknown size}}
  %0 = weft.concat %x, %x dim 0 : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @concat_other_dimension(%x: tensor<2x3xf32>, %y: tensor<4x4xf32>) {
  // expected-error @+1 {{operand #1 dimension 0 has size 4, expected 2 as operand #0 dimension 0}}
  %0 = weft.concat %x, %y dim 1 : tensor<2x3xf32>, tensor<4x4xf32> -> tensor<2x7xf32>
  return
}

// -----

func.func @concat_element(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // concat_c3
  // expected-error @+1 {{operand #1 of 'f64' must have the result's element type 'f32'}}
  %0 = weft.concat %x, %y dim 0 : tensor<2xf32>, tensor<2xf64> -> tensor<4xf32>
  return
}

// -----

// Each rank's half of both would be another half of the whole.
#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @concat_cut(%x: tensor<4xf32, #cut>) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, which must be replicated}}
  %0 = weft.concat %x, %x dim 0 : tensor<4xf32, #cut>, tensor<4xf32, #cut> -> tensor<8xf32, #cut>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#whole = #weft.sharding<#mesh, [{}]>
#pending = #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>
func.func @concat_of_pending_and_whole(%x: tensor<4xf32, #pending>, %y: tensor<4xf32, #whole>) {
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.concat %x, %y dim 0
      : tensor<4xf32, #pending>, tensor<4xf32, #whole> -> tensor<8xf32, #pending>
  return
}

// -----

func.func @split_into_nothing(%x: tensor<2x3xf32>) {
  // split_c1
  // expected-error @+1 {{expected a result and a dimension of 'tensor<2x3xf32>', got 0 and 1}}
  "weft.split"(%x) {dim = 1 : i64} : (tensor<2x3xf32>) -> ()
  return
}

// -----

func.func @split_dimension(%x: tensor<2x3xf32>) {
  // split_c1
  // expected-error @+1 {{expected a result and a dimension of 'tensor<2x3xf32>', got 1 and -1}}
  %0 = weft.split %x dim -1 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @split_sizes(%x: tensor<2x8xf32>) {
  // split_c2
  // expected-error @+1 {{expected 7 as the input's dimension 1, got 8}}
  %0:2 = weft.split %x dim 1 : tensor<2x8xf32> -> tensor<2x3xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @split_batch(%x: tensor<?x3xf32>) {
  // split_c2
  // expected-error @+1 {{dimension 0 of a result has an unknown size}}
  %0:2 = weft.split %x dim 0 : tensor<?x3xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  return
}

// -----

func.func @split_element(%x: tensor<4xf32>) {
  // split_c3
  // expected-error @+1 {{result must be of 'f32', got 'f64'}}
  %0:2 = weft.split %x dim 0 : tensor<4xf32> -> tensor<2xf32>, tensor<2xf64>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @split_cut(%x: tensor<8xf32, #cut>) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, which must be replicated}}
  %0:2 = weft.split %x dim 0 : tensor<8xf32, #cut> -> tensor<4xf32, #cut>, tensor<4xf32, #cut>
  return
}

// -----

func.func @extract_counts(%x: tensor<4x4xf32>) {
  // extract_c1
  // expected-error @+1 {{expected offsets, strides and an output of 2 dimensions, got 1, 2 and 2}}
  %0 = weft.extract %x from [0] by [1, 1] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @extract_stride(%x: tensor<4xf32>) {
  // extract_c1
  // expected-error @+1 {{expected an offset of at least 0 and a stride of at least 1, got 0 and 0}}
  %0 = weft.extract %x from [0] by [0] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @extract_beyond(%x: tensor<9xf32>) {
  // extract_c2
  // expected-error @+1 {{takes elements outside of the input: dimension 0 of 'tensor<9xf32>' from 3 by 3 into 'tensor<3xf32>'}}
  %0 = weft.extract %x from [3] by [3] : tensor<9xf32> -> tensor<3xf32>
  return
}

// -----

func.func @extract_batch(%x: tensor<?xf32>) {
  // extract_c2
  // expected-error @+1 {{takes elements outside of the input: dimension 0 of 'tensor<?xf32>' from 0 by 2 into 'tensor<?xf32>'}}
  %0 = weft.extract %x from [0] by [2] : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

func.func @extract_element(%x: tensor<4xf32>) {
  // extract_c3
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'i32'}}
  %0 = weft.extract %x from [0] by [1] : tensor<4xf32> -> tensor<4xi32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @extract_cut(%x: tensor<8xf32, #cut>) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, which must be replicated}}
  %0 = weft.extract %x from [0] by [2] : tensor<8xf32, #cut> -> tensor<4xf32, #cut>
  return
}

// -----

func.func @pad_counts(%x: tensor<4x4xf32>) {
  // pad_c1
  // expected-error @+1 {{expected low, high, interior and an output of 2 dimensions, got 2, 1, 2 and 2}}
  %0 = weft.pad %x with 0.0 low [0, 0] high [0] interior [0, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<4xf32>) {
  // pad_c1
  // expected-error @+1 {{expected a padding of 0 to 1073741824, got -1}}
  %0 = weft.pad %x with 0.0 low [-1] high [0] interior [0] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad_size(%x: tensor<4xf32>) {
  // pad_c2
  // expected-error @+1 {{dimension 0 of 'tensor<9xf32>' is not that of 'tensor<4xf32>' with padding 1, 0 and 1}}
  %0 = weft.pad %x with 0.0 low [1] high [0] interior [1] : tensor<4xf32> -> tensor<9xf32>
  return
}

// -----

func.func @pad_batch(%x: tensor<?xf32>) {
  // pad_c2
  // expected-error @+1 {{dimension 0 of 'tensor<?xf32>' is not that of 'tensor<?xf32>' with padding 1, 0 and 0}}
  %0 = weft.pad %x with 0.0 low [1] high [0] interior [0] : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

func.func @pad_element(%x: tensor<4xf32>) {
  // pad_c3
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'f64'}}
  %0 = weft.pad %x with 0.0 low [1] high [0] interior [0] : tensor<4xf32> -> tensor<5xf64>
  return
}

// -----

// The constant would be added once for each rank.
#mesh = #weft.mesh<"tp"=2>
#pending = #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>
func.func @pad_of_pending(%x: tensor<4xf32, #pending>) {
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.pad %x with 1.0 low [1] high [0] interior [0]
      : tensor<4xf32, #pending> -> tensor<5xf32, #pending>
  return
}

// -----

func.func @select_dimensions(%x: tensor<4x3xf32>, %i: index) {
  // select_c1
  // expected-error @+1 {{expected 'tensor<4xf32>' to be one index of the first dimension of 'tensor<4x3xf32>'}}
  %0 = weft.select %x[%i] : tensor<4x3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @select_element(%x: tensor<4x3xf32>, %i: index) {
  // select_c2
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'i32'}}
  %0 = weft.select %x[%i] : tensor<4x3xf32> -> tensor<3xi32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#whole = #weft.sharding<#mesh, [{}]>
func.func @select_cut(%x: tensor<4x3xf32, #rows>, %i: index) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, which must be replicated}}
  %0 = weft.select %x[%i] : tensor<4x3xf32, #rows> -> tensor<3xf32, #whole>
  return
}
