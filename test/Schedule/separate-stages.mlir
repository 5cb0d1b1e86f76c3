// RUN: weft-opt %s --separate-stages | FileCheck %s
// RUN: weft-opt %s --separate-stages --separate-stages | FileCheck %s
// RUN: echo 'func.func @step() { return }' | weft-opt --separate-stages | FileCheck %s --check-prefix=NONE

// Each stage has what take-stage keeps of it, in a module of its own with the attributes of the whole.
// CHECK: module @model attributes {weft.target = "cuda"} {
// CHECK-NEXT: module @stage_0 attributes {weft.stage = 0 : i64, weft.stages = 2 : i64, weft.target = "cuda"} {
// CHECK-NEXT: weft.variable parameter @w0
// CHECK-NOT: @w1
// CHECK-LABEL: func.func @step
// CHECK-NEXT: %[[R:.*]] = weft.read @w0
// CHECK-NEXT: weft.send %[[R]] to 1 number 1 : tensor<4xf64>
// CHECK-NEXT: return
// CHECK: module @stage_1 attributes {weft.stage = 1 : i64, weft.stages = 2 : i64, weft.target = "cuda"} {
// CHECK-NEXT: weft.variable parameter @w1
// CHECK-NOT: @w0
// CHECK-LABEL: func.func @step
// CHECK-NEXT: %[[T:.*]] = weft.receive from 0 number 1 : tensor<4xf64>
// CHECK-NEXT: weft.assign @w1, %[[T]]
// CHECK-NEXT: return
// CHECK-NOT: @w0

// A module without stages stays as it is.
// NONE: module {
// NONE-NEXT: func.func @step

module @model attributes {weft.target = "cuda"} {
  weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64>
  weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64>
  func.func private @step_forward_1(%m: index) attributes {weft.micro_batch, weft.stage = 1 : i64} {
    return
  }
  func.func @step() {
    %0 = weft.read @w0 {weft.stage = 0 : i64} : tensor<4xf64>
    %1 = weft.transfer %0 from 0 to 1 : tensor<4xf64>
    weft.assign @w1, %1 {weft.stage = 1 : i64} : tensor<4xf64>
    return
  }
}
