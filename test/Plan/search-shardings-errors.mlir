// RUN: weft-opt %s -split-input-file -verify-diagnostics -search-shardings
// RUN: not weft-opt %s -split-input-file -search-shardings='machine="version: 1"' 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: search-shardings: machine:{{.*}}name

// expected-error @+1 {{search-shardings: expected a module with a mesh, see apply-plan}}
module {
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>
  func.func @step() {
    // expected-error @+1 {{search-shardings: expected sizes that are known, got 'tensor<?x4xf64>'; see substitute-batch}}
    %0 = weft.read @x : tensor<?x4xf64>
    weft.observe "x", %0 : tensor<?x4xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  func.func @step() {
    weft.call @layer() label "" : () -> ()
    return
  }
  // expected-error @+1 {{search-shardings: expected a function with a body}}
  func.func private @layer()
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{search-shardings: 'w' of 'tensor<5x4xf64>' cannot be cut as it is pinned, [["tp"], unit]}}
  weft.variable parameter @w ["ffn", "hidden"] {weft.pins = [["tp"], unit]} : tensor<5x4xf64>
  func.func @step() {
    %0 = weft.read @w : tensor<5x4xf64>
    weft.observe "w", %0 : tensor<5x4xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  weft.variable parameter @w ["hidden"] : tensor<4xf64>
  func.func @step() {
    %0 = weft.read @w : tensor<4xf64>
    // expected-error @+1 {{search-shardings: says nothing of how it may be sharded}}
    %1 = weft.launch @kernel(%0) tied [-1] : (tensor<4xf64>) -> tensor<4xf64>
    return
  }
  func.func private @kernel(tensor<4xf64>) -> tensor<4xf64>
}

// -----

// Pins that leave nothing open can ask for what does not go together.
#scalar = affine_map<() -> ()>
module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  weft.variable parameter @w ["hidden"] : tensor<4xf64>
  // expected-error @+1 {{search-shardings: no choice of shardings keeps all rules}}
  func.func @step() {
    %0 = weft.read @w : tensor<4xf64>
    %1 = weft.amax %0 {weft.pins = [["tp"]]} : tensor<4xf64> -> tensor<f64>
    %2 = weft.map ins(%1 : tensor<f64>) maps [#scalar] {weft.pins = [{all = ["tp"]}]} -> tensor<f64> {
    ^bb0(%x: f64):
      %s = arith.addf %x, %x : f64
      weft.yield %s : f64
    }
    weft.observe "s", %2 : tensor<f64>
    return
  }
}

// -----

// An image is given to a rank whole.
module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{search-shardings: 'images' of 'tensor<8x4xf64>' cannot be cut as it is pinned, [unit, ["tp"]]}}
  weft.variable input @images ["batch", "channel"] {weft.pins = [unit, ["tp"]]} : tensor<8x4xf64>
  func.func @step() {
    %0 = weft.read @images : tensor<8x4xf64>
    weft.observe "x", %0 : tensor<8x4xf64>
    return
  }
}

// -----

// So can others: the greatest of shards is no term of a sum.
#all = affine_map<() -> ()>
module attributes {weft.mesh = #weft.mesh<"tp"=2, "x"=2>} {
  weft.variable parameter @w ["ffn", "hidden"] : tensor<4x4xf64>
  // expected-error @+1 {{search-shardings: no choice of shardings keeps all rules}}
  func.func @step() {
    %0 = weft.read @w : tensor<4x4xf64>
    %1 = weft.amax %0 {weft.pins = [["tp"], unit]} : tensor<4x4xf64> -> tensor<f64>
    %2 = weft.map ins(%1 : tensor<f64>) maps [#all] {weft.pins = [{all = ["tp"]}]}
        -> tensor<f64> {
    ^bb0(%x: f64):
      %s = arith.addf %x, %x : f64
      weft.yield %s : f64
    }
    weft.observe "s", %2 : tensor<f64>
    return
  }
}

// -----

// expected-error @+1 {{search-shardings: expected a mesh of at most 5 parts, got 6}}
module attributes {weft.mesh = #weft.mesh<"a"=2, "b"=2, "c"=2, "d"=2x2x2>} {
}
