// RUN: weft-opt %s -split-input-file -resolve-constraints | FileCheck %s
// RUN: weft-opt %s -split-input-file -resolve-constraints -search-shardings -verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: weft-opt %s -split-input-file -resolve-constraints -search-shardings -reshard-to-collectives -localize -verify-partition | FileCheck %s --check-prefix=LOCAL

// The example of the pass's description. The value lies so although nothing else asks for it, and what
// is left open is chosen. Of the constraint nothing is left.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["batch", "hidden"] {weft.pins = [[], []]} : tensor<4x8xf64>

  // CHECK-LABEL: func.func @lies
  // CHECK:         weft.constrain %{{.*}} {{\[\["dp"\], unit\]}} {weft.pins = {{\[\["dp"\], unit, \{\}\]}}} : tensor<4x8xf64>
  // PLAN-LABEL:  func.func @lies
  // PLAN:          %[[X:.*]] = weft.reshard %{{.*}} -> tensor<4x8xf64, {{.*}}[{"dp"}, {{.*}}]>>
  // PLAN-NEXT:     weft.constrain %[[X]] {{\[\["dp"\], unit\]}} : tensor<4x8xf64, {{.*}}[{"dp"}, {{.*}}]>>
  // LOCAL-LABEL: func.func @lies
  // LOCAL:         weft.slice {{.*}} dim 0 over ["dp"]
  // LOCAL-NOT:     weft.constrain
  func.func @lies() {
    %0 = weft.read @x : tensor<4x8xf64>
    %1 = weft.constrain %0 [["dp"], unit] : tensor<4x8xf64>
    weft.assign @x, %1 : tensor<4x8xf64>
    return
  }
}

// -----

// A pending sum is reduced: the value lies in shards, and not as terms.

#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["batch", "hidden"] {weft.pins = [[], ["tp"]]} : tensor<4x8xf64>
  weft.variable parameter @w ["ffn", "hidden"] {weft.pins = [[], ["tp"]]} : tensor<16x8xf64>

  // PLAN-LABEL: func.func @sum
  // PLAN:         %[[Y:.*]] = weft.contract {{.*}} unreduced = sum{"tp"}>>
  // PLAN-NEXT:    %[[Z:.*]] = weft.reshard %[[Y]] {{.*}} -> tensor<4x16xf64, {{.*}}[{"tp"}, {}]>>
  // PLAN-NEXT:    weft.constrain %[[Z]]
  func.func @sum() {
    %x = weft.read @x : tensor<4x8xf64>
    %w = weft.read @w : tensor<16x8xf64>
    %y = weft.contract "bk,nk->bn"(%x, %w) {weft.pins = [unit, ["tp"], unit]}
        : (tensor<4x8xf64>, tensor<16x8xf64>) -> tensor<4x16xf64>
    %z = weft.constrain %y [["tp"], unit] : tensor<4x16xf64>
    weft.observe "z", %z : tensor<4x16xf64>
    return
  }
}

// -----

// Constraints that agree stand both.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>

  // CHECK-LABEL: func.func @agree
  // CHECK:         weft.constrain {{.*}} {{\[\["dp"\], unit\]}}
  // CHECK:         weft.constrain {{.*}} {{\[unit, \["tp"\]\]}}
  func.func @agree() {
    %0 = weft.read @x : tensor<4x8xf64>
    %1 = weft.constrain %0 [["dp"], unit] : tensor<4x8xf64>
    %2 = weft.constrain %1 [unit, ["tp"]] : tensor<4x8xf64>
    weft.assign @x, %2 : tensor<4x8xf64>
    return
  }
}

// -----

// What it leaves open is as a plan says, but for axes that it uses itself.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["batch", "sequence", "hidden"] : tensor<4x8x8xf64>

  // CHECK-LABEL: func.func @open
  // CHECK:         weft.constrain {{.*}} {weft.pins = {{\[\["dp"\], unit, \["tp"\], \{\}\]}}}
  func.func @open() {
    %0 = weft.read @x : tensor<4x8x8xf64>
    %1 = weft.constrain %0 [["dp"], unit, unit] {weft.pins = [[], ["dp"], ["tp"]]} : tensor<4x8x8xf64>
    weft.assign @x, %1 : tensor<4x8x8xf64>
    return
  }
}

// -----

// A constraint may name a split axis, or a sub-axis.

#mesh = #weft.mesh<"tp"=2x2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["batch", "hidden"] {weft.pins = [[], []]} : tensor<4x8xf64>

  // CHECK-LABEL: func.func @parts
  // CHECK:         weft.constrain {{.*}} {weft.pins = {{\[\["tp:\(1\)2", "tp:\(2\)2"\], unit, \{\}\]}}}
  // CHECK:         weft.constrain {{.*}} {weft.pins = {{\[\["tp:\(2\)2"\], \["tp:\(1\)2"\], \{\}\]}}}
  // PLAN-LABEL:  func.func @parts
  // PLAN:          weft.constrain {{.*}}[{"tp"}, {}]>>
  // PLAN:          weft.constrain {{.*}}[{"tp:(2)2"}, {"tp:(1)2"}]>>
  // LOCAL-LABEL: func.func @parts
  func.func @parts() {
    %0 = weft.read @x : tensor<4x8xf64>
    %1 = weft.constrain %0 [["tp"], unit] : tensor<4x8xf64>
    %2 = weft.map ins(%1 : tensor<4x8xf64>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf64> {
    ^bb0(%a: f64):
      weft.yield %a : f64
    }
    %3 = weft.constrain %2 [["tp:(2)2"], ["tp:(1)2"]] : tensor<4x8xf64>
    weft.assign @x, %3 : tensor<4x8xf64>
    return
  }
}
