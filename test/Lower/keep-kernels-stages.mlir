// RUN: weft-opt %s -keep-kernels | FileCheck %s

// Kernels of the modules of stages go into the one module that is lowered, each name once.
// CHECK: module {
// CHECK-NEXT: func.func private @kernel_fill_0
// CHECK: func.func private @kernel_fill_1
// CHECK-NOT: @kernel_fill_0
// CHECK-NOT: module
// CHECK-NOT: @step

module {
  module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64} {
    func.func private @kernel_fill_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      return %x : tensor<4xf32>
    }
    func.func @step() {
      return
    }
  }
  module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64} {
    func.func private @kernel_fill_1(%x: tensor<8xf32>) -> tensor<8xf32> attributes {weft.tied = array<i64: -1>} {
      return %x : tensor<8xf32>
    }
    func.func private @kernel_fill_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>} {
      return %x : tensor<4xf32>
    }
    func.func @step() {
      return
    }
  }
}
