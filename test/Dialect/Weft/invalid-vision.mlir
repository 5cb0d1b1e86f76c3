// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @convolution_ranks(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3xf32>) {
  // convolution_c1
  // expected-error @+1 {{expected images of [samples, channels, places…] and a kernel with as many dimensions, three to five, got input 'tensor<2x4x5x5xf32>', kernel 'tensor<6x4x3xf32>' and output 'tensor<2x6x3x3xf32>'}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_of_no_image(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // convolution_c1
  // expected-error @+1 {{expected images of}}
  %0 = weft.convolution %x by %w strides [] low [] high [] dilations []
      : tensor<2x4xf32>, tensor<6x4xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @convolution_unknown_channels(%x: tensor<2x?x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c1
  // expected-error @+1 {{expected images of}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x?x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_strides(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c2
  // expected-error @+1 {{strides: expected 2 entries, one for each dimension of places, got 1}}
  %0 = weft.convolution %x by %w strides [1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_stride_of_zero(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c2
  // expected-error @+1 {{strides: expected 1 to 1073741824, got 0}}
  %0 = weft.convolution %x by %w strides [1, 0] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_negative_padding(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c2
  // expected-error @+1 {{low: expected 0 to 1073741824, got -1}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, -1] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_high(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c2
  // expected-error @+1 {{high: expected 0 to 1073741824, got -2}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [-2, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_dilations(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c2
  // expected-error @+1 {{dilations: expected 2 entries, one for each dimension of places, got 3}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_places(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c3
  // expected-error @+1 {{expected 3 output places in dimension 3, got 4}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x4xf32>
  return
}

// -----

func.func @convolution_too_large(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c3
  // expected-error @+1 {{a window of 7 places does not fit into 5 with padding 1 and 0}}
  %0 = weft.convolution %x by %w strides [1, 1] low [1, 0] high [0, 0] dilations [3, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x1x3xf32>
  return
}

// -----

func.func @convolution_channels(%x: tensor<2x6x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c4
  // expected-error @+1 {{the input's 6 channels are no multiple of the kernel's 4}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x6x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_groups(%x: tensor<2x4x5x5xf32>, %w: tensor<6x1x3x3xf32>) {
  // convolution_c4
  // expected-error @+1 {{the kernel's 6 output channels are no multiple of the 4 groups}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x1x3x3xf32> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_output_channels(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c4
  // expected-error @+1 {{the kernel gives 6 channels, but the output has 5}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x5x3x3xf32>
  return
}

// -----

func.func @convolution_samples(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{result #0 dimension 0 has size 3, expected 2 as operand #0 dimension 0}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<3x6x3x3xf32>
  return
}

// -----

func.func @convolution_element(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf64>) {
  // convolution_c5
  // expected-error @+1 {{operands must have one element type, got 'f32' and 'f64'}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf64> -> tensor<2x6x3x3xf32>
  return
}

// -----

func.func @convolution_result(%x: tensor<2x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c5
  // expected-error @+1 {{must have a result of the operands' element type 'f32' or its wide type, got 'bf16'}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x3x3xbf16>
  return
}

// -----

func.func @input_gradient(%g: tensor<2x6x3x3xf32>, %w: tensor<6x4x3x3xf32>) {
  // convolution_c3
  // expected-error @+1 {{expected 4 output places in dimension 2, got 3}}
  %0 = weft.convolution_input_grad %g by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x6x3x3xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x6x5xf32>
  return
}

// -----

func.func @kernel_gradient(%x: tensor<2x4x5x5xf32>, %g: tensor<2x6x3x3xf32>) {
  // convolution_c3
  // expected-error @+1 {{expected 4 output places in dimension 3, got 3}}
  %0 = weft.convolution_kernel_grad %x by %g strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32>, tensor<2x6x3x3xf32> -> tensor<6x4x3x2xf32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}, {}, {}]>
#cut = #weft.sharding<#mesh, [{}, {}, {"tp"}, {}]>
func.func @places_cut(%x: tensor<2x4x4x6xf32, #cut>, %w: tensor<6x4x1x1xf32, #whole>) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 2, which must be replicated}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x4x6xf32, #cut>, tensor<6x4x1x1xf32, #whole> -> tensor<2x6x4x6xf32, #cut>
  return
}

// -----

// Two ranks cannot share three groups.
#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{}, {"tp"}, {}, {}]>
#kernel = #weft.sharding<#mesh, [{"tp"}, {}, {}, {}]>
func.func @cut_through_a_group(%x: tensor<2x6x5x5xf32, #cut>, %w: tensor<6x2x3x3xf32, #kernel>) {
  // rule_c3
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 1, whose size 3 is no multiple of 2}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x6x5x5xf32, #cut>, tensor<6x2x3x3xf32, #kernel> -> tensor<2x6x3x3xf32, #cut>
  return
}

// -----

func.func @pool_ranks(%x: tensor<2x4x5x5xf32>) {
  // pool_c1
  // expected-error @+1 {{expected images of [samples, channels, places…] with three to five dimensions, got 'tensor<2x4x5x5xf32>' and 'tensor<2x4x4xf32>'}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @pool_sizes(%x: tensor<2x4x5x5xf32>) {
  // pool_c2
  // expected-error @+1 {{sizes: expected 2 entries, one for each dimension of places, got 1}}
  %0 = weft.pool max %x sizes [2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @pool_size_of_zero(%x: tensor<2x4x5x5xf32>) {
  // pool_c2
  // expected-error @+1 {{sizes: expected 1 to 1073741824, got 0}}
  %0 = weft.pool max %x sizes [2, 0] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @pool_strides(%x: tensor<2x4x5x5xf32>) {
  // pool_c2
  // expected-error @+1 {{strides: expected 2 entries, one for each dimension of places, got 0}}
  %0 = weft.pool max %x sizes [2, 2] strides [] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @pool_places(%x: tensor<2x4x5x5xf32>) {
  // pool_c3
  // expected-error @+1 {{expected 4 output places in dimension 3, got 5}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x5xf32>
  return
}

// -----

func.func @pool_window_before(%x: tensor<2x4x5x5xf32>) {
  // pool_c4
  // expected-error @+1 {{window 0 of dimension 3 holds no place of the image}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 2] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x6xf32>
  return
}

// -----

func.func @pool_window_behind(%x: tensor<2x4x5x5xf32>) {
  // pool_c4
  // expected-error @+1 {{window 5 of dimension 2 holds no place of the image}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [2, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x6x4xf32>
  return
}

// -----

func.func @pool_window_around(%x: tensor<2x4x1xf32>) {
  // pool_c4
  // expected-error @+1 {{window 0 of dimension 2 holds no place of the image}}
  %0 = weft.pool sum %x sizes [2] strides [1] low [1] high [1] dilations [2]
      : tensor<2x4x1xf32> -> tensor<2x4x1xf32>
  return
}

// -----

func.func @pool_channels(%x: tensor<2x4x5x5xf32>) {
  // expected-error @+1 {{result #0 dimension 1 has size 5, expected 4 as operand #0 dimension 1}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @pool_element(%x: tensor<2x4x5x5xf32>) {
  // pool_c5
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'f64'}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32> -> tensor<2x4x4x4xf64>
  return
}

// -----

func.func @pool_gradient_without_input(%g: tensor<2x4x4x4xf32>) {
  // pool_grad_c1
  // expected-error @+1 {{expected an input if and only if the kind is max}}
  %0 = weft.pool_grad max %g sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x4x4xf32> -> tensor<2x4x5x5xf32>
  return
}

// -----

func.func @pool_gradient_places(%g: tensor<2x4x4x4xf32>) {
  // pool_grad_c2
  // expected-error @+1 {{expected 5 output places in dimension 3, got 4}}
  %0 = weft.pool_grad sum %g sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x4x4xf32> -> tensor<2x4x5x6xf32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}, {}, {}], unreduced = sum{"tp"}>
func.func @max_of_pending(%x: tensor<2x4x5x5xf32, #pending>) {
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.pool max %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x5x5xf32, #pending> -> tensor<2x4x4x4xf32, #pending>
  return
}

// -----

func.func @group_mean_of_scalar(%x: tensor<f32>) {
  // group_mean_c1
  // expected-error @+1 {{expected a tensor whose first dimension is the sample, got a scalar}}
  %0 = weft.group_mean %x of 2 : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @group_mean_shape(%x: tensor<4xf32>) {
  // group_mean_c1
  // expected-error @+1 {{result #0 dimension 0 has size 2, expected 4 as operand #0 dimension 0}}
  %0 = weft.group_mean %x of 2 : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @group_mean_of_none(%x: tensor<4xf32>) {
  // group_mean_c2
  // expected-error @+1 {{expected groups of at least one sample, got 0}}
  %0 = weft.group_mean %x of 0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @group_mean_of_a_part(%x: tensor<6xf32>) {
  // group_mean_c2
  // expected-error @+1 {{has 6 samples on a rank, expected a multiple of the 4 of a group}}
  %0 = weft.group_mean %x of 4 : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

// The whole has three groups, but each of two ranks one and a half.
#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @group_mean_cut_through_a_group(%x: tensor<12xf32, #cut>) {
  // group_mean_c2
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, whose size 3 is no multiple of 2}}
  %0 = weft.group_mean %x of 4 : tensor<12xf32, #cut> -> tensor<12xf32, #cut>
  return
}

// -----

func.func @softmax_of_scalar(%x: tensor<f32>) {
  // softmax_c1
  // expected-error @+1 {{expected a tensor with a last dimension, got a scalar}}
  %0 = weft.softmax %x : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @softmax_element(%x: tensor<4xf32>) {
  // softmax_c1
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'f64'}}
  %0 = weft.softmax %x : tensor<4xf32> -> tensor<4xf64>
  return
}

// -----

func.func @softmax_columns(%x: tensor<4xf32>) {
  // softmax_c2
  // expected-error @+1 {{expected one number of columns, from 1 to 4, got [5]}}
  %0 = weft.softmax %x columns [5] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @softmax_cut(%x: tensor<4xf32, #cut>) {
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 0, which must be replicated}}
  %0 = weft.softmax %x : tensor<4xf32, #cut> -> tensor<4xf32, #cut>
  return
}

// -----

func.func @unfold_of_no_image(%x: tensor<2x3xf32>) {
  // unfold_c1
  // expected-error @+1 {{expected an image of [samples, channels, places…] and a size for each dimension of places, got 'tensor<2x3xf32>' and 0 sizes}}
  %0 = weft.unfold %x sizes [] strides [] low [] high [] dilations []
      : tensor<2x3xf32> -> tensor<2x3x1xf32>
  return
}

// -----

func.func @unfold_sizes(%x: tensor<2x3x5x5xf32>) {
  // unfold_c1
  // expected-error @+1 {{expected an image of [samples, channels, places…] and a size for each dimension of places, got 'tensor<2x3x5x5xf32>' and 1 sizes}}
  %0 = weft.unfold %x sizes [2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x5x5xf32> -> tensor<2x12x16xf32>
  return
}

// -----

func.func @unfold_strides(%x: tensor<2x3x5x5xf32>) {
  // unfold_c1
  // expected-error @+1 {{strides: expected 1 to 1073741824, got 0}}
  %0 = weft.unfold %x sizes [2, 2] strides [1, 0] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x5x5xf32> -> tensor<2x12x16xf32>
  return
}

// -----

func.func @unfold_columns(%x: tensor<2x3x5x5xf32>) {
  // unfold_c2
  // expected-error @+1 {{expected columns of [2, 12, 16], got 'tensor<2x3x64xf32>'}}
  %0 = weft.unfold %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x5x5xf32> -> tensor<2x3x64xf32>
  return
}

// -----

func.func @unfold_element(%x: tensor<2x3x5x5xf32>) {
  // unfold_c3
  // expected-error @+1 {{operand #0 of 'f32' must have the result's element type 'f64'}}
  %0 = weft.unfold %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x5x5xf32> -> tensor<2x12x16xf64>
  return
}

// -----

func.func @fold_columns(%x: tensor<2x12x9xf32>) {
  // fold_c1
  // expected-error @+1 {{expected columns of [2, 12, 16], got 'tensor<2x12x9xf32>'}}
  %0 = weft.fold %x sizes [2, 2] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x12x9xf32> -> tensor<2x3x5x5xf32>
  return
}

// -----

func.func @convolution_of_tf32(%x: tensor<2x4x5x5xf64>, %w: tensor<6x4x3x3xf64>) {
  // convolution_c6
  // expected-error @+1 {{rounds to tf32, expected operands of f32, got 'f64'}}
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] tf32
      : tensor<2x4x5x5xf64>, tensor<6x4x3x3xf64> -> tensor<2x6x3x3xf64>
  return
}
