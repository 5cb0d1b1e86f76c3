// RUN: weft-opt %s -split-input-file -verify-diagnostics -verify-plan

// The invariants of modules after Plan.

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn"] : tensor<4xf64, #cut>
  func.func @step() {
    %0 = weft.read @w : tensor<4xf64, #cut>
    %i = arith.constant 0 : index
    weft.call @layer(%0) label "" : (tensor<4xf64, #cut>) -> ()
    return
  }
  func.func private @layer(%x: tensor<4xf64, #cut>) {
    return
  }
}

// -----

// expected-error @+1 {{verify-plan: the module has no mesh}}
module {
}

// -----

// The example of the pass's description.
module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  func.func @step() {
    // expected-error @+1 {{verify-plan: 'tensor<?x4xf64>' has no sharding}}
    %x = weft.fill constant 1.0 : tensor<?x4xf64>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{verify-plan: 'tensor<4xf64>' has no sharding}}
  weft.variable parameter @w ["hidden"] : tensor<4xf64>
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{does not lie on the module's mesh #weft.mesh<"tp"=2>}}
  weft.variable parameter @w ["hidden"] : tensor<4xf64, #weft.sharding<#weft.mesh<"dp"=2>, [{}]>>
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{still has an unknown batch}}
  weft.variable input @x ["batch"] : tensor<?xf64, #weft.sharding<#weft.mesh<"tp"=2>, [{}]>>
}

// -----

// A layer that nobody calls is not visited by propagate-shardings.
module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{verify-plan: 'tensor<4xf64>' has no sharding}}
  func.func private @unused(%x: tensor<4xf64>) {
    return
  }
}
