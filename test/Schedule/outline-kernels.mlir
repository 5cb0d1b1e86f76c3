// RUN: weft-opt %s --outline-kernels --split-input-file | FileCheck %s

// Mesh coordinates move into the kernel; numbers come first, then tensors.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    %[[N:.*]]: index, %[[X:.*]]: tensor<8x16xf32>, %[[SEED:.*]]: tensor<i64>,
// CHECK-SAME:    %[[STEP:.*]]: tensor<i64>)
func.func private @layer(%n: index, %x: tensor<8x16xf32>, %seed: tensor<i64>,
                         %step: tensor<i64>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
  // CHECK-NEXT: %[[Y:.*]] = weft.launch @kernel_dropout_0(
  // CHECK-SAME:   %[[N]], %[[ZERO]], %[[X]], %[[SEED]], %[[STEP]]) tied [-1]
  // CHECK-NEXT: return %[[Y]]
  %0 = weft.axis_index "dp" of <"dp" = 2>
  %c8 = arith.constant 8 : index
  %1 = arith.muli %0, %c8 : index
  %c0 = arith.constant 0 : index
  %2 = weft.dropout %x rate = 0.5 site = 1
      key(%seed, %step, %n : tensor<i64>, tensor<i64>) offsets(%1, %c0)
      of [16, 16] : tensor<8x16xf32> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
func.func @init() {
  return
}
func.func @step() {
  return
}
// CHECK: func.func private @kernel_dropout_0(
// CHECK-SAME: %[[KN:.*]]: index, %[[O:.*]]: index, %[[KX:.*]]: tensor<8x16xf32>,
// CHECK-SAME: %[[KSEED:.*]]: tensor<i64>, %[[KSTEP:.*]]: tensor<i64>)
// CHECK-SAME: weft.tied = array<i64: -1>
// CHECK: %[[RANK:.*]] = weft.axis_index "dp"
// CHECK: %[[EIGHT:.*]] = arith.constant 8
// CHECK: %[[OFFSET:.*]] = arith.muli %[[RANK]], %[[EIGHT]]
// CHECK: weft.dropout %[[KX]] {{.*}} key(%[[KSEED]], %[[KSTEP]], %[[KN]]
// CHECK-SAME: offsets(%[[OFFSET]], %[[O]])

// -----

// Kernels that differ in numbers only are one; a matmul is none; what nobody uses goes.
// CHECK-LABEL: weft.variable input @seed
weft.variable input @seed [] : tensor<i64>
weft.variable parameter @a ["x"] : tensor<4xf32>
weft.variable parameter @b ["x"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[THREE:.*]] = arith.constant 3
  // CHECK: %[[FOUR:.*]] = arith.constant 4
  // A deviation is a number too: 4607182418800017408 are the bits of 1.0, and 4602678819172646912 those of 0.5.
  // CHECK: %[[ONE:.*]] = arith.constant 4607182418800017408
  // CHECK: weft.launch @kernel_fill_0(%[[THREE]], %[[ONE]], %[[SEED:.*]]) tied [-1]
  // CHECK: %[[HALF:.*]] = arith.constant 4602678819172646912
  // CHECK: weft.launch @kernel_fill_0(%[[FOUR]], %[[HALF]], %[[SEED]]) tied [-1]
  // CHECK: weft.contract "ik,jk->ij"
  // CHECK: weft.launch @kernel_contract_0
  // CHECK-NOT: norm
  // CHECK-LABEL: func.func private @kernel_fill_0
  // CHECK-SAME: (%[[STREAM:.*]]: index, %[[DEVIATION:.*]]: index, %
  // CHECK: weft.fill normal 1.000000e+00 {{.*}} stream(%[[STREAM]]) deviation(%[[DEVIATION]])
  // CHECK-LABEL: func.func private @kernel_contract_0
  // CHECK: weft.contract "ik,jk->"
  // CHECK-NOT: func.func
  %seed = weft.read @seed : tensor<i64>
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %0 = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%c3) : tensor<2x4xf32>
  %1 = weft.fill normal 0.5 seed(%seed : tensor<i64>) stream(%c4) : tensor<2x4xf32>
  %2 = weft.contract "ik,jk->ij"(%0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %3 = weft.contract "ik,jk->"(%0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  weft.observe "loss", %3 : tensor<f32>
  weft.observe "other", %2 : tensor<2x2xf32>
  return
}

// -----

// A matmul in float64 is a kernel: the library would do it, but not in the order of the oracle.
// CHECK-LABEL: func.func private @double(
func.func private @double(%x: tensor<2x4xf64>) -> tensor<2x2xf64> {
  // CHECK: weft.launch @kernel_contract_0(%{{.*}}) tied [-1] : (tensor<2x4xf64>)
  %0 = weft.contract "ik,jk->ij"(%x, %x) : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
}
func.func @init() {
  return
}
func.func @step() {
  return
}

// -----

// An update works in place, through the layer function, for both its variables.
// CHECK-LABEL: func.func private @update(
// CHECK-NEXT: weft.launch @kernel_map_0(%{{.*}}, %{{.*}}) tied [0, -1]
// CHECK: func.func private @kernel_map_0(
// CHECK-SAME: weft.tied = array<i64: 0, -1>
weft.variable parameter @a ["x"] : tensor<4xf32>
weft.variable parameter @b ["x"] : tensor<4xf32>
weft.variable parameter @gradient ["x"] : tensor<4xf32>
func.func private @update(%x: tensor<4xf32>, %g: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = weft.map ins(%x, %g : tensor<4xf32>, tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32>, tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    %2 = arith.mulf %a, %b : f32
    weft.yield %1, %2 : f32, f32
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @a : tensor<4xf32>
  %1 = weft.read @b : tensor<4xf32>
  %g = weft.read @gradient : tensor<4xf32>
  %2:2 = weft.call @update(%0, %g) label "a" : (tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  %3:2 = weft.call @update(%1, %g) label "b" : (tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  weft.assign @a, %2#0 : tensor<4xf32>
  weft.assign @b, %3#0 : tensor<4xf32>
  return
}

// -----

// A value that nobody needs afterwards gives its place; one that is needed does not, nor does a
// variable's, nor one that is spread.
// CHECK-LABEL: weft.variable parameter @in_place
// CHECK: weft.launch @kernel_map_0({{.*}}) tied [-1]
// CHECK: weft.launch @kernel_map_1({{.*}}) tied [-1]
// CHECK: weft.launch @kernel_map_2({{.*}}) tied [0]
// CHECK: weft.launch @kernel_map_3({{.*}}) tied [-1]
weft.variable parameter @in_place ["x"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @in_place : tensor<4xf32>
  %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %5 = math.exp %a : f32
    weft.yield %5 : f32
  }
  %2 = weft.map ins(%1 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %5 = arith.negf %a : f32
    weft.yield %5 : f32
  }
  weft.observe "x", %1 : tensor<4xf32>
  %3 = weft.map ins(%2 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %5 = math.sqrt %a : f32
    weft.yield %5 : f32
  }
  %4 = weft.map ins(%3 : tensor<4xf32>) maps [affine_map<(i, j) -> (j)>] -> tensor<4x4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  weft.observe "y", %4 : tensor<4x4xf32>
  return
}

// -----

// Other ops work in place as far as their lowering can: a norm reads a row before it writes it.
// CHECK-LABEL: weft.variable parameter @scale
// CHECK: weft.launch @kernel_norm_0({{.*}}) tied [0]
// CHECK: weft.launch @kernel_contract_0({{.*}}) tied [-1]
weft.variable parameter @scale ["x"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @scale : tensor<4xf32>
  %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i, j) -> (j)>] -> tensor<4x4xf32> {
  ^bb0(%a: f32):
    weft.yield %a : f32
  }
  %2 = weft.norm rms %1 scale(%0 : tensor<4xf32>) epsilon = 1.0e-5
      : tensor<4x4xf32> -> tensor<4x4xf32>
  %3 = weft.contract "ij->ji"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  weft.observe "y", %3 : tensor<4x4xf32>
  return
}
