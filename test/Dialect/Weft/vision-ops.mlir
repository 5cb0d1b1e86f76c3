// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Layers of image models, as they print, and how they may be cut.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#image = #weft.sharding<#mesh, [{"dp"}, {}, {}, {}]>
#channels = #weft.sharding<#mesh, [{"dp"}, {"tp"}, {}, {}]>
#pending = #weft.sharding<#mesh, [{"dp"}, {}, {}, {}], unreduced = sum{"tp"}>
#kernel = #weft.sharding<#mesh, [{}, {}, {}, {}]>
#kernel_out = #weft.sharding<#mesh, [{"tp"}, {}, {}, {}]>
#kernel_in = #weft.sharding<#mesh, [{}, {"tp"}, {}, {}]>
#kernel_out_pending = #weft.sharding<#mesh, [{"tp"}, {}, {}, {}], unreduced = sum{"dp"}>
#rows = #weft.sharding<#mesh, [{"dp"}, {}]>

// CHECK-LABEL: @convolution
func.func @convolution(%x: tensor<?x3x224x224xf32>, %w: tensor<64x3x7x7xf32>)
    -> tensor<?x64x112x112xf32> {
  // CHECK: weft.convolution %{{.*}} by %{{.*}} strides [2, 2] low [3, 3] high [3, 3] dilations [1, 1]
  // CHECK-SAME: : tensor<?x3x224x224xf32>, tensor<64x3x7x7xf32> -> tensor<?x64x112x112xf32>
  %0 = weft.convolution %x by %w strides [2, 2] low [3, 3] high [3, 3] dilations [1, 1]
      : tensor<?x3x224x224xf32>, tensor<64x3x7x7xf32> -> tensor<?x64x112x112xf32>
  return %0 : tensor<?x64x112x112xf32>
}

// CHECK-LABEL: @convolution_in_one_dimension
func.func @convolution_in_one_dimension(%x: tensor<2x4x9xf64>, %w: tensor<6x2x3xf64>)
    -> tensor<2x6x3xf64> {
  %0 = weft.convolution %x by %w strides [2] low [0] high [0] dilations [2]
      : tensor<2x4x9xf64>, tensor<6x2x3xf64> -> tensor<2x6x3xf64>
  return %0 : tensor<2x6x3xf64>
}

// CHECK-LABEL: @output_channels_cut
func.func @output_channels_cut(%x: tensor<4x8x5x5xf32, #image>,
                               %w: tensor<6x8x3x3xf32, #kernel_out>)
    -> tensor<4x6x3x3xf32, #channels> {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x5x5xf32, #image>, tensor<6x8x3x3xf32, #kernel_out>
      -> tensor<4x6x3x3xf32, #channels>
  return %0 : tensor<4x6x3x3xf32, #channels>
}

// CHECK-LABEL: @channels_cut
func.func @channels_cut(%x: tensor<4x8x5x5xf32, #channels>, %w: tensor<6x8x3x3xf32, #kernel_in>)
    -> tensor<4x6x3x3xf32, #pending> {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x5x5xf32, #channels>, tensor<6x8x3x3xf32, #kernel_in>
      -> tensor<4x6x3x3xf32, #pending>
  return %0 : tensor<4x6x3x3xf32, #pending>
}

// Two of four groups on each rank.
// CHECK-LABEL: @groups_cut
func.func @groups_cut(%x: tensor<4x8x5x5xf32, #channels>, %w: tensor<12x2x3x3xf32, #kernel_out>)
    -> tensor<4x12x3x3xf32, #channels> {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x5x5xf32, #channels>, tensor<12x2x3x3xf32, #kernel_out>
      -> tensor<4x12x3x3xf32, #channels>
  return %0 : tensor<4x12x3x3xf32, #channels>
}

// CHECK-LABEL: @input_gradient
func.func @input_gradient(%g: tensor<4x6x3x3xf32, #channels>,
                          %w: tensor<6x8x3x3xf32, #kernel_out>)
    -> tensor<4x8x5x5xf32, #pending> {
  // CHECK: weft.convolution_input_grad %{{.*}} by %{{.*}} strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
  %0 = weft.convolution_input_grad %g by %w strides [1, 1] low [0, 0] high [0, 0]
      dilations [1, 1] : tensor<4x6x3x3xf32, #channels>, tensor<6x8x3x3xf32, #kernel_out>
      -> tensor<4x8x5x5xf32, #pending>
  return %0 : tensor<4x8x5x5xf32, #pending>
}

// CHECK-LABEL: @kernel_gradient
func.func @kernel_gradient(%x: tensor<4x8x5x5xf32, #image>, %g: tensor<4x6x3x3xf32, #channels>)
    -> tensor<6x8x3x3xf32, #kernel_out_pending> {
  // CHECK: weft.convolution_kernel_grad %{{.*}} by %{{.*}} strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
  %0 = weft.convolution_kernel_grad %x by %g strides [1, 1] low [0, 0] high [0, 0]
      dilations [1, 1] : tensor<4x8x5x5xf32, #image>, tensor<4x6x3x3xf32, #channels>
      -> tensor<6x8x3x3xf32, #kernel_out_pending>
  return %0 : tensor<6x8x3x3xf32, #kernel_out_pending>
}

// CHECK-LABEL: @pool
func.func @pool(%x: tensor<?x8x5x5xf32>) -> tensor<?x8x3x3xf32> {
  // CHECK: weft.pool max %{{.*}} sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1]
  %0 = weft.pool max %x sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1]
      : tensor<?x8x5x5xf32> -> tensor<?x8x3x3xf32>
  return %0 : tensor<?x8x3x3xf32>
}

// CHECK-LABEL: @sum_of_pending
func.func @sum_of_pending(%x: tensor<4x8x5x5xf32, #pending>) -> tensor<4x8x2x2xf32, #pending> {
  // CHECK: weft.pool sum
  %0 = weft.pool sum %x sizes [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x5x5xf32, #pending> -> tensor<4x8x2x2xf32, #pending>
  return %0 : tensor<4x8x2x2xf32, #pending>
}

// CHECK-LABEL: @pool_gradient
func.func @pool_gradient(%g: tensor<4x8x2x2xf32, #channels>, %x: tensor<4x8x5x5xf32, #channels>)
    -> tensor<4x8x5x5xf32, #channels> {
  // CHECK: weft.pool_grad max %{{.*}} input(%{{.*}} : tensor<4x8x5x5xf32, #{{.*}}>) sizes [2, 2]
  %0 = weft.pool_grad max %g input(%x : tensor<4x8x5x5xf32, #channels>) sizes [2, 2] strides [2, 2]
      low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x2x2xf32, #channels> -> tensor<4x8x5x5xf32, #channels>
  // CHECK: weft.pool_grad sum %{{.*}} sizes [2, 2]
  %1 = weft.pool_grad sum %g sizes [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<4x8x2x2xf32, #channels> -> tensor<4x8x5x5xf32, #channels>
  return %1 : tensor<4x8x5x5xf32, #channels>
}

// CHECK-LABEL: @group_mean
func.func @group_mean(%x: tensor<?x3xf32>, %y: tensor<12x3xf32, #rows>)
    -> tensor<12x3xf32, #rows> {
  // CHECK: weft.group_mean %{{.*}} of 4 : tensor<?x3xf32> -> tensor<?x3xf32>
  %0 = weft.group_mean %x of 4 : tensor<?x3xf32> -> tensor<?x3xf32>
  %1 = weft.group_mean %y of 3 : tensor<12x3xf32, #rows> -> tensor<12x3xf32, #rows>
  return %1 : tensor<12x3xf32, #rows>
}

// CHECK-LABEL: @softmax
func.func @softmax(%x: tensor<4x8xf32, #rows>) -> tensor<4x8xf32, #rows> {
  // CHECK: weft.softmax %{{.*}} : tensor<4x8xf32, #{{.*}}> -> tensor<4x8xf32, #{{.*}}>
  %0 = weft.softmax %x : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #rows>
  // CHECK: weft.softmax %{{.*}} columns [7] :
  %1 = weft.softmax %0 columns [7] : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #rows>
  return %1 : tensor<4x8xf32, #rows>
}

// CHECK-LABEL: @columns
func.func @columns(%x: tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32> {
  // CHECK: weft.unfold %{{.*}} sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] : tensor<2x3x5x5xf32> -> tensor<2x27x9xf32>
  %0 = weft.unfold %x sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1]
      : tensor<2x3x5x5xf32> -> tensor<2x27x9xf32>
  // CHECK: weft.fold %{{.*}} sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] : tensor<2x27x9xf32> -> tensor<2x3x5x5xf32>
  %1 = weft.fold %0 sizes [3, 3] strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1]
      : tensor<2x27x9xf32> -> tensor<2x3x5x5xf32>
  return %1 : tensor<2x3x5x5xf32>
}
