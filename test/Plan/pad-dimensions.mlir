// RUN: weft-opt %s -substitute-batch -pad-dimensions="pins=tp=2" | FileCheck %s --check-prefixes=CHECK,TP
// RUN: weft-opt %s -substitute-batch="batch=3" -pad-dimensions="pins=dp=2,tp=3" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: weft-opt %s -substitute-batch -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 2} axis {name: 'y' size: 3} axis {name: 'z' size: 2}} sharding {dimension: 'ffn' axes: 'x'} home {dimension: 'ffn' axes: 'y'} sharding {dimension: 'sequence' axes: 'z'}}" | FileCheck %s --check-prefixes=CHECK,TEXT

// An axis may be longer than the dimension.
// RUN: weft-opt %s -substitute-batch -pad-dimensions="pins=tp=9" | FileCheck %s --check-prefixes=CHECK,LONG
// LONG: @w ["ffn", "hidden"] unpadded {{\[}}7, 4] : tensor<9x4xf64>

// RUN: weft-opt %s -substitute-batch="batch=2" -pad-dimensions="plan={version: 1 padding: false mesh {axis {name: 'x' size: 2}} sharding {dimension: 'ffn' axes: 'x'}}" | FileCheck %s --check-prefix=REFUSED
// REFUSED: @w ["ffn", "hidden"] : tensor<7x4xf64>
// REFUSED: @tokens ["batch", "sequence"] : tensor<2x15xi32>

// Dimensions are padded that entries cut, not others of their names, nor those for which stronger entries hold.
// RUN: weft-opt %s -substitute-batch -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'adam_m/w' dimension: 'ffn' axes: 'x'} sharding {value: 'x' dimension: 'ffn' axes: 'x'} home {dimension: 'ffn'}}" | FileCheck %s --check-prefix=OTHERS
// OTHERS: @w ["ffn", "hidden"] : tensor<7x4xf64>
// RUN: weft-opt %s -substitute-batch -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'ffn' axes: 'x' priority: 1} sharding {dimension: 'hidden' axes: 'x'} sharding {value: '*/*' dimension: 'ffn'} sharding {value: '*/*' dimension: 'batch' axes: 'x'}}" | FileCheck %s --check-prefix=OVERRULED
// OVERRULED: @w ["ffn", "hidden"] : tensor<7x4xf64>

// The example of the pass's description is @w with tp=2. A class has one size, a multiple of all
// numbers of shards; what divides stays.

// TP:   @w ["ffn", "hidden"] unpadded {{\[}}7, 4] : tensor<8x4xf64>
// BOTH: @w ["ffn", "hidden"] unpadded {{\[}}7, 4] : tensor<9x4xf64>
// TEXT: @w ["ffn", "hidden"] unpadded {{\[}}7, 4] : tensor<12x4xf64>
weft.variable parameter @w ["ffn", "hidden"] : tensor<7x4xf64>

// TP:   @"adam_m/w" ["ffn", "hidden"] unpadded {{\[}}7, 4] : tensor<8x4xf64>
weft.variable optimizer @"adam_m/w" ["ffn", "hidden"] : tensor<7x4xf64>

// TP:   @tokens ["batch", "sequence"] : tensor<1x15xi32>
// BOTH: @tokens ["batch", "sequence"] unpadded {{\[}}3, 15] : tensor<4x15xi32>
// TEXT: @tokens ["batch", "sequence"] unpadded {{\[}}1, 15] : tensor<1x16xi32>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x15xi32>
weft.variable input @seed [] : tensor<i64>

// Random numbers are those of the whole without padding, and so are losses.
// CHECK-LABEL: func.func @init
// TP:   weft.fill normal {{.*}} of [7, 4] : tensor<8x4xf64>
func.func @init() {
  %seed = weft.read @seed : tensor<i64>
  %c = arith.constant 0 : index
  %0 = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%c) : tensor<7x4xf64>
  weft.assign @w, %0 : tensor<7x4xf64>
  return
}

// CHECK-LABEL: func.func @step
// TP:   weft.call @layer({{.*}} : (tensor<1x15xi32>, tensor<8x4xf64>) -> tensor<1x15x8xf64>
// BOTH: weft.call @layer({{.*}} : (tensor<4x15xi32>, tensor<9x4xf64>) -> tensor<4x15x9xf64>
// BOTH: weft.observe "logits", %{{.*}} unpadded {{\[}}3, 15, 7] : tensor<4x15x9xf64>
// TP:   weft.cross_entropy {{.*}} of [7]
// TEXT: weft.cross_entropy {{.*}} of [7]
func.func @step() {
  %0 = weft.read @tokens : tensor<?x15xi32>
  %w = weft.read @w : tensor<7x4xf64>
  %1 = weft.call @layer(%0, %w) label "" : (tensor<?x15xi32>, tensor<7x4xf64>) -> tensor<?x15x7xf64>
  weft.observe "logits", %1 : tensor<?x15x7xf64>
  %2:2 = weft.cross_entropy %1[%0] : tensor<?x15x7xf64>[tensor<?x15xi32>] -> tensor<?x15xf64>, tensor<?x15xf64>
  return
}

// CHECK-LABEL: func.func private @layer
// BOTH-SAME:  (%{{.*}}: tensor<4x15xi32>, %{{.*}}: tensor<9x4xf64>) -> tensor<4x15x9xf64>
// TEXT-SAME:  (%{{.*}}: tensor<1x16xi32>, %{{.*}}: tensor<12x4xf64>) -> tensor<1x16x12xf64>
func.func private @layer(%ids: tensor<?x15xi32>, %w: tensor<7x4xf64>) -> tensor<?x15x7xf64> {
  %0 = weft.embedding %w[%ids] : tensor<7x4xf64>[tensor<?x15xi32>] -> tensor<?x15x4xf64>
  %1 = weft.contract "bsk,nk->bsn" (%0, %w) : (tensor<?x15x4xf64>, tensor<7x4xf64>) -> tensor<?x15x7xf64>
  return %1 : tensor<?x15x7xf64>
}

// A router knows how many experts there are. Its tokens may be padded too.
// RUN: weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'experts' axes: 'x'} sharding {dimension: 'positions' axes: 'x'}}" | FileCheck %s --check-prefix=EXPERTS
// EXPERTS: @router ["experts", "hidden"] unpadded [6, 4] : tensor<8x4xf64>
weft.variable parameter @router ["experts", "hidden"] : tensor<6x4xf64>
weft.variable parameter @bias ["experts"] : tensor<6xf64>
weft.variable parameter @inputs ["group", "positions", "hidden"] : tensor<2x5x4xf64>
// EXPERTS-LABEL: func.func @route
// EXPERTS: weft.softmax %{{.*}} columns [6] : tensor<2x8x8xf64>
// EXPERTS: weft.top_k 2 of %{{.*}} columns [6] bias(%{{.*}} : tensor<8xf64>) {groups = 3 : i64}
// EXPERTS: weft.cumulative_sum %{{.*}} along 1 : tensor<2x8x8xf64>
// EXPERTS: weft.dispatch {{.*}} -> tensor<8x2x5x4xf64>
func.func @route() {
  %x = weft.read @inputs : tensor<2x5x4xf64>
  %r = weft.read @router : tensor<6x4xf64>
  %b = weft.read @bias : tensor<6xf64>
  %0 = weft.contract "gtk,ek->gte" (%x, %r) : (tensor<2x5x4xf64>, tensor<6x4xf64>) -> tensor<2x5x6xf64>
  %1 = weft.softmax %0 : tensor<2x5x6xf64> -> tensor<2x5x6xf64>
  %2 = weft.top_k 2 of %1 bias(%b : tensor<6xf64>) {groups = 3 : i64} : tensor<2x5x6xf64> -> tensor<2x5x6xf64>
  %3 = weft.cumulative_sum %2 along 1 : tensor<2x5x6xf64> -> tensor<2x5x6xf64>
  %4 = weft.dispatch %x by %3 at %2 : tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<2x5x6xf64> -> tensor<6x2x5x4xf64>
  return
}
