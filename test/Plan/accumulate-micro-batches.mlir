// RUN: weft-opt %s -split-input-file -accumulate-micro-batches="accumulation=2 samples=8" | FileCheck %s
// RUN: weft-opt %s -split-input-file -accumulate-micro-batches="accumulation=1 samples=8" | FileCheck %s --check-prefix=ONE
// ONE-NOT: micro_batch

// The example of the pass's description. Values that do not depend on samples stay.

// CHECK: weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>
weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
weft.variable parameter @w ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @init
// CHECK-NOT:     call
// CHECK:         return
func.func @init() {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  return
}

// CHECK-LABEL: func.func private @step_micro_batch
// CHECK-SAME:    (%[[NUMBER:.*]]: index, %[[SUM:.*]]: tensor<4xf64> {weft.may_pend}) -> (tensor<4xf64> {weft.may_pend})
// CHECK-SAME:    attributes {weft.micro_batch}
// CHECK:         %[[ALL:.*]] = weft.read @x : tensor<2x?x4xf64>
// CHECK:         %[[PART:.*]] = weft.select %[[ALL]][%[[NUMBER]]] : tensor<2x?x4xf64> -> tensor<?x4xf64>
// CHECK:         %[[TERM:.*]] = weft.contract "bk->k"(%[[PART]]) : (tensor<?x4xf64>) -> tensor<4xf64>
// CHECK:         %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK:           arith.addf
// CHECK:         return %[[NEXT]]

// CHECK-LABEL: func.func @step()
// CHECK:         %[[ZERO:.*]] = weft.fill constant 0.0{{.*}} : tensor<4xf64>
// CHECK:         %[[FIRST:.*]] = weft.call @step_micro_batch(%c0, %[[ZERO]]) label "micro-batch 0"
// CHECK:         %[[BOTH:.*]] = weft.call @step_micro_batch(%c1, %[[FIRST]]) label "micro-batch 1"
// CHECK-NOT:     weft.read @x
// CHECK:         %[[W:.*]] = weft.read @w
// CHECK:         weft.map ins(%[[W]], %[[BOTH]]
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  %w = weft.read @w : tensor<4xf64>
  %0 = weft.contract "bk->k"(%x) : (tensor<?x4xf64>) -> tensor<4xf64>
  %1 = weft.map ins(%w, %0 : tensor<4xf64>, tensor<4xf64>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %b, %b : f64
    %d = arith.subf %a, %c : f64
    weft.yield %d : f64
  }
  weft.assign @w, %1 : tensor<4xf64>
  return
}

// -----

// The gradients of all layers have one function that adds them up; what they were computed from is
// read for each micro-batch. A sum of bf16 is one of f32.

#id = affine_map<(b, k) -> (b, k)>
#to_k = affine_map<(b, k) -> (k)>
weft.variable input @x ["batch", "hidden"] : tensor<?x4xf32>
weft.variable parameter @u ["hidden"] : tensor<4xf32>
weft.variable parameter @v ["hidden"] : tensor<4xf32>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    -> (tensor<?x4xf32>, tensor<4xbf16> {weft.may_pend})
func.func private @layer(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xbf16>) {
  %0 = weft.map ins(%x, %w : tensor<?x4xf32>, tensor<4xf32>) maps [#id, #to_k] -> tensor<?x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    weft.yield %c : f32
  }
  %short = weft.map ins(%x : tensor<?x4xf32>) maps [#id] -> tensor<?x4xbf16> {
  ^bb0(%a: f32):
    %c = arith.truncf %a : f32 to bf16
    weft.yield %c : bf16
  }
  %1 = weft.contract "bk->k"(%short) : (tensor<?x4xbf16>) -> tensor<4xbf16>
  return %0, %1 : tensor<?x4xf32>, tensor<4xbf16>
}

// CHECK-LABEL: func.func private @step_micro_batch
// CHECK:         %[[U:.*]] = weft.read @u
// CHECK:         %[[X:.*]]:2 = weft.call @layer(%{{.*}}, %[[U]]) label "layers.0"
// CHECK:         weft.call @sum_next(%{{.*}}, %[[X]]#1) label "layers.0"
// CHECK:         %[[V:.*]] = weft.read @v
// CHECK:         %[[Y:.*]]:2 = weft.call @layer(%[[X]]#0, %[[V]]) label "layers.1"
// CHECK:         weft.call @sum_next(%{{.*}}, %[[Y]]#1) label "layers.1"

// CHECK-LABEL: func.func @step()
// CHECK-COUNT-2: weft.call @sum_start()
// CHECK-COUNT-2: weft.call @step_micro_batch
// CHECK:         arith.truncf
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  %u = weft.read @u : tensor<4xf32>
  %y, %p = weft.call @layer(%x, %u) label "layers.0" : (tensor<?x4xf32>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xbf16>)
  %v = weft.read @v : tensor<4xf32>
  %z, %q = weft.call @layer(%y, %v) label "layers.1" : (tensor<?x4xf32>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xbf16>)
  weft.observe "gradient/u", %p : tensor<4xbf16>
  weft.observe "gradient/v", %q : tensor<4xbf16>
  return
}

// CHECK-LABEL: func.func private @sum_start
// CHECK-SAME:    -> (tensor<4xf32> {weft.may_pend})
// CHECK-LABEL: func.func private @sum_next
// CHECK-SAME:    (%{{.*}}: tensor<4xf32> {weft.may_pend}, %{{.*}}: tensor<4xbf16> {weft.may_pend}) -> (tensor<4xf32> {weft.may_pend})

// -----

// The greatest of all samples is that of all micro-batches, and what is of no sample is the same in
// each. Neither is pending, nor kept by a function of its own.

#id = affine_map<(b, k) -> (b, k)>
#to_k = affine_map<(b, k) -> (k)>
weft.variable input @x ["batch", "hidden"] : tensor<?x4xf32>
weft.variable parameter @w ["hidden"] : tensor<4xf32>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    -> (tensor<4xf32> {weft.may_pend}, tensor<f32>, tensor<f32>)
func.func private @layer(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<f32>) {
  %0 = weft.contract "bk->k"(%x) : (tensor<?x4xf32>) -> tensor<4xf32>
  %1 = weft.amax %x : tensor<?x4xf32> -> tensor<f32>
  %2 = weft.amax %w : tensor<4xf32> -> tensor<f32>
  return %0, %1, %2 : tensor<4xf32>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func private @step_micro_batch
// CHECK-SAME:    (%{{.*}}: index, %{{.*}}: tensor<4xf32> {weft.may_pend}, %[[X:.*]]: tensor<f32>, %[[W:.*]]: tensor<f32>)
// CHECK-SAME:    -> (tensor<4xf32> {weft.may_pend}, tensor<f32>, tensor<f32>)
// CHECK:         %[[HERE:.*]]:3 = weft.call @layer
// CHECK:         %[[GREATER:.*]] = weft.map ins(%[[X]], %[[HERE]]#1
// CHECK:           arith.maximumf
// CHECK:         %[[SAME:.*]] = weft.map ins(%[[W]], %[[HERE]]#2
// CHECK:           arith.maximumf
// CHECK:         return %{{.*}}, %[[GREATER]], %[[SAME]]

// CHECK-LABEL: func.func @step()
// CHECK-COUNT-2: weft.fill constant 0xFFF0000000000000 {{.*}}tensor<f32>
// CHECK:         %[[FIRST:.*]]:3 = weft.call @step_micro_batch
// CHECK:         %[[BOTH:.*]]:3 = weft.call @step_micro_batch(%c1, %[[FIRST]]#0, %[[FIRST]]#1, %[[FIRST]]#2)
// CHECK:         weft.observe "x", %[[BOTH]]#1
// CHECK:         weft.observe "w", %[[BOTH]]#2
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  %w = weft.read @w : tensor<4xf32>
  %s, %a, %b = weft.call @layer(%x, %w) label "layers.0" : (tensor<?x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<f32>)
  weft.observe "sum", %s : tensor<4xf32>
  weft.observe "x", %a : tensor<f32>
  weft.observe "w", %b : tensor<f32>
  return
}

// -----

// Dropout numbers samples: those of micro-batch 1 begin with 4 of 8, in a function that a function
// calls as well.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
weft.variable input @seed [] : tensor<i64>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    %[[NUMBER:arg3]]: index)
// CHECK:         %[[SIZE:.*]] = arith.constant 4 : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[NUMBER]], %[[SIZE]] : index
// CHECK:         weft.dropout {{.*}} offsets(%[[FIRST]], %{{.*}}) of [8, 4]
func.func private @layer(%i: index, %x: tensor<?x4xf64>, %seed: tensor<i64>) -> tensor<f64> {
  %0 = weft.dropout %x rate = 0.5 site = 1 key(%seed, %seed, %i : tensor<i64>, tensor<i64>) : tensor<?x4xf64> -> tensor<?x4xf64>
  %1 = weft.contract "bk->"(%0) : (tensor<?x4xf64>) -> tensor<f64>
  return %1 : tensor<f64>
}

// CHECK-LABEL: func.func private @step_micro_batch(%arg0: index
// CHECK:         weft.call @layer(%c7, %{{.*}}, %{{.*}}, %arg0) label "layers.7"
func.func @step() {
  %i = arith.constant 7 : index
  %x = weft.read @x : tensor<?x4xf64>
  %seed = weft.read @seed : tensor<i64>
  %0 = weft.call @layer(%i, %x, %seed) label "layers.7" : (index, tensor<?x4xf64>, tensor<i64>) -> tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  return
}

// -----

// What a function takes but does not use, as the gradient of a result that no loss depends on, need
// be known to no micro-batch.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
func.func private @layer(%x: tensor<?x4xf64>, %unused: tensor<f64>) -> tensor<f64> {
  %0 = weft.contract "bk->"(%x) : (tensor<?x4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// CHECK-LABEL: func.func private @step_micro_batch
// CHECK:         %[[SUM:.*]] = weft.contract "bk->"
// CHECK:         %[[ROOT:.*]] = weft.map ins(%[[SUM]]
// CHECK:         weft.call @layer(%{{.*}}, %[[ROOT]])
func.func @step() {
  %x = weft.read @x : tensor<?x4xf64>
  %0 = weft.contract "bk->"(%x) : (tensor<?x4xf64>) -> tensor<f64>
  %1 = weft.map ins(%0 : tensor<f64>) maps [affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64):
    %b = math.sqrt %a : f64
    weft.yield %b : f64
  }
  %2 = weft.call @layer(%x, %1) label "layer" : (tensor<?x4xf64>, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %2 : tensor<f64>
  return
}

// -----

// A gradient that the step rounds has a sum of the rounded type; each micro-batch rounds it. A sum that is rounded for
// something else stays wide.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf32>
weft.variable parameter @w ["hidden"] : tensor<4xf32>

// CHECK-LABEL: func.func private @step_micro_batch
// CHECK-SAME:    %[[SUM:[a-z0-9]+]]: tensor<4xbf16> {weft.may_pend}, %{{.*}}: tensor<4xf32> {weft.may_pend})
// CHECK:         weft.map ins(%[[SUM]], %{{.*}} : tensor<4xbf16>, tensor<4xf32>){{.*}} -> tensor<4xbf16>
// CHECK:           %[[WIDE:.*]] = arith.extf
// CHECK:           %[[NEXT:.*]] = arith.addf %[[WIDE]]
// CHECK:           arith.truncf %[[NEXT]]

// CHECK-LABEL: func.func @step()
// CHECK:         weft.fill constant 0.0{{.*}} : tensor<4xbf16>
// CHECK:         weft.call @step_micro_batch{{.*}} label "micro-batch 1"
// CHECK:         weft.observe "gradient/w", %{{.*}} : tensor<4xbf16>
func.func @step() {
  %x = weft.read @x : tensor<?x4xf32>
  %0 = weft.contract "bk->k"(%x) : (tensor<?x4xf32>) -> tensor<4xf32>
  %1 = weft.contract "bk,bk->k"(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<4xf32>
  %2 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xbf16> {
  ^bb0(%a: f32):
    %b = arith.truncf %a : f32 to bf16
    weft.yield %b : bf16
  }
  %3 = weft.map ins(%1 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xbf16> {
  ^bb0(%a: f32):
    %b = arith.truncf %a : f32 to bf16
    weft.yield %b : bf16
  }
  weft.observe "gradient/w", %2 : tensor<4xbf16>
  weft.observe "squares", %3 : tensor<4xbf16>
  return
}
