// RUN: weft-opt %s -split-input-file -verify-diagnostics -enumerate-shardings

// expected-error @+1 {{enumerate-shardings: expected a mesh and a function 'step'}}
module {
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{enumerate-shardings: expected a mesh and a function 'step'}}
module attributes {weft.mesh = #weft.mesh<"a"=2>} {
}

// -----

#mesh = #weft.mesh<"a"=2>
module attributes {weft.mesh = #mesh} {
  // expected-error @+1 {{enumerate-shardings: expected a variable that is whole on every rank}}
  weft.variable parameter @x ["rows"] : tensor<4xf64, #weft.sharding<#mesh, [{"a"}]>>
  func.func @step() {
    return
  }
}
