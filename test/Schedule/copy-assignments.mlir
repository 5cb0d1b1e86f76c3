// RUN: weft-opt %s --copy-assignments --split-input-file | FileCheck %s

// Another variable's value is copied when all reads are over.
// CHECK-LABEL: func.func @step
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[A:.*]] = weft.read @a
  // CHECK: %[[COPY:.*]] = weft.map ins(%[[A]] :
  // CHECK: weft.assign @b, %[[COPY]]
  // CHECK-NEXT: return
  %0 = weft.read @a : tensor<4xf32>
  weft.assign @b, %0 : tensor<4xf32>
  return
}

// -----

// Nothing to copy: computed in place, written directly, and kept.
// CHECK-LABEL: func.func @step
weft.variable parameter @tied ["hidden"] : tensor<4xf32>
weft.variable parameter @direct ["hidden"] : tensor<4xf32>
weft.variable parameter @kept ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK-COUNT-2: weft.map
  // CHECK-NOT: weft.map
  // CHECK: return
  %0 = weft.read @tied : tensor<4xf32>
  %1 = weft.read @kept : tensor<4xf32>
  %2 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  %3 = weft.map ins(%1 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  weft.assign @tied, %2 : tensor<4xf32>
  weft.assign @direct, %3 : tensor<4xf32>
  weft.assign @kept, %1 : tensor<4xf32>
  return
}

// -----

// What is computed before ranks agree to go on is copied afterwards.
// CHECK-LABEL: func.func @step
weft.variable parameter @early ["hidden"] : tensor<4xf32>
weft.variable parameter @late ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: weft.read @early
  // CHECK-NEXT: %[[EARLY:.*]] = weft.map
  // CHECK: weft.agree
  // CHECK-NEXT: weft.read @late
  // CHECK-NEXT: %[[LATE:.*]] = weft.map
  // CHECK: weft.assign @late, %[[LATE]]
  // CHECK-NEXT: %[[COPY:.*]] = weft.map ins(%[[EARLY]] :
  // CHECK: weft.assign @early, %[[COPY]]
  // CHECK-NEXT: return
  %0 = weft.read @early : tensor<4xf32>
  %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  weft.agree
  %2 = weft.read @late : tensor<4xf32>
  %3 = weft.map ins(%2 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  weft.assign @early, %1 : tensor<4xf32>
  weft.assign @late, %3 : tensor<4xf32>
  return
}

// -----

// The old value is read after the new one is known: it must stay until then.
// CHECK-LABEL: func.func @step
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[A:.*]] = weft.read @a
  // CHECK: %[[NEW:.*]] = weft.map ins(%[[A]] :
  // CHECK: math.exp
  // CHECK: %[[B:.*]] = weft.map ins(%[[A]] :
  // CHECK: arith.negf
  // CHECK: weft.assign @b, %[[B]]
  // CHECK: %[[COPY:.*]] = weft.map ins(%[[NEW]] :
  // CHECK: weft.assign @a, %[[COPY]]
  %0 = weft.read @a : tensor<4xf32>
  %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  weft.assign @a, %1 : tensor<4xf32>
  %2 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = arith.negf %a : f32
    weft.yield %4 : f32
  }
  weft.assign @b, %2 : tensor<4xf32>
  return
}

// -----

// Two variables change places: both old values are saved first.
// CHECK-LABEL: func.func @step
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[A:.*]] = weft.read @a
  // CHECK: %[[SAVED_A:.*]] = weft.map ins(%[[A]] :
  // CHECK: %[[B:.*]] = weft.read @b
  // CHECK: %[[SAVED_B:.*]] = weft.map ins(%[[B]] :
  // CHECK: %[[NEW_A:.*]] = weft.map ins(%[[SAVED_B]] :
  // CHECK: weft.assign @a, %[[NEW_A]]
  // CHECK: %[[NEW_B:.*]] = weft.map ins(%[[SAVED_A]] :
  // CHECK: weft.assign @b, %[[NEW_B]]
  %0 = weft.read @a : tensor<4xf32>
  %1 = weft.read @b : tensor<4xf32>
  weft.assign @a, %1 : tensor<4xf32>
  weft.assign @b, %0 : tensor<4xf32>
  return
}

// -----

// A layer whose result is assigned once but not the other time works in place in neither.
// CHECK-LABEL: func.func @step
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func private @update(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %1 = math.exp %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<4xf32>
}
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[NEW:.*]] = weft.call @update
  // CHECK: weft.call @update
  // CHECK: %[[COPY:.*]] = weft.map ins(%[[NEW]] :
  // CHECK: weft.assign @a, %[[COPY]]
  %0 = weft.read @a : tensor<4xf32>
  %1 = weft.read @b : tensor<4xf32>
  %2 = weft.call @update(%0) label "a" : (tensor<4xf32>) -> tensor<4xf32>
  %3 = weft.call @update(%1) label "b" : (tensor<4xf32>) -> tensor<4xf32>
  weft.assign @a, %2 : tensor<4xf32>
  return
}

// -----

// One value for two variables: one copy. A transposed or spread read of the old value, and a
// read by anything but a map, are not in place: copies.
// CHECK-LABEL: func.func @step
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
weft.variable parameter @c ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  // CHECK: %[[NEW:.*]] = weft.map
  // CHECK: %[[DROPPED:.*]] = weft.norm
  // CHECK: weft.assign @a, %[[NEW]]
  // CHECK: %[[COPY_B:.*]] = weft.map ins(%[[NEW]] :
  // CHECK: weft.assign @b, %[[COPY_B]]
  // CHECK: %[[COPY_C:.*]] = weft.map ins(%[[DROPPED]] :
  // CHECK: weft.assign @c, %[[COPY_C]]
  %0 = weft.read @a : tensor<4xf32>
  %1 = weft.read @c : tensor<4xf32>
  %2 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  %3 = weft.norm rms %1 scale(%1 : tensor<4xf32>) epsilon = 1.0e-5
      : tensor<4xf32> -> tensor<4xf32>
  weft.assign @a, %2 : tensor<4xf32>
  weft.assign @b, %2 : tensor<4xf32>
  weft.assign @c, %3 : tensor<4xf32>
  return
}

// -----

// Calls of micro-batches pass on a sum, in place of what they got; a value that is ready before they have read what it
// replaces, so that it is copied into its place; and one that they do not compute, which stays.
// CHECK-LABEL: func.func private @part
// CHECK: %[[SUM:.*]] = weft.map ins(%arg1, %arg4 :
// CHECK: %[[NEW:.*]] = weft.map ins(%arg4 :
// CHECK: weft.map ins(%arg2, %[[NEW]] :
// CHECK: %[[COPY:.*]] = weft.map ins(%[[NEW]] :
// CHECK: return %[[SUM]], %[[COPY]], %arg4
weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func private @part(%n: index, %sum: tensor<4xf32>, %last: tensor<4xf32>, %same: tensor<4xf32>,
                        %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {weft.micro_batch} {
  %0 = weft.map ins(%sum, %x : tensor<4xf32>, tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %4 = arith.addf %a, %b : f32
    weft.yield %4 : f32
  }
  %1 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %4 = math.exp %a : f32
    weft.yield %4 : f32
  }
  %2 = weft.map ins(%last, %1 : tensor<4xf32>, tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %4 = arith.addf %a, %b : f32
    weft.yield %4 : f32
  }
  weft.observe "gradient/a", %2 : tensor<4xf32>
  return %0, %1, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @step() {
  %x = weft.read @a : tensor<4xf32>
  %0 = weft.fill constant 0.0 : tensor<4xf32>
  %1 = weft.fill constant 1.0 : tensor<4xf32>
  %2 = weft.fill constant 2.0 : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %3:3 = weft.call @part(%c0, %0, %1, %2, %x) label "micro-batch 0"
      : (index, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %c1 = arith.constant 1 : index
  %4:3 = weft.call @part(%c1, %3#0, %3#1, %3#2, %x) label "micro-batch 1"
      : (index, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %c2 = arith.constant 2 : index
  %5:3 = weft.call @part(%c2, %4#0, %4#1, %4#2, %x) label "micro-batch 2"
      : (index, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %c3 = arith.constant 3 : index
  %6:3 = weft.call @part(%c3, %5#0, %5#1, %5#2, %x) label "micro-batch 3"
      : (index, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %7 = weft.map ins(%6#0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %8 = math.exp %a : f32
    weft.yield %8 : f32
  }
  weft.assign @b, %7 : tensor<4xf32>
  return
}
