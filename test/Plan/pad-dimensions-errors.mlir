// RUN: not weft-opt %s -pad-dimensions="pins=qq=2" 2>&1 | FileCheck %s --check-prefix=PIN
// PIN: error: pad-dimensions: --pin: unknown name 'qq'

// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {size: 2}}}" 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: plan:1:18: error: pad-dimensions: mesh.axis[0].name: missing required field

// RUN: not weft-opt %s -substitute-batch -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'hidden' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: plan:1:44: error: axes: x=4 does not divide hidden=6 and it cannot be padded: weft.norm depends on how long it is, expected a divisor of 6
// HIDDEN: :[[#@LINE+6]]:8: note: it is cut here

weft.variable parameter @w ["hidden"] : tensor<6xf64>
weft.variable input @tokens ["batch"] : tensor<?xi32>
func.func @step() {
  %w = weft.read @w : tensor<6xf64>
  %0 = weft.norm rms %w scale(%w : tensor<6xf64>) epsilon = 1.0e-5 : tensor<6xf64> -> tensor<6xf64>
  return
}

// Nor can what means of groups are taken of.
// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'group' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: axes: x=4 does not divide group=6 and it cannot be padded: weft.group_mean depends on how long it is, expected a divisor of 6
weft.variable parameter @samples ["group", "positions"] : tensor<6x4xf64>
func.func @means() {
  %x = weft.read @samples : tensor<6x4xf64>
  %0 = weft.group_mean %x of 2 : tensor<6x4xf64> -> tensor<6x4xf64>
  return
}

// Queries and keys that are not one dimension cannot be padded one without the other.
// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'sequence' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=KEYS
// KEYS: error: axes: x=4 does not divide sequence=6 and it cannot be padded: weft.attention depends on how long it is, expected a divisor of 6
// KEYS: :[[#@LINE+6]]:10: note: it is cut here
weft.variable parameter @query ["batch", "sequence", "kv_heads", "group", "head"] : tensor<1x6x1x1x2xf64>
weft.variable parameter @key ["batch", "positions", "kv_heads", "head"] : tensor<1x6x1x2xf64>
func.func @attend() {
  %q = weft.read @query : tensor<1x6x1x1x2xf64>
  %k = weft.read @key : tensor<1x6x1x2xf64>
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 : tensor<1x6x1x1x2xf64>, tensor<1x6x1x2xf64>, tensor<1x6x1x2xf64> -> tensor<1x6x1x1x2xf64>, tensor<1x1x1x6xf64>
  return
}

// More slots would hold more tokens, and what is summed up in reverse begins beyond the end.
// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'd2' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=SLOTS
// SLOTS: error: axes: x=4 does not divide d2=6 and it cannot be padded: weft.combine depends on how long it is, expected a divisor of 6
// RUN: not weft-opt %s -pad-dimensions="plan={version: 1 mesh {axis {name: 'x' size: 4}} sharding {dimension: 'd4' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=REVERSE
// REVERSE: error: axes: x=4 does not divide d4=5 and it cannot be padded: weft.cumulative_sum depends on how long it is, expected a divisor of 5
weft.variable parameter @slots ["d0", "d1", "d2", "d3"] : tensor<4x2x6x3xf64>
weft.variable parameter @mask ["d1", "d4", "d0"] : tensor<2x5x4xf64>
func.func @route() {
  %y = weft.read @slots : tensor<4x2x6x3xf64>
  %m = weft.read @mask : tensor<2x5x4xf64>
  %0 = weft.combine %y by %m at %m : tensor<4x2x6x3xf64>, tensor<2x5x4xf64>, tensor<2x5x4xf64> -> tensor<2x5x3xf64>
  %1 = weft.cumulative_sum reverse %m along 1 : tensor<2x5x4xf64> -> tensor<2x5x4xf64>
  return
}
