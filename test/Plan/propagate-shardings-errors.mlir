// RUN: weft-opt %s -split-input-file -verify-diagnostics -propagate-shardings

// expected-error @+1 {{propagate-shardings: expected a module with a mesh, see apply-plan}}
module {
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{propagate-shardings: expected a sharding, see apply-plan}}
  weft.variable parameter @w ["hidden"] : tensor<4xf64>
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{propagate-shardings: argument #0 has no sharding}}
  func.func @step(%x: tensor<4xf64>) {
    weft.observe "x", %x : tensor<4xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  func.func @step() {
    weft.call @layer() label "" : () -> ()
    return
  }
  // expected-error @+1 {{propagate-shardings: expected a function with a body}}
  func.func private @layer()
}

// -----

#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  weft.variable parameter @w ["hidden"] : tensor<4xf64, #whole>
  func.func @step() {
    %0 = weft.read @w : tensor<4xf64, #whole>
    // expected-error @+1 {{propagate-shardings: says nothing of how it may be sharded}}
    %1 = weft.launch @kernel(%0) tied [-1] : (tensor<4xf64, #whole>) -> tensor<4xf64, #whole>
    return
  }
  func.func private @kernel(tensor<4xf64, #whole>) -> tensor<4xf64, #whole>
}
