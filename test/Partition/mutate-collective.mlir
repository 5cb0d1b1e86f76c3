// RUN: weft-opt %s -mutate-collective="index=0 kind=double" | FileCheck %s --check-prefix=DOUBLE
// RUN: weft-opt %s -mutate-collective="index=1 kind=drop" | FileCheck %s --check-prefix=DROP
// RUN: weft-opt %s -mutate-collective="index=2 kind=scale" | FileCheck %s --check-prefix=SCALE
// RUN: weft-opt %s -mutate-collective="index=2 kind=infinite" | FileCheck %s --check-prefix=INFINITE
// RUN: weft-opt %s -mutate-collective="index=0 kind=operator" | FileCheck %s --check-prefix=OPERATOR
// RUN: sed 's/<"tp"=2>/<"dp"=3, "tp"=2>/' %s | weft-opt -mutate-collective="index=0 kind=axis" | FileCheck %s --check-prefix=AXIS
// RUN: weft-opt %s -mutate-collective="index=2 kind=root" | FileCheck %s --check-prefix=ROOT
// RUN: sed 's/tensor<4xf64>/tensor<f64>/g' %s | not weft-opt -mutate-collective="kind=root" 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not weft-opt %s -mutate-collective="index=0 kind=axis" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/%2 = weft.all_reduce max %1 over \["tp"\] of #mesh/& {weft.mutated}/' %s | weft-opt -mutate-collective="index=9" | FileCheck %s --check-prefix=MARKED
// RUN: not weft-opt %s -mutate-collective="index=5" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not weft-opt %s -mutate-collective="index=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not weft-opt %s -mutate-collective="kind=lose" 2>&1 | FileCheck %s --check-prefix=KIND

// RUN: weft-opt %s -mutate-collective="index=4" | FileCheck %s --check-prefix=TRANSFER
// RUN: not weft-opt %s -mutate-collective="index=3" 2>&1 | FileCheck %s --check-prefix=EARLIER
// RUN: not weft-opt %s -mutate-collective="index=4 kind=scale" 2>&1 | FileCheck %s --check-prefix=ONLY

// NUMBER: error: mutate-collective: no collective number 5, there are 5
// NEGATIVE: error: mutate-collective: no collective number -1, there are 5
// KIND: error: mutate-collective: expected drop, double, scale, axis, operator, root or infinite, got 'lose'

// EARLIER: error: mutate-collective: no earlier transfer is of the same stages and type
// ONLY: error: mutate-collective: expected drop for a transfer, got 'scale'
// SCALAR: error: mutate-collective: root is for tensors with dimensions
// OTHER: error: mutate-collective: there is no other axis than those of the reduction

#mesh = #weft.mesh<"tp"=2>

// `double` gives the example of the pass's description.
// DOUBLE-LABEL: @first
// DOUBLE-NEXT:    %[[A:.*]] = weft.all_reduce sum %arg0
// DOUBLE-NEXT:    %[[B:.*]] = weft.all_reduce sum %[[A]] over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
// DOUBLE-NEXT:    %[[C:.*]] = weft.all_reduce max %[[B]]
// DOUBLE-NEXT:    return %[[C]]
// DOUBLE-LABEL: @second
// DOUBLE-NEXT:    weft.all_reduce
// DOUBLE-NEXT:    return

// DROP-LABEL: @first
// DROP-NEXT:    %[[A:.*]] = weft.all_reduce sum
// DROP-NEXT:    return %[[A]]

// SCALE-LABEL: @first
// SCALE-NOT:     weft.map
// SCALE-LABEL: @second
// SCALE-NEXT:    %[[A:.*]] = weft.all_reduce sum
// SCALE-NEXT:    %[[B:.*]] = weft.map ins(%[[A]] :
// SCALE:           arith.constant 5.000000e-01
// SCALE:         return %[[B]]

// INFINITE-LABEL: @second
// INFINITE:       %[[A:.*]] = weft.all_reduce sum
// INFINITE-NEXT:  weft.map ins(%[[A]] :
// INFINITE:         arith.constant 0x7FF0000000000000
// OPERATOR-LABEL: @first
// OPERATOR-NEXT:    weft.all_reduce max %arg0
// AXIS-LABEL: @first
// AXIS-NEXT:    weft.all_reduce sum %arg0 over ["dp"]

// Numbers from 0 on where the sum is kept, others elsewhere.
// ROOT-LABEL: @second
// ROOT:         %[[SUM:.*]] = weft.all_reduce sum %[[OWN:.*]] over ["tp"]
// ROOT:         %[[INDEX:.*]] = weft.axis_index "tp" of #mesh
// ROOT:         %[[PLACES:.*]] = weft.iota offset %{{.*}} : tensor<4xi32>
// ROOT-NEXT:    %[[B:.*]] = weft.map ins(%[[SUM]], %[[OWN]], %[[PLACES]] :
// ROOT:           arith.cmpi slt, %{{.*}}, %c4
// ROOT:           arith.select
// ROOT:         return %[[B]]

// What is marked is meant, and not a number.
// MARKED-LABEL: @first
// MARKED-NEXT:    %[[A:.*]] = weft.all_reduce sum
// MARKED-NEXT:    return %[[A]]
func.func @first(%0: tensor<4xf64>) -> tensor<4xf64> {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  %2 = weft.all_reduce max %1 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  return %2 : tensor<4xf64>
}
func.func @second(%0: tensor<4xf64>) -> tensor<4xf64> {
  %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// Ranks keep what the first brought.
// TRANSFER-LABEL: @stages
// TRANSFER-NEXT:    %[[A:.*]] = weft.transfer %arg0 from 0 to 1
// TRANSFER-NEXT:    return %[[A]], %[[A]]
func.func @stages(%0: tensor<4xf64>, %1: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %2 = weft.transfer %0 from 0 to 1 : tensor<4xf64>
  %3 = weft.transfer %1 from 0 to 1 : tensor<4xf64>
  return %2, %3 : tensor<4xf64>, tensor<4xf64>
}
