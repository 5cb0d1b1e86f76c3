// RUN: weft-opt %s --share-kernels | FileCheck %s
// RUN: weft-opt %s --share-kernels --share-kernels | FileCheck %s
// RUN: echo 'func.func @step() { return }' | weft-opt --share-kernels | FileCheck %s --check-prefix=NONE

// Stage 1 multiplies in @kernel_map_0, and adds in @kernel_map_1 as stage 0 does in @kernel_map_0.
// CHECK-LABEL: module @stage_0
// CHECK: func.func private @kernel_map_0
// CHECK-NEXT: arith.addf
// CHECK: func.func private @kernel_map_2
// CHECK-NEXT: arith.negf
// CHECK: weft.launch @kernel_map_0
// CHECK: weft.launch @kernel_map_2
// CHECK-LABEL: module @stage_1
// CHECK: func.func private @kernel_map_1
// CHECK-NEXT: arith.mulf
// CHECK: func.func private @kernel_map_0
// CHECK-NEXT: arith.addf
// Ties are a part of what a kernel does.
// CHECK: func.func private @kernel_map_3{{.*}}tied = array<i64: 0>
// CHECK-NEXT: arith.addf
// One of two equal kernels in a module is left.
// CHECK-NOT: func.func private
// CHECK: %[[A:.*]] = weft.launch @kernel_map_1
// CHECK-NEXT: %[[B:.*]] = weft.launch @kernel_map_0(%[[A]])
// CHECK-NEXT: %[[C:.*]] = weft.launch @kernel_map_0(%[[B]])
// CHECK-NEXT: weft.launch @kernel_map_3(%[[C]])

// NONE: module {
// NONE-NEXT: func.func @step

module {
  module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64} {
    func.func private @kernel_map_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @kernel_map_2(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      %0 = arith.negf %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @step(%x: tensor<4xf32>) {
      %0 = weft.launch @kernel_map_0(%x) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      %1 = weft.launch @kernel_map_2(%0) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      return
    }
  }
  module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64} {
    func.func private @kernel_map_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      %0 = arith.mulf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @kernel_map_1(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @kernel_map_2(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: 0>} {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @kernel_fused_map_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @step(%x: tensor<4xf32>) {
      %0 = weft.launch @kernel_map_0(%x) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      %1 = weft.launch @kernel_map_1(%0) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      %2 = weft.launch @kernel_fused_map_0(%1) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      %3 = weft.launch @kernel_map_2(%2) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
      return
    }
  }
}
