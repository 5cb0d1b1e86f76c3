// RUN: weft-opt %s --split-input-file --merge-maps | FileCheck %s

#id = affine_map<(i) -> (i)>

// The example of the pass's description, with an op between the maps that reads the first result.
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4xf32>, %[[Y:[^:]*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[BOTH:.*]]:2 = weft.map ins(%[[X]], %[[Y]] : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[EXP:.*]] = math.exp %[[A]]
// CHECK-NEXT:      %[[MUL:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT:      weft.yield %[[EXP]], %[[MUL]]
// CHECK:         %[[S:.*]] = weft.contract "a->"(%[[BOTH]]#0)
// CHECK-NEXT:    return %[[S]], %[[BOTH]]#1
func.func private @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %s = weft.contract "a->"(%0) : (tensor<4xf32>) -> tensor<f32>
  %1 = weft.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>) maps [#id, #id] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %b : f32
    weft.yield %2 : f32
  }
  return %s, %1 : tensor<f32>, tensor<4xf32>
}
weft.variable input @x ["b"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %x = weft.read @x : tensor<4xf32>
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.addf %a, %a : f32
    weft.yield %2 : f32
  }
  %1:2 = weft.call @f(%0, %0) label "f"
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  weft.observe "s", %1#0 : tensor<f32>
  weft.observe "y", %1#1 : tensor<4xf32>
  return
}

// -----

#id = affine_map<(i) -> (i)>

// Not where an operand comes later, is read in between, or is read afterwards: the second result
// would take memory of its own for longer.
// CHECK-LABEL: func.func private @later(
// CHECK-COUNT-3: weft.map
// CHECK-LABEL: func.func private @between(
// CHECK-COUNT-2: weft.map
// CHECK-LABEL: func.func private @afterwards(
// CHECK-COUNT-2: weft.map
func.func private @later(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %s = weft.contract "a->"(%0) : (tensor<4xf32>) -> tensor<f32>
  %1 = weft.map ins(%x, %s : tensor<4xf32>, tensor<f32>) maps [#id, affine_map<(i) -> ()>]
      -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %b : f32
    weft.yield %2 : f32
  }
  %2 = weft.map ins(%0, %1 : tensor<4xf32>, tensor<4xf32>) maps [#id, #id] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.addf %a, %b : f32
    weft.yield %3 : f32
  }
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
func.func private @between(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %s = weft.contract "a->"(%x) : (tensor<4xf32>) -> tensor<f32>
  %1 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.mulf %a, %a : f32
    weft.yield %2 : f32
  }
  return %0, %1, %s : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}
func.func private @afterwards(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.mulf %a, %a : f32
    weft.yield %2 : f32
  }
  %s = weft.contract "a->"(%x) : (tensor<4xf32>) -> tensor<f32>
  return %0, %1, %s : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}
weft.variable input @x ["b"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %x = weft.read @x : tensor<4xf32>
  %0 = weft.map ins(%x : tensor<4xf32>) maps [#id] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.addf %a, %a : f32
    weft.yield %2 : f32
  }
  %1:2 = weft.call @later(%0) label "f" : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2:3 = weft.call @between(%1#0) label "g"
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  %3:3 = weft.call @afterwards(%2#0) label "h"
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  weft.observe "s", %3#2 : tensor<f32>
  return
}
