// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Ops on dimensions and shards, as they print, and how they may be cut.

#mesh = #weft.mesh<"dp"=2, "tp"=4>
#rows = #weft.sharding<#mesh, [{"dp"}, {}]>
#columns = #weft.sharding<#mesh, [{"dp"}, {"tp"}]>
#heads = #weft.sharding<#mesh, [{"dp"}, {"tp"}, {}]>
#behind_one = #weft.sharding<#mesh, [{}, {"tp"}, {}]>
#last = #weft.sharding<#mesh, [{"tp"}]>
#pending = #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>
#behind = #weft.sharding<#mesh, [{}, {"dp"}, {}], unreduced = sum{"tp"}>
#pending3 = #weft.sharding<#mesh, [{"dp"}, {}, {}], unreduced = sum{"tp"}>

// CHECK-LABEL: @merge_and_split
func.func @merge_and_split(%x: tensor<?x12x64xf32>) -> tensor<?x12x64xf32> {
  // CHECK: weft.reshape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<?x12x64xf32> -> tensor<?x768xf32>
  %0 = weft.reshape %x [[0], [1, 2]] : tensor<?x12x64xf32> -> tensor<?x768xf32>
  %1 = weft.reshape %0 [[0], [1, 2]] : tensor<?x768xf32> -> tensor<?x12x64xf32>
  return %1 : tensor<?x12x64xf32>
}

// CHECK-LABEL: @reshape_of_integers
func.func @reshape_of_integers(%x: tensor<6xi32>) -> tensor<1x2x3xi32> {
  %0 = weft.reshape %x [[0, 1, 2]] : tensor<6xi32> -> tensor<1x2x3xi32>
  return %0 : tensor<1x2x3xi32>
}

// The heads carry the cut.
// CHECK-LABEL: @reshape_cut
func.func @reshape_cut(%x: tensor<4x48xf32, #columns>) -> tensor<4x12x4xf32, #heads> {
  %0 = weft.reshape %x [[0], [1, 2]]
      : tensor<4x48xf32, #columns> -> tensor<4x12x4xf32, #heads>
  return %0 : tensor<4x12x4xf32, #heads>
}

// A dimension of one element carries nothing.
// CHECK-LABEL: @reshape_drops_dimension_of_one
func.func @reshape_drops_dimension_of_one(%x: tensor<1x8x2xf32, #behind_one>)
    -> tensor<16xf32, #last> {
  %0 = weft.reshape %x [[0, 1, 2]] : tensor<1x8x2xf32, #behind_one> -> tensor<16xf32, #last>
  return %0 : tensor<16xf32, #last>
}

// CHECK-LABEL: @reshape_pending
func.func @reshape_pending(%x: tensor<4x6xf32, #pending>) -> tensor<4x2x3xf32, #pending3> {
  %0 = weft.reshape %x [[0], [1, 2]]
      : tensor<4x6xf32, #pending> -> tensor<4x2x3xf32, #pending3>
  return %0 : tensor<4x2x3xf32, #pending3>
}

// CHECK-LABEL: @concat
func.func @concat(%x: tensor<?x1x8xf32>, %y: tensor<?x4x8xf32>) -> tensor<?x5x8xf32> {
  // CHECK: weft.concat %{{.*}}, %{{.*}} dim 1 : tensor<?x1x8xf32>, tensor<?x4x8xf32> -> tensor<?x5x8xf32>
  %0 = weft.concat %x, %y dim 1 : tensor<?x1x8xf32>, tensor<?x4x8xf32> -> tensor<?x5x8xf32>
  return %0 : tensor<?x5x8xf32>
}

// CHECK-LABEL: @concat_cut_and_pending
func.func @concat_cut_and_pending(%x: tensor<4x2xf32, #pending>, %y: tensor<4x3xf32, #pending>)
    -> tensor<4x5xf32, #pending> {
  %0 = weft.concat %x, %y dim 1
      : tensor<4x2xf32, #pending>, tensor<4x3xf32, #pending> -> tensor<4x5xf32, #pending>
  return %0 : tensor<4x5xf32, #pending>
}

// CHECK-LABEL: @split
func.func @split(%x: tensor<?x5x8xf32>) -> tensor<?x4x8xf32> {
  // CHECK: weft.split %{{.*}} dim 1 : tensor<?x5x8xf32> -> tensor<?x1x8xf32>, tensor<?x4x8xf32>
  %0:2 = weft.split %x dim 1 : tensor<?x5x8xf32> -> tensor<?x1x8xf32>, tensor<?x4x8xf32>
  return %0#1 : tensor<?x4x8xf32>
}

// CHECK-LABEL: @split_cut_and_pending
func.func @split_cut_and_pending(%x: tensor<4x5xf32, #pending>) -> tensor<4x3xf32, #pending> {
  %0:2 = weft.split %x dim 1
      : tensor<4x5xf32, #pending> -> tensor<4x2xf32, #pending>, tensor<4x3xf32, #pending>
  return %0#1 : tensor<4x3xf32, #pending>
}

// CHECK-LABEL: @extract
func.func @extract(%x: tensor<?x9xf32>) -> tensor<?x3xf32> {
  // CHECK: weft.extract %{{.*}} from [0, 2] by [1, 3] : tensor<?x9xf32> -> tensor<?x3xf32>
  %0 = weft.extract %x from [0, 2] by [1, 3] : tensor<?x9xf32> -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// CHECK-LABEL: @extract_cut
func.func @extract_cut(%x: tensor<4x9xf32, #rows>) -> tensor<4x3xf32, #rows> {
  %0 = weft.extract %x from [0, 6] by [1, 1] : tensor<4x9xf32, #rows> -> tensor<4x3xf32, #rows>
  return %0 : tensor<4x3xf32, #rows>
}

// CHECK-LABEL: @pad
func.func @pad(%x: tensor<?x3xf32>) -> tensor<?x10xf32> {
  // CHECK: weft.pad %{{.*}} with 0.000000e+00 low [0, 1] high [0, 2] interior [0, 2]
  %0 = weft.pad %x with 0.0 low [0, 1] high [0, 2] interior [0, 2]
      : tensor<?x3xf32> -> tensor<?x10xf32>
  return %0 : tensor<?x10xf32>
}

// CHECK-LABEL: @pad_cut_and_pending
func.func @pad_cut_and_pending(%x: tensor<4x3xf32, #pending>) -> tensor<4x4xf32, #pending> {
  %0 = weft.pad %x with 0.0 low [0, 1] high [0, 0] interior [0, 0]
      : tensor<4x3xf32, #pending> -> tensor<4x4xf32, #pending>
  return %0 : tensor<4x4xf32, #pending>
}

// CHECK-LABEL: @select
func.func @select(%x: tensor<3x?x8xi32>, %i: index) -> tensor<?x8xi32> {
  // CHECK: weft.select %{{.*}}[%{{.*}}] : tensor<3x?x8xi32> -> tensor<?x8xi32>
  %0 = weft.select %x[%i] : tensor<3x?x8xi32> -> tensor<?x8xi32>
  return %0 : tensor<?x8xi32>
}

// CHECK-LABEL: @select_cut_and_pending
func.func @select_cut_and_pending(%x: tensor<3x4x2xf32, #behind>, %i: index)
    -> tensor<4x2xf32, #pending> {
  %0 = weft.select %x[%i] : tensor<3x4x2xf32, #behind> -> tensor<4x2xf32, #pending>
  return %0 : tensor<4x2xf32, #pending>
}
