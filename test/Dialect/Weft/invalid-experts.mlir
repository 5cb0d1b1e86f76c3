// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @top_k_of_scalar(%x: tensor<f32>) {
  // top_k_c1
  // expected-error @+1 {{expected a tensor with a last dimension, got a scalar}}
  %0 = weft.top_k 1 of %x : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @top_k_element(%x: tensor<2x4xf32>, %b: tensor<4xf64>) {
  // top_k_c1
  // expected-error @+1 {{bias must be of 'f32', got 'f64'}}
  %0 = weft.top_k 1 of %x bias(%b : tensor<4xf64>) : tensor<2x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @top_k_groups(%x: tensor<2x8xf32>) {
  // top_k_c2
  // expected-error @+1 {{expected groups that divide a row of 8, and 1 to all groups kept, got 3 and 1}}
  %0 = weft.top_k 1 of %x {groups = 3 : i64} : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @top_k_kept_groups(%x: tensor<2x8xf32>) {
  // top_k_c2
  // expected-error @+1 {{and 1 to all groups kept, got 4 and 5}}
  %0 = weft.top_k 1 of %x {groups = 4 : i64, kept_groups = 5 : i64}
      : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @top_k_columns(%x: tensor<2x8xf32>) {
  // top_k_c4
  // expected-error @+1 {{expected one number of columns, from 1 to 8, got [6, 6]}}
  %0 = weft.top_k 1 of %x columns [6, 6] : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @top_k_groups_of_columns(%x: tensor<2x8xf32>) {
  // top_k_c2
  // expected-error @+1 {{expected groups that divide a row of 6, and 1 to all groups kept, got 4 and 1}}
  %0 = weft.top_k 1 of %x columns [6] {groups = 4 : i64} : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @top_k_count(%x: tensor<2x8xf32>) {
  // top_k_c3
  // expected-error @+1 {{expected a count of 1 to 4, got 5}}
  %0 = weft.top_k 5 of %x {groups = 4 : i64, kept_groups = 2 : i64}
      : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @top_k_of_none(%x: tensor<2x8xf32>) {
  // top_k_c3
  // expected-error @+1 {{expected a count of 1 to 8, got 0}}
  %0 = weft.top_k 0 of %x : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @cumulative_sum_element(%x: tensor<2x3xf32>) {
  // cumulative_sum_c1
  // expected-error @+1 {{output must be of 'f32', got 'f64'}}
  %0 = weft.cumulative_sum %x along 0 : tensor<2x3xf32> -> tensor<2x3xf64>
  return
}

// -----

func.func @cumulative_sum_dimension(%x: tensor<2x3xf32>) {
  // cumulative_sum_c2
  // expected-error @+1 {{expected a dimension from 0 to 1, got 2}}
  %0 = weft.cumulative_sum %x along 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2>
#cut = #weft.sharding<#mesh, [{"dp"}, {}]>
func.func @cumulative_sum_cut(%x: tensor<2x3xf32, #cut>) {
  // cumulative_sum_c2
  // expected-error @+1 {{cannot be cut}}
  %0 = weft.cumulative_sum %x along 0 : tensor<2x3xf32, #cut> -> tensor<2x3xf32, #cut>
  return
}

// -----

func.func @dispatch_ranks(%x: tensor<6x4xf32>, %m: tensor<2x6x8xf32>) {
  // dispatch_c1
  // expected-error @+1 {{expected tokens of [group, token, hidden], slots of [expert, group, slot, hidden] and a mask of [group, token, expert], got 'tensor<6x4xf32>', 'tensor<8x2x3x4xf32>' and 'tensor<2x6x8xf32>'}}
  %0 = weft.dispatch %x by %m at %m : tensor<6x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
      -> tensor<8x2x3x4xf32>
  return
}

// -----

func.func @dispatch_element(%x: tensor<2x6x4xf64>, %m: tensor<2x6x8xf32>) {
  // dispatch_c2
  // expected-error @+1 {{weights must be of 'f64', got 'f32'}}
  %0 = weft.dispatch %x by %m at %m : tensor<2x6x4xf64>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
      -> tensor<8x2x3x4xf64>
  return
}

// -----

func.func @combine_ranks(%x: tensor<8x2x3x4xf32>, %m: tensor<2x6x8xf32>) {
  // combine_c1
  // expected-error @+1 {{expected tokens of [group, token, hidden]}}
  %0 = weft.combine %x by %m at %m : tensor<8x2x3x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
      -> tensor<2x6xf32>
  return
}

// -----

func.func @combine_element(%x: tensor<8x2x3x4xbf16>, %m: tensor<2x6x8xf32>) {
  // combine_c2
  // expected-error @+1 {{output must be of 'f32', got 'bf16'}}
  %0 = weft.combine %x by %m at %m : tensor<8x2x3x4xbf16>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
      -> tensor<2x6x4xbf16>
  return
}

// -----

func.func @slot_products_ranks(%x: tensor<2x6x4xf32>, %y: tensor<2x3x4xf32>,
                               %m: tensor<2x6x8xf32>) {
  // slot_products_c1
  // expected-error @+1 {{expected tokens of [group, token, hidden]}}
  %0 = weft.slot_products %x, %y at %m : tensor<2x6x4xf32>, tensor<2x3x4xf32>, tensor<2x6x8xf32>
      -> tensor<2x6x8xf32>
  return
}

// -----

func.func @slot_products_element(%x: tensor<2x6x4xbf16>, %y: tensor<8x2x3x4xf32>,
                                 %m: tensor<2x6x8xf32>) {
  // slot_products_c2
  // expected-error @+1 {{slots must be of 'bf16', got 'f32'}}
  %0 = weft.slot_products %x, %y at %m : tensor<2x6x4xbf16>, tensor<8x2x3x4xf32>, tensor<2x6x8xf32>
      -> tensor<2x6x8xf32>
  return
}
