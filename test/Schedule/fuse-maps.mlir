// RUN: weft-opt %s --fuse-maps --split-input-file | FileCheck %s

// CHECK-LABEL: func.func private @chain(
// CHECK-SAME:    %[[X:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32>)
func.func private @chain(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[Y:.*]] = weft.map ins(%[[X]], %[[B]] :
  // CHECK: ^bb0(%[[A:.*]]: f32, %[[C:.*]]: f32):
  // CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[C]]
  // CHECK: %[[EXP:.*]] = math.exp %[[SUM]]
  // CHECK: weft.yield %[[EXP]]
  // CHECK-NOT: weft.map
  // CHECK: return %[[Y]]
  %0 = weft.map ins(%x, %b : tensor<8x4xf32>, tensor<4xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.addf %a, %c : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%0 : tensor<8x4xf32>)
      maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<8x4xf32>
}

// -----

// A value that is spread would be computed once for each place it is spread to.
// CHECK-LABEL: func.func private @spread(
func.func private @spread(%x: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK-COUNT-2: weft.map
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%0 : tensor<4xf32>)
      maps [affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32):
    %2 = arith.negf %a : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<8x4xf32>
}

// -----

// A value with two users is computed once, and kept.
// CHECK-LABEL: func.func private @two_users(
func.func private @two_users(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: weft.map
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.negf %a : f32
    weft.yield %2 : f32
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Twice the same operand is one use: the square of an exponential is one map.
// CHECK-LABEL: func.func private @square(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>)
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: weft.map ins(%[[X]] : tensor<4xf32>)
  // CHECK: %[[E:.*]] = math.exp
  // CHECK: arith.mulf %[[E]], %[[E]]
  // CHECK-NOT: weft.map
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%0, %0 : tensor<4xf32>, tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %b : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<4xf32>
}

// -----

// A constant joins all its users, also where it is spread.
// CHECK-LABEL: func.func private @constant(
func.func private @constant(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: weft.map ins(%{{.*}} : tensor<8x4xf32>)
  // CHECK: arith.constant 2.0
  // CHECK: weft.map ins(%{{.*}} : tensor<8x4xf32>)
  // CHECK: arith.constant 2.0
  // CHECK-NOT: weft.map
  %c = weft.map maps [] -> tensor<f32> {
    %2 = arith.constant 2.0 : f32
    weft.yield %2 : f32
  }
  %0 = weft.map ins(%x, %c : tensor<8x4xf32>, tensor<f32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %b : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%x, %c : tensor<8x4xf32>, tensor<f32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.addf %a, %b : f32
    weft.yield %2 : f32
  }
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Results that nobody uses go, and with them operands and then whole maps.
// CHECK-LABEL: func.func private @unused(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
func.func private @unused(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[R:.*]] = weft.map ins(%[[Y]] : tensor<4xf32>)
  // CHECK-NOT: weft.map
  // CHECK: return %[[R]]
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = math.exp %a : f32
    weft.yield %2 : f32
  }
  %1:2 = weft.map ins(%0, %y : tensor<4xf32>, tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32>, tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %a : f32
    %3 = arith.negf %b : f32
    weft.yield %2, %3 : f32, f32
  }
  return %1#1 : tensor<4xf32>
}

// -----

// Little work on one large tensor is done by each map that reads it.
// CHECK-LABEL: func.func private @repeated(
// CHECK-SAME:    %[[X:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<8x4xf32>)
func.func private @repeated(%x: tensor<8x4xf32>, %b: tensor<4xf32>, %g: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK:      %[[Y:.*]] = weft.map ins(%[[X]], %[[B]] :
  // CHECK:        arith.addf
  // CHECK-NEXT:   arith.negf
  // CHECK:      %[[Z:.*]] = weft.map ins({{.*}} : tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32>)
  // CHECK:        arith.addf
  // CHECK-NEXT:   arith.mulf
  // CHECK-NOT:  weft.map
  // CHECK:      return %[[Y]], %[[Z]]
  %0 = weft.map ins(%x, %b : tensor<8x4xf32>, tensor<4xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.addf %a, %c : f32
    weft.yield %2 : f32
  }
  %1 = weft.map ins(%0 : tensor<8x4xf32>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32):
    %2 = arith.negf %a : f32
    weft.yield %2 : f32
  }
  %3 = weft.map ins(%0, %g : tensor<8x4xf32>, tensor<8x4xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.mulf %a, %c : f32
    weft.yield %2 : f32
  }
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A sum takes in what it adds up.
// CHECK-LABEL: func.func private @sum(
// CHECK-SAME:    %[[X:.*]]: tensor<8x4x9xf32>, %[[M:.*]]: tensor<4xf32>)
func.func private @sum(%x: tensor<8x4x9xf32>, %m: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: weft.map_sum ins(%[[X]], %[[M]] :
  // CHECK:        arith.subf
  // CHECK-NEXT:   arith.mulf
  // CHECK-NOT:  weft.map
  %0 = weft.map ins(%x, %m : tensor<8x4x9xf32>, tensor<4xf32>)
      maps [affine_map<(n, c, p) -> (n, c, p)>, affine_map<(n, c, p) -> (c)>] -> tensor<8x4x9xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.subf %a, %c : f32
    weft.yield %2 : f32
  }
  %1 = weft.map_sum ins(%0 : tensor<8x4x9xf32>) maps [affine_map<(n, c, p) -> (n, c, p)>]
      over [8, 4, 9] to [1] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %2 = arith.mulf %a, %a : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<4xf32>
}

// -----

// A map takes in no more beyond 512 operations for each element: 34 hyperbolic tangents have 510.
// CHECK-LABEL: func.func private @many_operations(
func.func private @many_operations(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[FIRST:.*]] = weft.map
  // CHECK-COUNT-34: math.tanh
  // CHECK-NOT: math.tanh
  // CHECK: weft.map ins(%[[FIRST]] : tensor<4xf32>)
  // CHECK: math.tanh
  // CHECK-NOT: math.tanh
  // CHECK: return
  %y1 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y2 = weft.map ins(%y1 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y3 = weft.map ins(%y2 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y4 = weft.map ins(%y3 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y5 = weft.map ins(%y4 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y6 = weft.map ins(%y5 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y7 = weft.map ins(%y6 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y8 = weft.map ins(%y7 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y9 = weft.map ins(%y8 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y10 = weft.map ins(%y9 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y11 = weft.map ins(%y10 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y12 = weft.map ins(%y11 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y13 = weft.map ins(%y12 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y14 = weft.map ins(%y13 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y15 = weft.map ins(%y14 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y16 = weft.map ins(%y15 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y17 = weft.map ins(%y16 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y18 = weft.map ins(%y17 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y19 = weft.map ins(%y18 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y20 = weft.map ins(%y19 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y21 = weft.map ins(%y20 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y22 = weft.map ins(%y21 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y23 = weft.map ins(%y22 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y24 = weft.map ins(%y23 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y25 = weft.map ins(%y24 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y26 = weft.map ins(%y25 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y27 = weft.map ins(%y26 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y28 = weft.map ins(%y27 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y29 = weft.map ins(%y28 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y30 = weft.map ins(%y29 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y31 = weft.map ins(%y30 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y32 = weft.map ins(%y31 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y33 = weft.map ins(%y32 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y34 = weft.map ins(%y33 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  %y35 = weft.map ins(%y34 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    weft.yield %b : f32
  }
  return %y35 : tensor<4xf32>
}
