// RUN: weft-opt %s --split-input-file --accumulate-in-matmuls | FileCheck %s
// RUN: weft-opt %s --split-input-file --pass-pipeline='builtin.module(accumulate-in-matmuls,func.func(fuse-epilogues))' | FileCheck %s --check-prefix=FUSED

#id = affine_map<(i, j) -> (i, j)>

module attributes {weft.target = "cuda"} {

// The example of the pass's description, for two micro-batches: the second adds to the first.
// CHECK-LABEL: func.func private @grad(
// CHECK-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[Y:[^:]*]]: {{[^,]*}}, %[[BEFORE:[^:]*]]: tensor<32x16xf32>)
// CHECK-NEXT:    %[[P:.*]] = weft.contract "bk,bn->kn"(%[[X]], %[[Y]])
// CHECK-NEXT:    %[[S:.*]] = weft.map ins(%[[BEFORE]], %[[P]]
// CHECK:           arith.addf
// CHECK:         return %[[S]]
// FUSED-LABEL: func.func private @grad(
// FUSED-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[Y:[^:]*]]: {{[^,]*}}, %[[BEFORE:[^:]*]]: tensor<32x16xf32>)
// FUSED-NEXT:    %[[S:.*]] = weft.matmul "bk,bn->kn"(%[[X]], %[[Y]]) plus %[[BEFORE]]
// FUSED-NEXT:    return %[[S]]
func.func private @grad(%x: tensor<8x32xf32>, %y: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.contract "bk,bn->kn"(%x, %y)
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
// No op calls the function any more.
// CHECK-NOT:   @add(
func.func private @add(%a: tensor<32x16xf32>, %b: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.map ins(%a, %b : tensor<32x16xf32>, tensor<32x16xf32>) maps [#id, #id]
      -> tensor<32x16xf32> {
  ^bb0(%s: f32, %p: f32):
    %1 = arith.addf %s, %p : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<32x16xf32>
}
// CHECK-LABEL: @micro_batches(
// CHECK-SAME:    %[[A:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[SUM:[^:]*]]:
// CHECK-NEXT:    %[[ONE:.*]] = weft.call @grad(%[[A]], %[[B]], %[[SUM]]) label "one"
// CHECK-NEXT:    %[[TWO:.*]] = weft.call @grad(%[[A]], %[[B]], %[[ONE]]) label "two"
// CHECK-NEXT:    return %[[TWO]]
func.func @micro_batches(%a: tensor<8x32xf32>, %b: tensor<8x16xf32>, %sum: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %0 = weft.call @grad(%a, %b) label "one"
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %1 = weft.call @add(%sum, %0) label "one"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %2 = weft.call @grad(%a, %b) label "two"
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %3 = weft.call @add(%1, %2) label "two"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %3 : tensor<32x16xf32>
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>

module attributes {weft.target = "cuda"} {

// One of its calls is not added to: it stays.
// CHECK-LABEL: func.func private @grad(
// CHECK-NOT:     weft.map
// CHECK:         return
func.func private @grad(%x: tensor<8x32xf32>, %y: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.contract "bk,bn->kn"(%x, %y)
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
// CHECK: func.func private @add(
func.func private @add(%a: tensor<32x16xf32>, %b: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.map ins(%a, %b : tensor<32x16xf32>, tensor<32x16xf32>) maps [#id, #id]
      -> tensor<32x16xf32> {
  ^bb0(%s: f32, %p: f32):
    %1 = arith.addf %s, %p : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<32x16xf32>
}
// CHECK-LABEL: @one_alone(
func.func @one_alone(%a: tensor<8x32xf32>, %b: tensor<8x16xf32>, %sum: tensor<32x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %0 = weft.call @grad(%a, %b) label "one"
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  // CHECK: weft.call @add(
  %1 = weft.call @add(%sum, %0) label "one"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %2 = weft.call @grad(%a, %b) label "two"
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return %1, %2 : tensor<32x16xf32>, tensor<32x16xf32>
}

// A matmul beside the call.
// CHECK-LABEL: @beside(
// CHECK-SAME:    %[[A:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[SUM:[^:]*]]:
// CHECK-NEXT:    %[[P:.*]] = weft.contract
// CHECK-NEXT:    weft.map ins(%[[SUM]], %[[P]]
func.func @beside(%a: tensor<8x32xf32>, %b: tensor<8x16xf32>, %sum: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %0 = weft.contract "bk,bn->kn"(%a, %b)
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %1 = weft.call @add(%sum, %0) label "one"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}

// What is to be added comes after the matmul.
// CHECK-LABEL: @late(
// CHECK:         weft.contract
// CHECK:         weft.call @add(
func.func @late(%a: tensor<8x32xf32>, %b: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.contract "bk,bn->kn"(%a, %b)
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %sum = weft.fill constant 0.0 : tensor<32x16xf32>
  %1 = weft.call @add(%sum, %0) label "one"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// For the host nothing changes.
// CHECK-LABEL: @host(
// CHECK:         weft.call @add(
func.func private @add(%a: tensor<32x16xf32>, %b: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = weft.map ins(%a, %b : tensor<32x16xf32>, tensor<32x16xf32>) maps [#id, #id]
      -> tensor<32x16xf32> {
  ^bb0(%s: f32, %p: f32):
    %1 = arith.addf %s, %p : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<32x16xf32>
}
func.func @host(%a: tensor<8x32xf32>, %b: tensor<8x16xf32>, %sum: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %0 = weft.contract "bk,bn->kn"(%a, %b)
      : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %1 = weft.call @add(%sum, %0) label "one"
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}

// -----

#id = affine_map<(e, i, j) -> (e, i, j)>

module attributes {weft.target = "cuda"} {

// Each expert has a matmul of its own, which adds to what is its.
// CHECK-LABEL: func.func private @grad_of_experts(
// CHECK:         weft.contract "eck,ecn->ekn"
// CHECK-NEXT:    weft.map
// FUSED-LABEL: func.func private @grad_of_experts(
// FUSED-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[Y:[^:]*]]: {{[^,]*}}, %[[BEFORE:[^:]*]]: tensor<4x32x16xf32>)
// FUSED-NEXT:    %[[S:.*]] = weft.matmul "eck,ecn->ekn"(%[[X]], %[[Y]]) plus %[[BEFORE]]
// FUSED-NEXT:    return %[[S]]
func.func private @grad_of_experts(%x: tensor<4x8x32xf32>, %y: tensor<4x8x16xf32>) -> tensor<4x32x16xf32> {
  %0 = weft.contract "eck,ecn->ekn"(%x, %y)
      : (tensor<4x8x32xf32>, tensor<4x8x16xf32>) -> tensor<4x32x16xf32>
  return %0 : tensor<4x32x16xf32>
}
func.func @experts(%a: tensor<4x8x32xf32>, %b: tensor<4x8x16xf32>, %sum: tensor<4x32x16xf32>)
    -> tensor<4x32x16xf32> {
  %0 = weft.call @grad_of_experts(%a, %b) label "one"
      : (tensor<4x8x32xf32>, tensor<4x8x16xf32>) -> tensor<4x32x16xf32>
  %1 = weft.map ins(%sum, %0 : tensor<4x32x16xf32>, tensor<4x32x16xf32>) maps [#id, #id]
      -> tensor<4x32x16xf32> {
  ^bb0(%s: f32, %p: f32):
    %2 = arith.addf %s, %p : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<4x32x16xf32>
}
}
