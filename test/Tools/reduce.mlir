// A function that has nothing to do with the fault goes away.
// RUN: weft-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/has-iota.sh' | FileCheck %s

// CHECK-NOT: @other
// CHECK: weft.iota
// CHECK-NOT: @other

func.func @fault() -> tensor<4xi32> {
  %0 = weft.iota : tensor<4xi32>
  return %0 : tensor<4xi32>
}

func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
