// RUN: weft-opt %s -pad-variables="pins=dp=3,zero=3" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: weft-opt %s -pad-variables="pins=dp=3,zero=1" | FileCheck %s --check-prefixes=CHECK,STATES
// RUN: weft-opt %s -pad-variables="pins=dp=2,zero=3" | FileCheck %s --check-prefix=EVEN
// RUN: weft-opt %s -pad-variables="plan={version: 1 padding: false mesh {axis {name: 'x' size: 3}} home {dimension: 'hidden' axes: 'x'}}" | FileCheck %s --check-prefix=EVEN

// An axis may be larger than a dimension, and several cut one.
// RUN: weft-opt %s -pad-variables="plan={version: 1 mesh {axis {name: 'x' size: 3} axis {name: 'y' size: 2}} home {dimension: 'hidden' axes: ['x', 'y']}}" | FileCheck %s --check-prefix=LARGE
// LARGE: @w ["ffn", "hidden"] unpadded [8, 4] : tensor<8x6xf64>
// RUN: weft-opt %s -pad-variables="plan={version: 1 mesh {axis {name: 'x' size: 11}} home {value: 'w' dimension: 'ffn' axes: 'x'} home {value: 'w' dimension: 'hidden' axes: []}}" | FileCheck %s --check-prefix=FFN
// FFN: @w ["ffn", "hidden"] unpadded [8, 4] : tensor<11x4xf64>
// FFN: @"m/w" ["ffn", "hidden"] : tensor<8x4xf64>

// With `open`, so are variables that the plan leaves open if its axes divide none of their dimensions,
// along the dimension with the least padding.
// RUN: weft-opt %s -pad-variables="open=true pins=dp=3" | FileCheck %s --check-prefix=OPEN
// OPEN: @w ["ffn", "hidden"] unpadded [8, 4] : tensor<9x4xf64>
// OPEN: @"m/w" ["ffn", "hidden"] unpadded [8, 4] : tensor<9x4xf64>
// RUN: weft-opt %s -pad-variables="open=true pins=dp=8" | FileCheck %s --check-prefix=EVEN
// RUN: weft-opt %s -pad-variables="open=true pins=dp=3,zero=0" | FileCheck %s --check-prefix=EVEN
// RUN: weft-opt %s -pad-variables="pins=dp=3" | FileCheck %s --check-prefix=EVEN

// RUN: weft-opt %s -pad-variables="pins=dp=3,zero=3" -mask-padding | FileCheck %s --check-prefix=MASK

// ALL:    @w ["ffn", "hidden"] unpadded [8, 4] : tensor<8x6xf64>
// STATES: @w ["ffn", "hidden"] : tensor<8x4xf64>
// EVEN:   @w ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
// CHECK:  @"m/w" ["ffn", "hidden"] unpadded [8, 4] : tensor<8x6xf64>
// EVEN:   @"m/w" ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable optimizer @"m/w" ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable input @x ["batch", "hidden"] : tensor<3x4xf64>
weft.variable input @seed [] : tensor<i64>

// Random numbers are those of the whole without padding, where they are zero.
// CHECK-LABEL: func.func @init
// ALL: weft.fill normal {{.*}} of [8, 4] : tensor<8x6xf64>
// MASK-LABEL: func.func @init
// MASK: %[[N:.*]] = weft.fill
// MASK: %[[ZERO:.*]] = weft.map ins(%[[N]],
// MASK: weft.assign @w, %[[ZERO]]
func.func @init() {
  %seed = weft.read @seed : tensor<i64>
  %c = arith.constant 0 : index
  %0 = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%c) : tensor<8x4xf64>
  weft.assign @w, %0 : tensor<8x4xf64>
  return
}

// The norm and the update work on padded gradients, which are zero there.
// CHECK-LABEL: func.func @step
// MASK-LABEL: func.func @step
// MASK-NOT: arith.select
// CHECK:  %[[W:.*]] = weft.read @w
// ALL:    weft.call @layer(%{{.*}}, %[[W]]) label "" : (tensor<3x4xf64>, tensor<8x6xf64>)
// STATES: weft.call @layer(%{{.*}}, %[[W]]) label "" : (tensor<3x4xf64>, tensor<8x4xf64>)
// CHECK:  %[[G:.*]] = weft.call @backward{{.*}} -> tensor<8x6xf64>
// CHECK:  weft.contract "nk,nk->"(%[[G]], %[[G]])
// CHECK:  weft.observe "gradient/w", %[[G]] unpadded [8, 4] : tensor<8x6xf64>
// CHECK:  %[[NEW:.*]]:2 = weft.call @update
// STATES: %[[WHOLE:.*]] = weft.extract %[[NEW]]#0
// STATES: weft.assign @w, %[[WHOLE]] : tensor<8x4xf64>
// ALL:    weft.assign @w, %[[NEW]]#0 : tensor<8x6xf64>
// CHECK:  weft.assign @"m/w", %[[NEW]]#1 : tensor<8x6xf64>
func.func @step() {
  %x = weft.read @x : tensor<3x4xf64>
  %w = weft.read @w : tensor<8x4xf64>
  %m = weft.read @"m/w" : tensor<8x4xf64>
  %h = weft.call @layer(%x, %w) label "" : (tensor<3x4xf64>, tensor<8x4xf64>) -> tensor<3x8xf64>
  %g = weft.call @backward(%x, %h) label "" : (tensor<3x4xf64>, tensor<3x8xf64>) -> tensor<8x4xf64>
  %n = weft.contract "nk,nk->"(%g, %g) : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<f64>
  weft.observe "gradient_norm", %n : tensor<f64>
  weft.observe "gradient/w", %g : tensor<8x4xf64>
  %1:2 = weft.call @update(%w, %m, %g) label "update" : (tensor<8x4xf64>, tensor<8x4xf64>, tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<8x4xf64>)
  weft.assign @w, %1#0 : tensor<8x4xf64>
  weft.assign @"m/w", %1#1 : tensor<8x4xf64>
  return
}

// Samples meet no padding: a layer cuts it off itself, after what would gather the parameter.
// CHECK-LABEL: func.func private @layer
// ALL:      %[[CUT:.*]] = weft.extract %arg1 from [0, 0] by [1, 1] {weft.of_padding} : tensor<8x6xf64> -> tensor<8x4xf64>
// ALL-NEXT: weft.contract "bk,nk->bn"(%arg0, %[[CUT]])
// STATES:   weft.contract "bk,nk->bn"(%arg0, %arg1)
func.func private @layer(%x: tensor<3x4xf64>, %w: tensor<8x4xf64>) -> tensor<3x8xf64> {
  %1 = weft.contract "bk,nk->bn" (%x, %w) : (tensor<3x4xf64>, tensor<8x4xf64>) -> tensor<3x8xf64>
  return %1 : tensor<3x8xf64>
}

// CHECK-LABEL: func.func private @backward
// CHECK:      %[[G:.*]] = weft.contract "bk,bn->nk"
// CHECK-NEXT: %[[PADDED:.*]] = weft.pad %[[G]] with 0.000000e+00 low [0, 0] high [0, 2] interior [0, 0] {weft.of_padding} : tensor<8x4xf64> -> tensor<8x6xf64>
// CHECK-NEXT: return %[[PADDED]]
func.func private @backward(%x: tensor<3x4xf64>, %h: tensor<3x8xf64>) -> tensor<8x4xf64> {
  %1 = weft.contract "bk,bn->nk" (%x, %h) : (tensor<3x4xf64>, tensor<3x8xf64>) -> tensor<8x4xf64>
  return %1 : tensor<8x4xf64>
}

// CHECK-LABEL: func.func private @update
// CHECK:  %[[M:.*]] = weft.map ins(%arg1, %arg2
// STATES: %[[W:.*]] = weft.pad %arg0 {{.*}} -> tensor<8x6xf64>
// STATES: weft.map ins(%[[W]], %[[M]]
// ALL:    weft.map ins(%arg0, %[[M]]
func.func private @update(%w: tensor<8x4xf64>, %m: tensor<8x4xf64>, %g: tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<8x4xf64>) {
  %0 = weft.map ins(%m, %g : tensor<8x4xf64>, tensor<8x4xf64>) maps [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>] -> tensor<8x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %s = arith.addf %a, %b : f64
    weft.yield %s : f64
  }
  %1 = weft.map ins(%w, %0 : tensor<8x4xf64>, tensor<8x4xf64>) maps [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>] -> tensor<8x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %s = arith.subf %a, %b : f64
    weft.yield %s : f64
  }
  return %1, %0 : tensor<8x4xf64>, tensor<8x4xf64>
}
