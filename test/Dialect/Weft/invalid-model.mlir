// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @norm_scale(%x: tensor<4x8xf32>, %s: tensor<4xf32>) {
  // norm_c1
  // expected-error @+1 {{operand #1 dimension 0 has size 4, expected 8 as operand #0 dimension 1}}
  %0 = weft.norm rms %x scale(%s : tensor<4xf32>) epsilon = 1.0e-5
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @norm_of_scalar(%x: tensor<f32>, %s: tensor<4xf32>) {
  // norm_c1
  // expected-error @+1 {{operand #0 must have 1 dimensions, got 0}}
  %0 = weft.norm rms %x scale(%s : tensor<4xf32>) epsilon = 1.0e-5 : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @norm_rms_bias(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // norm_c2
  // expected-error @+1 {{an rms norm has no bias}}
  %0 = weft.norm rms %x scale(%s : tensor<8xf32>) bias(%s : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @norm_epsilon(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // norm_c3
  // expected-error @+1 {{epsilon must be positive, got 0}}
  %0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 0.0
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @norm_grad_scale(%x: tensor<4x8xf32>, %s: tensor<8x1xf32>) {
  // norm_c1
  // expected-error @+1 {{operand #1 must have 1 dimensions, got 2}}
  %0:2 = weft.norm_grad rms %x scale(%s : tensor<8x1xf32>) gradient(%x : tensor<4x8xf32>)
      epsilon = 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @rotary_table_shape() {
  // rotary_table_c1
  // expected-error @+1 {{expected a result of [2, positions, 1], got 'tensor<2x4x2xf32>'}}
  %0 = weft.rotary_table [1.0] : tensor<2x4x2xf32>
  return
}

// -----

func.func @rotary_table_rank() {
  // rotary_table_c1
  // expected-error @+1 {{result #0 must have 3 dimensions, got 0}}
  %0 = weft.rotary_table [] : tensor<f32>
  return
}

// -----

func.func @rotary_too_many_frequencies(%x: tensor<2x4x2xf32>, %t: tensor<2x4x2xf32>) {
  // rotary_c1
  // expected-error @+1 {{expected a table of [2, positions, m] with 2m at most 2, got 'tensor<2x4x2xf32>'}}
  %0 = weft.rotary %x table(%t : tensor<2x4x2xf32>) : tensor<2x4x2xf32> -> tensor<2x4x2xf32>
  return
}

// -----

func.func @rotary_positions(%x: tensor<2x4x2xf32>, %t: tensor<2x8x1xf32>) {
  // rotary_c1
  // expected-error @+1 {{operand #1 dimension 1 has size 8, expected 4 as operand #0 dimension 1}}
  %0 = weft.rotary %x table(%t : tensor<2x8x1xf32>) : tensor<2x4x2xf32> -> tensor<2x4x2xf32>
  return
}

// -----

func.func @rotary_of_two_dimensions(%x: tensor<4x2xf32>, %t: tensor<2x2x1xf32>) {
  // rotary_c2
  // expected-error @+1 {{operand #0 must have 3 dimensions, got 2}}
  %0 = weft.rotary %x table(%t : tensor<2x2x1xf32>) : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @rotary_result(%x: tensor<2x4x2xf32>, %t: tensor<2x4x1xf32>) {
  // rotary_c2
  // expected-error @+1 {{result #0 dimension 0 has size 3, expected 2 as operand #0 dimension 0}}
  %0 = weft.rotary %x table(%t : tensor<2x4x1xf32>) : tensor<2x4x2xf32> -> tensor<3x4x2xf32>
  return
}

// -----

func.func @embedding_table(%t: tensor<8xf32>, %ids: tensor<2x4xi32>) {
  // embedding_c1
  // expected-error @+1 {{operand #0 must have 2 dimensions, got 1}}
  %0 = weft.embedding %t[%ids] : tensor<8xf32>[tensor<2x4xi32>] -> tensor<2x4x8xf32>
  return
}

// -----

func.func @embedding_element_type(%t: tensor<8x3xf32>, %ids: tensor<2x4xi32>) {
  // embedding_c2
  // expected-error @+1 {{expected an output of the table's element type, 'f32', or of its wide type, got 'f64'}}
  %0 = weft.embedding %t[%ids] : tensor<8x3xf32>[tensor<2x4xi32>] -> tensor<2x4x3xf64>
  return
}

// -----

func.func @embedding_grad_width(%g: tensor<2x4x3xf32>, %ids: tensor<2x4xi32>) {
  // embedding_grad_c1
  // expected-error @+1 {{result #0 dimension 1 has size 5, expected 3 as operand #1 dimension 2}}
  %0 = weft.embedding_grad %g[%ids] : tensor<2x4x3xf32>[tensor<2x4xi32>] -> tensor<8x5xf32>
  return
}

// -----

func.func @embedding_grad_element_type(%g: tensor<2x4x3xf32>, %ids: tensor<2x4xi32>) {
  // embedding_grad_c2
  // expected-error @+1 {{output must be of 'f32', got 'f64'}}
  %0 = weft.embedding_grad %g[%ids] : tensor<2x4x3xf32>[tensor<2x4xi32>] -> tensor<8x3xf64>
  return
}

// -----

func.func @embedding_grad_of_scalar(%g: tensor<3xf32>, %ids: tensor<i32>) {
  // embedding_grad_c1
  // expected-error @+1 {{result #0 must have 2 dimensions, got 0}}
  %0 = weft.embedding_grad %g[%ids] : tensor<3xf32>[tensor<i32>] -> tensor<f32>
  return
}

// -----

func.func @attention_shapes(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x3x8xf32>) {
  // attention_c1
  // expected-error @+1 {{operand #1 dimension 2 has size 3, expected 2 as operand #0 dimension 2}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_rate(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // attention_c2
  // expected-error @+1 {{the dropout rate must lie in [0, 1), got 1}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 1.0
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // attention_c4
  // expected-error @+1 {{the window must be at least 1, got 0}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 window = 0
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_bidirectional_window(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // attention_c6
  // expected-error @+1 {{a bidirectional attention has no window}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 window = 2 bidirectional
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_bidirectional_starts(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                                          %s: tensor<2x4xi32>) {
  // attention_c6
  // expected-error @+1 {{a bidirectional attention has no starts}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 bidirectional starts(%s : tensor<2x4xi32>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_starts(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %s: tensor<2x8xi32>) {
  // attention_c1
  // expected-error @+1 {{operand #3 dimension 1 has size 8, expected 4 as operand #0 dimension 1}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 starts(%s : tensor<2x8xi32>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_key(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // attention_c2
  // expected-error @+1 {{expected seed, step and layer if and only if there is dropout}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.5
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_key_without_dropout(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                                         %s: tensor<i64>, %l: index) {
  // attention_c2
  // expected-error @+1 {{expected seed, step and layer if and only if there is dropout}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0
      key(%s, %s, %l : tensor<i64>, tensor<i64>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @cross_entropy_shapes(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) {
  // cross_entropy_c1
  // expected-error @+1 {{result #0 must have 2 dimensions, got 1}}
  %0:2 = weft.cross_entropy %x[%t]
      : tensor<2x4x8xf32>[tensor<2x4xi32>] -> tensor<2xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @cross_entropy_element_type(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) {
  // cross_entropy_c2
  // expected-error @+1 {{lse must be of 'f32', got 'f64'}}
  %0:2 = weft.cross_entropy %x[%t]
      : tensor<2x4x8xf32>[tensor<2x4xi32>] -> tensor<2x4xf64>, tensor<2x4xf32>
  return
}

// -----

func.func @dropout_rate(%x: tensor<4xf32>, %s: tensor<i64>, %l: index) {
  // dropout_c1
  // expected-error @+1 {{the rate must lie between 0 and 1, got 0}}
  %0 = weft.dropout %x rate = 0.0 site = 1 key(%s, %s, %l : tensor<i64>, tensor<i64>)
      : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @dropout_offsets_without_sizes(%x: tensor<4xf32>, %s: tensor<i64>, %l: index) {
  // dropout_c2
  // expected-error @+1 {{has 1 offsets and 0 sizes of the whole, expected none or 1 of each}}
  %0 = weft.dropout %x rate = 0.5 site = 1 key(%s, %s, %l : tensor<i64>, tensor<i64>) offsets(%l)
      : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @attention_too_few_offsets(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                                     %s: tensor<i64>, %l: index) {
  // attention_c3
  // expected-error @+1 {{has 1 offsets and 1 sizes of the whole, expected none or 5 of each}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.5
      key(%s, %s, %l : tensor<i64>, tensor<i64>) offsets(%l) of [4]
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_grad_key(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                              %l: tensor<2x2x3x4xf32>) {
  // attention_c2
  // expected-error @+1 {{expected seed, step and layer if and only if there is dropout}}
  %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 0.5 dropout = 0.5
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// -----

func.func @attention_lengths(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x8x2x8xf32>) {
  // attention_c7
  // expected-error @+1 {{has 4 queries and 8 keys, expected equal numbers unless it is bidirectional}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_turn_without_offsets(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                                          %i: index) {
  // attention_c8
  // expected-error @+1 {{a turn needs offsets}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 turn %i
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

#mesh = #weft.mesh<"cp"=2>
func.func @attention_turn_over_all(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %i: index) {
  // attention_c8
  // expected-error @+1 {{is over all shards of a group, so it has no turn}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 offsets(%i, %i) of [8, 8] turn %i
      over ["cp"] of #mesh
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

#mesh = #weft.mesh<"cp"=2>
func.func @attention_over_no_axis(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %i: index) {
  // attention_c8
  // expected-error @+1 {{is over ["tp"], expected distinct axes of #weft.mesh<"cp"=2>}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 offsets(%i, %i) of [8, 8]
      over ["tp"] of #mesh
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_order(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // attention_c9
  // expected-error @+1 {{has 4 positions, but an order of 8}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 order <4 x 2>
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @dropout_order(%x: tensor<4x8xf32>, %s: tensor<i64>, %l: index) {
  // dropout_c4
  // expected-error @+1 {{has no dimension 0 of 8 positions, as its order has}}
  %0 = weft.dropout %x rate = 0.5 site = 1 key(%s, %s, %l : tensor<i64>, tensor<i64>)
      order <4 x 2> dim 0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @zigzag_of_an_odd_number(%x: tensor<6xf32>) {
  // zigzag_c1
  // expected-error @+1 {{expected an even number of chunks, and positions in each, got 3 x 2}}
  %0 = weft.reorder %x dim 0 order <3 x 2> : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @reorder_dimension(%x: tensor<4x8xf32>) {
  // reorder_c1
  // expected-error @+1 {{expected a dimension 0 of 8 positions, got 'tensor<4x8xf32>'}}
  %0 = weft.reorder %x dim 0 order <4 x 2> : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @reorder_output(%x: tensor<4x8xf32>) {
  // reorder_c2
  // expected-error @+1 {{expected an output of the type of its input 'tensor<4x8xf32>', got 'tensor<4x8xf64>'}}
  %0 = weft.reorder %x dim 1 order <4 x 2> : tensor<4x8xf32> -> tensor<4x8xf64>
  return
}

// -----

func.func @attention_turns_without_a_turn(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                                          %i: index) {
  // attention_c8
  // expected-error @+1 {{has a number of turns, but no turn}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 offsets(%i, %i) of [7, 7] turns 2
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @cross_entropy_columns(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) {
  // cross_entropy_c3
  // expected-error @+1 {{expected one number of columns, of at least 1}}
  %0:2 = weft.cross_entropy %x[%t] of [0]
      : tensor<2x4x8xf32>[tensor<2x4xi32>] -> tensor<2x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @cross_entropy_grad_columns(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>,
                                      %l: tensor<2x4xf32>) {
  // cross_entropy_grad_c2
  // expected-error @+1 {{expected one number of columns, of at least 1}}
  %0 = weft.cross_entropy_grad %x[%t] lse(%l) gradient(%l, %l) of [4, 7]
      : tensor<2x4x8xf32>[tensor<2x4xi32>], tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
      -> tensor<2x4x8xf32>
  return
}
