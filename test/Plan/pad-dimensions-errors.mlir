// RUN: not weft-opt %s -pad-dimensions="batch=0" 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: pad-dimensions: expected a batch of at least 1, got 0

// RUN: not weft-opt %s -pad-dimensions="pins=pp=2" 2>&1 | FileCheck %s --check-prefix=PIN
// PIN: error: pad-dimensions: --pin: unknown name 'pp'

// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {size: 2}}}" 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: error: pad-dimensions: plan:1:

// RUN: not weft-opt %s -pad-dimensions="pins=dp=4,zero=1" 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: :[[#@LINE+10]]:8: error: pad-dimensions: hidden=6 does not divide into 4 pieces and cannot be padded: weft.norm depends on how long it is

// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'experts' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=EXPERTS
// EXPERTS: :[[#@LINE+10]]:8: error: pad-dimensions: experts=6 does not divide into 4 pieces and cannot be padded: weft.top_k depends on how long it is

weft.variable parameter @w ["hidden"] : tensor<6xf64>
weft.variable parameter @router ["experts", "head"] : tensor<6x2xf64>
weft.variable input @tokens ["batch"] : tensor<?xi32>
func.func @step() {
  %w = weft.read @w : tensor<6xf64>
  %0 = weft.norm rms %w scale(%w : tensor<6xf64>) epsilon = 1.0e-5 : tensor<6xf64> -> tensor<6xf64>
  %r = weft.read @router : tensor<6x2xf64>
  %1 = weft.contract "ek->ke" (%r) : (tensor<6x2xf64>) -> tensor<2x6xf64>
  %2 = weft.top_k 2 of %1 : tensor<2x6xf64> -> tensor<2x6xf64>
  return
}
