// RUN: weft-opt %s --convolutions-to-matmuls | FileCheck %s

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK-SAME:      %[[X:.*]]: tensor<2x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>
// CHECK-DAG:     %[[COLUMNS:.*]] = weft.unfold %[[X]] sizes [3, 3] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] : {{.*}} -> tensor<2x27x36xf32>
// CHECK-DAG:     %[[WEIGHTS:.*]] = weft.reshape %[[W]] {{\[\[}}0], [1, 2, 3]] : {{.*}} -> tensor<4x27xf32>
// CHECK:         %[[Y:.*]] = weft.contract "ok,nkp->nop"(%[[WEIGHTS]], %[[COLUMNS]]) : {{.*}} -> tensor<2x4x36xf32>
// CHECK:         %[[Z:.*]] = weft.reshape %[[Y]] {{\[\[}}0], [1], [2, 3]] : {{.*}} -> tensor<2x4x6x6xf32>
// CHECK:         return %[[Z]]
func.func @description(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x6x6xf32>
  return %0 : tensor<2x4x6x6xf32>
}

// CHECK-LABEL: @image_is_its_columns(
// CHECK-NOT:     weft.unfold
// CHECK:         weft.reshape %{{.*}} {{\[\[}}0], [1], [2, 3]] : {{.*}} -> tensor<2x3x64xf32>
// CHECK-NOT:     weft.unfold
func.func @image_is_its_columns(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>)
    -> tensor<2x4x8x8xf32> {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<2x4x8x8xf32>
  return %0 : tensor<2x4x8x8xf32>
}

// CHECK-LABEL: @gradients(
// CHECK-DAG:     %[[COLUMNS:.*]] = weft.contract "ok,nop->nkp"{{.*}} -> tensor<2x27x16xf32>
// CHECK-DAG:     weft.fold %[[COLUMNS]] sizes [3, 3] strides [2, 2] low [1, 1] high [0, 0] dilations [1, 1] : tensor<2x27x16xf32> -> tensor<2x3x8x8xf32>
// CHECK-DAG:     weft.contract "nop,nkp->ok"{{.*}} -> tensor<4x27xf32>
func.func @gradients(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %g: tensor<2x4x4x4xf32>)
    -> (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) {
  %0 = weft.convolution_input_grad %g by %w strides [2, 2] low [1, 1] high [0, 0] dilations [1, 1]
      : tensor<2x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<2x3x8x8xf32>
  %1 = weft.convolution_kernel_grad %x by %g strides [2, 2] low [1, 1] high [0, 0]
      dilations [1, 1] : tensor<2x3x8x8xf32>, tensor<2x4x4x4xf32> -> tensor<4x3x3x3xf32>
  return %0, %1 : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>
}

// CHECK-LABEL: @one_dimension(
// CHECK:         weft.unfold
// CHECK-NEXT:    weft.reshape %{{.*}} {{\[\[}}0], [1, 2]]
// CHECK-NEXT:    weft.contract "ok,nkp->nop"
// CHECK-NEXT:    return
func.func @one_dimension(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) -> tensor<2x4x6xf32> {
  %0 = weft.convolution %x by %w strides [1] low [0] high [0] dilations [1]
      : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// CHECK-LABEL: @left_as_they_are(
// CHECK-NEXT:    weft.convolution
// CHECK-NEXT:    weft.convolution
// CHECK-NEXT:    return
func.func @left_as_they_are(%x: tensor<2x4x8xf32>, %w: tensor<4x2x3xf32>, %y: tensor<2x4x8xf64>,
                            %v: tensor<4x4x3xf64>) -> (tensor<2x4x6xf32>, tensor<2x4x6xf64>) {
  %0 = weft.convolution %x by %w strides [1] low [0] high [0] dilations [1]
      : tensor<2x4x8xf32>, tensor<4x2x3xf32> -> tensor<2x4x6xf32>
  %1 = weft.convolution %y by %v strides [1] low [0] high [0] dilations [1]
      : tensor<2x4x8xf64>, tensor<4x4x3xf64> -> tensor<2x4x6xf64>
  return %0, %1 : tensor<2x4x6xf32>, tensor<2x4x6xf64>
}

// Of bf16 the columns are bf16, and sums are float32.
// CHECK-LABEL: @narrow(
// CHECK-DAG:     weft.unfold {{.*}} -> tensor<2x27x36xbf16>
// CHECK:         weft.contract "ok,nkp->nop"{{.*}} -> tensor<2x4x36xf32>
// CHECK:         %[[COLUMNS:.*]] = weft.contract "ok,nop->nkp"{{.*}} -> tensor<2x27x36xf32>
// CHECK:         weft.fold %[[COLUMNS]] {{.*}} -> tensor<2x3x8x8xf32>
func.func @narrow(%x: tensor<2x3x8x8xbf16>, %w: tensor<4x3x3x3xbf16>, %g: tensor<2x4x6x6xbf16>)
    -> (tensor<2x4x6x6xf32>, tensor<2x3x8x8xf32>) {
  %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x3x8x8xbf16>, tensor<4x3x3x3xbf16> -> tensor<2x4x6x6xf32>
  %1 = weft.convolution_input_grad %g by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : tensor<2x4x6x6xbf16>, tensor<4x3x3x3xbf16> -> tensor<2x3x8x8xf32>
  return %0, %1 : tensor<2x4x6x6xf32>, tensor<2x3x8x8xf32>
}
