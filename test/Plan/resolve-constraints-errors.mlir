// RUN: weft-opt %s -split-input-file -verify-diagnostics -resolve-constraints | FileCheck %s

// Two constraints of one value: the stronger holds.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  // CHECK-LABEL: func.func @stronger
  // CHECK:         %[[X:.*]] = weft.read
  // CHECK-NEXT:    %[[Y:.*]] = weft.constrain %[[X]] {{\[\[\], \["dp"\]\]}} {weft.pins
  // CHECK-NEXT:    weft.observe "y", %[[Y]]
  // CHECK-NEXT:    weft.observe "z", %[[Y]]
  func.func @stronger() {
    // expected-note @+1 {{both are of this value}}
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %1 = weft.constrain %0 [[], ["dp"]] : tensor<4x8xf64>
    weft.observe "y", %1 : tensor<4x8xf64>
    // expected-warning @+1 {{resolve-constraints: does not hold: [["dp"], unit] with priority 2 and, by another constraint, [[], ["dp"]] with priority 0}}
    %2 = weft.constrain %1 [["dp"], unit] priority 2 : tensor<4x8xf64>
    weft.observe "z", %2 : tensor<4x8xf64>
    return
  }
}

// -----

// Equally strong ones are an error; that of two users of a value too.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    // expected-note @+1 {{both are of this value}}
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %1 = weft.constrain %0 [[], ["dp"]] priority 1 : tensor<4x8xf64>
    // expected-error @+1 {{resolve-constraints: expected one sharding of a value, got [[], []] with priority 1 and, by another constraint, [[], ["dp"]] with priority 1}}
    %2 = weft.constrain %0 [[], []] priority 1 : tensor<4x8xf64>
    weft.observe "y", %1 : tensor<4x8xf64>
    weft.observe "z", %2 : tensor<4x8xf64>
    return
  }
}

// -----

// One outside of a layer and one in it.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %1 = weft.constrain %0 [[], ["dp"]] : tensor<4x8xf64>
    // expected-note @+1 {{they meet where 'layer' is called as 'layers.0'}}
    %2 = weft.call @layer(%1) label "layers.0" : (tensor<4x8xf64>) -> tensor<4x8xf64>
    weft.observe "y", %2 : tensor<4x8xf64>
    return
  }
  func.func private @layer(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
    // expected-error @+1 {{resolve-constraints: expected one sharding of a value, got [["dp"], []]}}
    %0 = weft.constrain %x [["dp"], []] : tensor<4x8xf64>
    return %0 : tensor<4x8xf64>
  }
}

// -----

// What a layer gives is what it returns.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{they meet where 'layer' is called as 'layers.1'}}
    %1 = weft.call @layer(%0) label "layers.1" : (tensor<4x8xf64>) -> tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %2 = weft.constrain %1 [[], ["dp"]] : tensor<4x8xf64>
    weft.observe "y", %2 : tensor<4x8xf64>
    return
  }
  func.func private @layer(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
    %id = weft.map ins(%x : tensor<4x8xf64>) maps [affine_map<(i, j) -> (i, j)>] -> tensor<4x8xf64> {
    ^bb0(%a: f64):
      weft.yield %a : f64
    }
    // expected-warning @+1 {{resolve-constraints: does not hold: [["dp"], []] with priority 1 and}}
    %0 = weft.constrain %id [["dp"], []] priority 1 : tensor<4x8xf64>
    return %0 : tensor<4x8xf64>
  }
}

// -----

// Two that read one variable.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  // expected-note @+1 {{both constrain the value of variable 'x'}}
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %1 = weft.constrain %0 [[], ["dp"]] : tensor<4x8xf64>
    weft.observe "y", %1 : tensor<4x8xf64>
    return
  }
  func.func @evaluate() {
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-error @+1 {{resolve-constraints: expected one sharding of a value, got [["dp"], unit]}}
    %1 = weft.constrain %0 [["dp"], unit] : tensor<4x8xf64>
    weft.observe "y", %1 : tensor<4x8xf64>
    return
  }
}

// -----

// One axis on two dimensions.

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    // expected-note @+1 {{both are of this value}}
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-note @+1 {{this is the other constraint}}
    %1 = weft.constrain %0 [unit, ["dp"]] : tensor<4x8xf64>
    // expected-error @+1 {{resolve-constraints: expected one sharding of a value, got [["dp"], unit]}}
    %2 = weft.constrain %1 [["dp"], unit] : tensor<4x8xf64>
    weft.observe "y", %2 : tensor<4x8xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<5x8xf64>
  func.func @step() {
    %0 = weft.read @x : tensor<5x8xf64>
    // expected-error @+1 {{resolve-constraints: 'tensor<5x8xf64>' cannot be cut as it is constrained: ["dp"] are 2 ranks, which does not divide 5}}
    %1 = weft.constrain %0 [["dp"], unit] : tensor<5x8xf64>
    weft.observe "y", %1 : tensor<5x8xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"dp"=2>} {
  weft.variable parameter @x ["batch", "hidden"] : tensor<4x8xf64>
  func.func @step() {
    %0 = weft.read @x : tensor<4x8xf64>
    // expected-error @+1 {{resolve-constraints: unknown axis "tp", expected one of #weft.mesh<"dp"=2>}}
    %1 = weft.constrain %0 [["tp"], unit] : tensor<4x8xf64>
    weft.observe "y", %1 : tensor<4x8xf64>
    return
  }
}

// -----

// expected-error @+1 {{resolve-constraints: expected a module with a mesh, see apply-plan}}
module {
  func.func @step(%x: tensor<4xf64>) {
    %0 = weft.constrain %x [unit] : tensor<4xf64>
    return
  }
}
