// RUN: weft-opt %s -split-input-file -build-updates | FileCheck %s

// The example of the pass's description: no momentum and a constant rate, so w - 0.1 g.

weft.variable parameter @w ["hidden"] : tensor<4xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
func.func @init() {
  return
}

// CHECK-NOT:   weft.optimizer
// CHECK-LABEL: func.func @step() {
// CHECK-NEXT:    %[[W:.*]] = weft.read @w
// CHECK-NEXT:    %[[G:.*]] = weft.contract "a->a"(%[[W]])
// CHECK-NEXT:    weft.observe "gradient/w", %[[G]]
// CHECK-NEXT:    %[[SQUARE:.*]] = weft.call @square_norm(%[[G]]) label "update" : (tensor<4xf64>) -> tensor<f64>
// CHECK-NEXT:    %[[NORM:.*]] = weft.map ins(%[[SQUARE]] : tensor<f64>)
// CHECK:           math.sqrt
// CHECK:         weft.observe "gradient_norm", %[[NORM]] : tensor<f64>
// CHECK-NEXT:    %[[NUMBER:.*]] = weft.read @step_number
// CHECK-NEXT:    %[[RATE:.*]] = weft.map ins(%[[NUMBER]] : tensor<i64>)
// CHECK:           %[[PEAK:.*]] = arith.constant 1.000000e-01 : f64
// CHECK-NEXT:      weft.yield %[[PEAK]]
// CHECK:         %[[NEW:.*]] = weft.call @update(%[[RATE]], %[[W]], %[[G]]) label "update"
// CHECK-NEXT:    weft.assign @w, %[[NEW]] : tensor<4xf64>
// CHECK-NEXT:    return

// CHECK-LABEL: func.func private @square_norm(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf64>) -> tensor<f64>
// CHECK-NEXT:    %[[SUM:.*]] = weft.contract "a,a->"(%[[X]], %[[X]])
// CHECK-NEXT:    return %[[SUM]]

// CHECK-LABEL: func.func private @update(
// CHECK-SAME:      %[[RATE:.*]]: tensor<f64>, %[[W:.*]]: tensor<4xf64>, %[[G:.*]]: tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT:    weft.map ins(%[[W]], %[[G]], %[[RATE]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f64, %[[B:.*]]: f64, %[[R:.*]]: f64):
// CHECK-NEXT:      %[[MOVE:.*]] = arith.mulf %[[R]], %[[B]]
// CHECK-NEXT:      %[[NEW:.*]] = arith.subf %[[A]], %[[MOVE]]
// CHECK-NEXT:      weft.yield %[[NEW]]
func.func @step() {
  %w = weft.read @w : tensor<4xf64>
  %g = weft.contract "a->a" (%w) : (tensor<4xf64>) -> tensor<4xf64>
  weft.observe "gradient/w", %g : tensor<4xf64>
  return
}

// -----

// Momentum: u <- 0.9 u + (g + 0.5 w), and only a parameter with the flag decays.

weft.variable parameter @decays ["hidden"] decay : tensor<4xf64>
weft.variable parameter @keeps ["hidden"] : tensor<2xf64>
weft.variable input @step_number [] : tensor<i64>
// CHECK-DAG: weft.variable optimizer @"momentum/decays" ["hidden"] : tensor<4xf64>
// CHECK-DAG: weft.variable optimizer @"momentum/keeps" ["hidden"] : tensor<2xf64>
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
    {momentum = 0.9, weight_decay = 0.5}

// CHECK-LABEL: func.func @init() {
// CHECK-NEXT:    %[[ZERO:.*]] = weft.fill constant 0.000000e+00 : tensor<4xf64>
// CHECK-NEXT:    weft.assign @"momentum/decays", %[[ZERO]]
// CHECK-NEXT:    %[[OTHER:.*]] = weft.fill constant 0.000000e+00 : tensor<2xf64>
// CHECK-NEXT:    weft.assign @"momentum/keeps", %[[OTHER]]
func.func @init() {
  return
}

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[STATE:.*]] = weft.read @"momentum/decays"
// CHECK:         %[[NEW:.*]]:4 = weft.call @update
// CHECK-NEXT:    weft.assign @decays, %[[NEW]]#0
// CHECK-NEXT:    weft.assign @"momentum/decays", %[[NEW]]#1
// CHECK-NEXT:    weft.assign @keeps, %[[NEW]]#2
// CHECK-NEXT:    weft.assign @"momentum/keeps", %[[NEW]]#3

// CHECK-LABEL: func.func private @square_norm(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf64>, %[[Y:.*]]: tensor<2xf64>)
// CHECK:         %[[XX:.*]] = weft.contract "a,a->"(%[[X]], %[[X]])
// CHECK-NEXT:    %[[YY:.*]] = weft.contract "a,a->"(%[[Y]], %[[Y]])
// CHECK-NEXT:    weft.map ins(%[[XX]], %[[YY]] :
// CHECK:           arith.addf

// CHECK-LABEL: func.func private @update(
// CHECK:         ^bb0(%[[W:.*]]: f64, %[[G:.*]]: f64, %[[U:.*]]: f64, %[[R:.*]]: f64):
// CHECK-NEXT:      %[[DECAY:.*]] = arith.constant 5.000000e-01
// CHECK-NEXT:      %[[PULL:.*]] = arith.mulf %[[DECAY]], %[[W]]
// CHECK-NEXT:      %[[MOVE:.*]] = arith.addf %[[G]], %[[PULL]]
// CHECK-NEXT:      %[[MU:.*]] = arith.constant 9.000000e-01
// CHECK-NEXT:      %[[OLD:.*]] = arith.mulf %[[MU]], %[[U]]
// CHECK-NEXT:      %[[NEWU:.*]] = arith.addf %[[OLD]], %[[MOVE]]
// CHECK-NEXT:      %[[STEP:.*]] = arith.mulf %[[R]], %[[NEWU]]
// CHECK-NEXT:      %[[NEW:.*]] = arith.subf %[[W]], %[[STEP]]
// CHECK-NEXT:      weft.yield %[[NEW]], %[[NEWU]]
// CHECK:         ^bb0(%[[W:.*]]: f64, %[[G:.*]]: f64, %[[U:.*]]: f64, %[[R:.*]]: f64):
// CHECK-NEXT:      %[[MU:.*]] = arith.constant 9.000000e-01
// CHECK-NEXT:      %[[OLD:.*]] = arith.mulf %[[MU]], %[[U]]
// CHECK-NEXT:      %[[NEWU:.*]] = arith.addf %[[OLD]], %[[G]]
func.func @step() {
  %0 = weft.read @decays : tensor<4xf64>
  %1 = weft.read @keeps : tensor<2xf64>
  weft.observe "gradient/decays", %0 : tensor<4xf64>
  weft.observe "gradient/keeps", %1 : tensor<2xf64>
  return
}

// -----

// AdamW in f32 with a schedule and clipping: scalars are f64 until they meet the parameter.

weft.variable parameter @adamw ["hidden"] decay : tensor<4xf32>
weft.variable input @step_number [] : tensor<i64>
// CHECK-DAG: weft.variable optimizer @"adam_m/adamw" ["hidden"] : tensor<4xf32>
// CHECK-DAG: weft.variable optimizer @"adam_v/adamw" ["hidden"] : tensor<4xf32>
weft.optimizer adamw learning_rate 1.0e-1 decay cosine warmup 2 steps 10 final 0.5
    {beta1 = 0.5, beta2 = 0.75, epsilon = 0.125, weight_decay = 0.25, clip = 2.0}
func.func @init() {
  return
}

// CHECK-LABEL: func.func @step() {
// CHECK:         weft.observe "gradient_norm", %[[NORM:.*]] : tensor<f32>
// CHECK:         %[[NUMBER:.*]] = weft.read @step_number

// 0.1 (0.5 + 0.25 (1 + cos(pi p))) with p = min(1, (step - 2) / 8), after 0.1 (step + 1) / 2.
// CHECK-NEXT:    %[[RATE:.*]] = weft.map ins(%[[NUMBER]] : tensor<i64>)
// CHECK:           %[[STEP:.*]] = arith.sitofp %{{.*}} : i64 to f64
// CHECK:           %[[WARM:.*]] = arith.constant 2.000000e+00
// CHECK-NEXT:      %[[PAST:.*]] = arith.subf %[[STEP]], %[[WARM]]
// CHECK-NEXT:      %[[LENGTH:.*]] = arith.constant 8.000000e+00
// CHECK-NEXT:      %[[SHARE:.*]] = arith.divf %[[PAST]], %[[LENGTH]]
// CHECK-NEXT:      %[[P:.*]] = arith.minimumf %{{.*}}, %[[SHARE]]
// CHECK-NEXT:      %[[PEAK:.*]] = arith.constant 1.000000e-01
// CHECK-NEXT:      %[[PI:.*]] = arith.constant 3.1415926535897931
// CHECK-NEXT:      %[[ANGLE:.*]] = arith.mulf %[[PI]], %[[P]]
// CHECK-NEXT:      %[[COS:.*]] = math.cos %[[ANGLE]]
// CHECK-NEXT:      %[[QUARTER:.*]] = arith.constant 2.500000e-01
// CHECK:           %[[WAVE:.*]] = arith.addf %{{.*}}, %[[COS]]
// CHECK-NEXT:      %[[LEFT:.*]] = arith.mulf %[[QUARTER]], %[[WAVE]]
// CHECK-NEXT:      %[[END:.*]] = arith.constant 5.000000e-01
// CHECK-NEXT:      %[[FACTOR:.*]] = arith.addf %[[END]], %[[LEFT]]
// CHECK-NEXT:      %[[FALLING:.*]] = arith.mulf %[[PEAK]], %[[FACTOR]]
// CHECK:           %[[RISING:.*]] = arith.divf
// CHECK:           %[[EARLY:.*]] = arith.cmpf olt, %[[STEP]], %{{.*}}
// CHECK-NEXT:      %[[R:.*]] = arith.select %[[EARLY]], %[[RISING]], %[[FALLING]]
// CHECK-NEXT:      weft.yield %[[R]] : f64

// 1 / (1 - beta^(step + 1)), twice.
// CHECK:         %[[FIRST:.*]] = weft.map ins(%[[NUMBER]] : tensor<i64>)
// CHECK:           %[[BETA:.*]] = arith.constant 5.000000e-01
// CHECK:           %[[POWER:.*]] = math.powf %[[BETA]], %{{.*}}
// CHECK:           %[[REST:.*]] = arith.subf %{{.*}}, %[[POWER]]
// CHECK-NEXT:      arith.divf %{{.*}}, %[[REST]]
// CHECK:         %[[SECOND:.*]] = weft.map ins(%[[NUMBER]] : tensor<i64>)
// CHECK:           arith.constant 7.500000e-01

// min(1, 2 / (norm + 1e-6))
// CHECK:         %[[CLIP:.*]] = weft.map ins(%[[NORM]] : tensor<f32>)
// CHECK:           %[[WIDE:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK:           %[[BOUND:.*]] = arith.constant 2.000000e+00
// CHECK:           %[[SUM:.*]] = arith.addf %[[WIDE]], %{{.*}}
// CHECK-NEXT:      %[[RATIO:.*]] = arith.divf %[[BOUND]], %[[SUM]]
// CHECK-NEXT:      arith.minimumf %{{.*}}, %[[RATIO]]
// CHECK:         weft.call @update(%[[RATE]], %[[FIRST]], %[[SECOND]], %[[CLIP]],

// CHECK-LABEL: func.func private @update(
// CHECK:         ^bb0(%[[W:.*]]: f32, %[[RAW:.*]]: f32, %[[M:.*]]: f32, %[[V:.*]]: f32, %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64, %[[S:.*]]: f64):
// CHECK-DAG:       %[[R:.*]] = arith.truncf %[[A]]
// CHECK-DAG:       %[[FIRST:.*]] = arith.truncf %[[B]]
// CHECK-DAG:       %[[SECOND:.*]] = arith.truncf %[[C]]
// CHECK-DAG:       %[[SCALE:.*]] = arith.truncf %[[S]]
// CHECK:           %[[G:.*]] = arith.mulf %[[RAW]], %[[SCALE]]
// CHECK:           %[[OLDM:.*]] = arith.mulf %{{.*}}, %[[M]]
// CHECK:           %[[ADDM:.*]] = arith.mulf %{{.*}}, %[[G]]
// CHECK:           %[[NEWM:.*]] = arith.addf %[[OLDM]], %[[ADDM]]
// CHECK:           %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK:           %[[OLDV:.*]] = arith.mulf %{{.*}}, %[[V]]
// CHECK:           %[[ADDV:.*]] = arith.mulf %{{.*}}, %[[GG]]
// CHECK:           %[[NEWV:.*]] = arith.addf %[[OLDV]], %[[ADDV]]
// CHECK-NEXT:      %[[VHAT:.*]] = arith.mulf %[[NEWV]], %[[SECOND]]
// CHECK-NEXT:      %[[ROOT:.*]] = math.sqrt %[[VHAT]]
// CHECK-NEXT:      %[[EPSILON:.*]] = arith.constant 1.250000e-01
// CHECK-NEXT:      %[[DIVISOR:.*]] = arith.addf %[[ROOT]], %[[EPSILON]]
// CHECK-NEXT:      %[[MHAT:.*]] = arith.mulf %[[NEWM]], %[[FIRST]]
// CHECK-NEXT:      %[[MOVE:.*]] = arith.divf %[[MHAT]], %[[DIVISOR]]
// CHECK-NEXT:      %[[DECAY:.*]] = arith.constant 2.500000e-01
// CHECK-NEXT:      %[[PULL:.*]] = arith.mulf %[[DECAY]], %[[W]]
// CHECK-NEXT:      %[[BOTH:.*]] = arith.addf %[[MOVE]], %[[PULL]]
// CHECK-NEXT:      %[[STEP:.*]] = arith.mulf %[[R]], %[[BOTH]]
// CHECK-NEXT:      %[[NEW:.*]] = arith.subf %[[W]], %[[STEP]]
// CHECK-NEXT:      weft.yield %[[NEW]], %[[NEWM]], %[[NEWV]]
func.func @step() {
  %0 = weft.read @adamw : tensor<4xf32>
  weft.observe "gradient/adamw", %0 : tensor<4xf32>
  return
}

// -----

// A linear schedule whose warm-up lasts to the end: after it the rate is the last one.

weft.variable parameter @linear ["hidden"] : tensor<4xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0 decay linear warmup 4 steps 4 final 0.25
func.func @init() {
  return
}

// CHECK-LABEL: func.func @step() {
// CHECK:         weft.map ins(%{{.*}} : tensor<i64>)
// CHECK-NOT:       arith.minimumf
// CHECK:           %[[DROP:.*]] = arith.constant 7.500000e-01
// CHECK-NEXT:      %[[SHARE:.*]] = arith.mulf %[[DROP]], %{{.*}}
// CHECK-NEXT:      %[[LEFT:.*]] = arith.subf %{{.*}}, %[[SHARE]]
// CHECK-NEXT:      %[[FALLING:.*]] = arith.mulf %{{.*}}, %[[LEFT]]
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[FALLING]]
func.func @step() {
  %0 = weft.read @linear : tensor<4xf64>
  weft.observe "gradient/linear", %0 : tensor<4xf64>
  return
}

// -----

// Two layers of the same types share their functions; a third that decays has its own update, and
// the parameter that @step uses itself is its own group.

weft.variable parameter @first ["hidden"] : tensor<4xf64>
weft.variable parameter @second ["hidden"] : tensor<4xf64>
weft.variable parameter @third ["hidden"] decay : tensor<4xf64>
weft.variable parameter @own ["hidden"] : tensor<2xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0 {weight_decay = 0.5}
func.func @init() {
  return
}
func.func private @layer(%w: tensor<4xf64>) -> tensor<4xf64> {
  return %w : tensor<4xf64>
}

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[A:.*]] = weft.call @[[NORM:square_norm]](%{{.*}}) label "layers.0 update"
// CHECK-NEXT:    %[[B:.*]] = weft.call @[[NORM]](%{{.*}}) label "layers.1 update"
// CHECK-NEXT:    %[[AB:.*]] = weft.map ins(%[[A]], %[[B]] :
// CHECK:         %[[C:.*]] = weft.call @[[NORM]](%{{.*}}) label "layers.2 update"
// CHECK-NEXT:    %[[ABC:.*]] = weft.map ins(%[[AB]], %[[C]] :
// CHECK:         %[[D:.*]] = weft.call @[[OWN:square_norm_.*]](%{{.*}}) label "update"
// CHECK:         weft.call @[[UPDATE:update]](%{{.*}}) label "layers.0 update"
// CHECK-NEXT:    weft.assign @first
// CHECK-NEXT:    weft.call @[[UPDATE]](%{{.*}}) label "layers.1 update"
// CHECK-NEXT:    weft.assign @second
// CHECK-NEXT:    weft.call @[[DECAY:update_.*]](%{{.*}}) label "layers.2 update"
// CHECK-NEXT:    weft.assign @third
// CHECK-NEXT:    weft.call @update{{.*}} label "update"
// CHECK-NEXT:    weft.assign @own
// CHECK-LABEL: func.func private @square_norm(
func.func @step() {
  %0 = weft.read @first : tensor<4xf64>
  %1 = weft.read @second : tensor<4xf64>
  %2 = weft.read @third : tensor<4xf64>
  %3 = weft.read @own : tensor<2xf64>
  %4 = weft.call @layer(%0) label "layers.0" : (tensor<4xf64>) -> tensor<4xf64>
  // Rounded, it is the layer's as well.
  %amax = weft.amax %1 : tensor<4xf64> -> tensor<f64>
  %rounded = weft.quantize e4m3 %1 by %amax : tensor<4xf64>, tensor<f64> -> tensor<4xf64>
  %5 = weft.call @layer(%rounded) label "layers.1" : (tensor<4xf64>) -> tensor<4xf64>
  %6 = weft.call @layer(%2) label "layers.2" : (tensor<4xf64>) -> tensor<4xf64>
  weft.observe "gradient/first", %4 : tensor<4xf64>
  weft.observe "gradient/second", %5 : tensor<4xf64>
  weft.observe "gradient/third", %6 : tensor<4xf64>
  weft.observe "gradient/own", %3 : tensor<2xf64>
  return
}

// -----

// Muon: what is a matrix has a momentum, which matmuls make orthogonal on the side of the fewer
// elements, here the columns; the rest is AdamW's, at a rate of its own.

weft.variable parameter @tall ["kv_heads", "head", "hidden"] decay matrix [0, 2] : tensor<2x4x3xf64>
weft.variable parameter @norm ["hidden"] : tensor<3xf64>
weft.variable input @step_number [] : tensor<i64>
// CHECK-DAG: weft.variable optimizer @"momentum/tall" ["kv_heads", "head", "hidden"] : tensor<2x4x3xf64>
// CHECK-DAG: weft.variable optimizer @"adam_m/norm" ["hidden"] : tensor<3xf64>
// CHECK-DAG: weft.variable optimizer @"adam_v/norm" ["hidden"] : tensor<3xf64>
weft.optimizer muon learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
    {momentum = 0.9, nesterov, iterations = 2 : i64, other_rate = 0.5}

// CHECK-LABEL: func.func @step
// CHECK:         weft.call @update(
// CHECK:         %[[BEGUN:.*]]:2 = weft.call @direction
// CHECK:         weft.assign @"momentum/tall", %[[BEGUN]]#1
// CHECK:         %[[SQUARES:.*]] = weft.contract "abc,abc->"(%[[BEGUN]]#0, %[[BEGUN]]#0)
// CHECK:         %[[X:.*]] = weft.map ins(%[[BEGUN]]#0, %[[SQUARES]]
// CHECK:         %[[GRAM:.*]] = weft.contract "abc,abd->cd"(%[[X]], %[[X]])
// CHECK:         %[[SQUARE:.*]] = weft.contract "ce,ed->cd"(%[[GRAM]], %[[GRAM]])
// CHECK:         %[[FACTOR:.*]] = weft.map ins(%[[GRAM]], %[[SQUARE]]
// CHECK:         %[[PART:.*]] = weft.contract "cd,abd->abc"(%[[FACTOR]], %[[X]])
// CHECK:         weft.map ins(%[[X]], %[[PART]]
// CHECK:         weft.contract "abc,abd->cd"
// CHECK:         weft.contract "cd,abd->abc"
// CHECK-NOT:     weft.contract
// CHECK:         weft.call @update_matrices
// CHECK:       func.func private @update(
// CHECK:         math.sqrt
// CHECK:         arith.constant 5.000000e-01
// CHECK:       func.func private @direction
// CHECK:         weft.map ins(%{{.*}}, %{{.*}} : tensor<2x4x3xf64>, tensor<2x4x3xf64>)
func.func @init() {
  return
}
func.func @step() {
  %w = weft.read @tall : tensor<2x4x3xf64>
  %v = weft.read @norm : tensor<3xf64>
  weft.observe "gradient/tall", %w : tensor<2x4x3xf64>
  weft.observe "gradient/norm", %v : tensor<3xf64>
  return
}

// -----

// Without a momentum, a matrix still has its state.

weft.variable parameter @w ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf64>
weft.variable input @step_number [] : tensor<i64>
// CHECK: weft.variable optimizer @"momentum/w" ["ffn", "hidden"] : tensor<4x3xf64>
weft.optimizer muon learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
func.func @init() {
  return
}
func.func @step() {
  %w = weft.read @w : tensor<4x3xf64>
  weft.observe "gradient/w", %w : tensor<4x3xf64>
  return
}

// -----

// Matrices of one type are orthogonalized as one batch, here in bf16; the sum of squares is wide.

weft.variable parameter @u ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf32>
weft.variable parameter @w ["ffn", "hidden"] matrix [0, 1] : tensor<4x3xf32>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer muon learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
    {iterations = 1 : i64, iterates_in_bf16}

// CHECK-LABEL: func.func @step
// CHECK:         %[[BEGUN:.*]]:4 = weft.call @direction
// CHECK-DAG:     weft.assign @"momentum/u", %[[BEGUN]]#1
// CHECK-DAG:     weft.assign @"momentum/w", %[[BEGUN]]#3
// CHECK:         %[[U:.*]] = weft.reshape %[[BEGUN]]#0 {{\[}}[0, 1], [2]] : tensor<4x3xbf16> -> tensor<1x4x3xbf16>
// CHECK:         %[[W:.*]] = weft.reshape %[[BEGUN]]#2
// CHECK:         %[[BATCH:.*]] = weft.concat %[[U]], %[[W]] dim 0 : {{.*}} -> tensor<2x4x3xbf16>
// CHECK:         weft.contract "abc,abc->a"(%[[BATCH]], %[[BATCH]]) : {{.*}} -> tensor<2xf32>
// CHECK:         weft.contract "abc,abd->acd"{{.*}} -> tensor<2x3x3xbf16>
// CHECK:         weft.contract "ace,aed->acd"{{.*}} -> tensor<2x3x3xbf16>
// CHECK:         weft.contract "acd,abd->abc"{{.*}} -> tensor<2x4x3xbf16>
// CHECK:         %[[SPLIT:.*]]:2 = weft.split %{{.*}} dim 0
// CHECK:         %[[FIRST:.*]] = weft.reshape %[[SPLIT]]#0
// CHECK:         %[[SECOND:.*]] = weft.reshape %[[SPLIT]]#1
// CHECK:         weft.call @update_matrices({{.*}}, %[[FIRST]], %{{.*}}, %[[SECOND]])
func.func @init() {
  return
}
func.func @step() {
  %u = weft.read @u : tensor<4x3xf32>
  %w = weft.read @w : tensor<4x3xf32>
  weft.observe "gradient/u", %u : tensor<4x3xf32>
  weft.observe "gradient/w", %w : tensor<4x3xf32>
  return
}

// -----

// Gradients in bf16 are rounded once, before the norm; the norm and the update widen them.

weft.variable parameter @w ["hidden"] : tensor<4xf32>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0 {gradients_in_bf16}

// CHECK:         arith.truncf
// CHECK:         weft.observe "gradient/w", %[[G:.*]] : tensor<4xbf16>
// CHECK:         weft.call @square_norm(%[[G]]) {{.*}} : (tensor<4xbf16>) -> tensor<f32>
// CHECK:         weft.call @update(%{{.*}}, %{{.*}}, %[[G]]) {{.*}} -> tensor<4xf32>
func.func @init() {
  %0 = weft.fill constant 1.0 : tensor<4xf32>
  weft.assign @w, %0 : tensor<4xf32>
  return
}
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %0 = weft.map ins(%w : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    weft.yield %b : f32
  }
  weft.observe "gradient/w", %0 : tensor<4xf32>
  return
}
