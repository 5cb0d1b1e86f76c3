// RUN: weft-opt %s --verify-schedule --split-input-file --verify-diagnostics

module attributes {weft.mesh = #weft.mesh<"dp" = 2>} {
  weft.variable parameter @x ["hidden"] : tensor<4xf32>
  func.func private @kernel_map_0(%n: index, %x: tensor<4xf32>) -> tensor<4xf32>
      attributes {weft.tied = array<i64: 1>} {
    return %x : tensor<4xf32>
  }
  func.func private @layer(%n: index, %x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = weft.launch @kernel_map_0(%n, %x) tied [1] : (index, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @init() {
    return
  }
  func.func @step() {
    %c0 = arith.constant 0 : index
    %0 = weft.read @x : tensor<4xf32>
    %1 = weft.call @layer(%c0, %0) label "layer" : (index, tensor<4xf32>) -> tensor<4xf32>
    %2 = weft.all_reduce sum %1 over ["dp"] of <"dp" = 2> : tensor<4xf32> -> tensor<4xf32>
    weft.observe "x", %2 : tensor<4xf32>
    weft.assign @x, %1 : tensor<4xf32>
    return
  }
}

// -----

// expected-error @+1 {{expected a mesh in 'weft.mesh' after schedule}}
module {
}

// -----

// expected-error @+1 {{expected a function @init without arguments and results}}
module attributes {weft.mesh = #weft.mesh<>} {
}

// -----

module attributes {weft.mesh = #weft.mesh<>} {
  func.func @init() {
    return
  }
  func.func @step() {
    // expected-error @+1 {{'weft.fill' op is left after schedule, expected a kernel}}
    %0 = weft.fill constant 1.0 : tensor<4xf32>
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<>} {
  func.func @init() {
    return
  }
  func.func private @unused(%x: tensor<2x4xf64>) -> tensor<2x2xf64> {
    // expected-error @+1 {{'weft.contract' op is left after schedule, expected a kernel}}
    %0 = weft.contract "ik,jk->ij"(%x, %x) : (tensor<2x4xf64>, tensor<2x4xf64>)
        -> tensor<2x2xf64>
    return %0 : tensor<2x2xf64>
  }
  func.func @step() {
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<>} {
  weft.variable parameter @x ["hidden"] : tensor<4xf32>
  func.func @init() {
    %0 = weft.read @x : tensor<4xf32>
    // expected-error @+1 {{stands in @init, expected in @step}}
    weft.observe "x", %0 : tensor<4xf32>
    return
  }
  func.func @step() {
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"dp" = 2>} {
  func.func private @kernel(%n: index) -> tensor<4xf32> attributes {weft.tied = array<i64: -1>}
  func.func private @layer(%n: index) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{is left after schedule, expected a kernel}}
    %0 = arith.addi %n, %c1 : index
    %1 = weft.launch @kernel(%0) tied [-1] : (index) -> tensor<4xf32>
    return
  }
  func.func @init() {
    return
  }
  func.func @step() {
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"dp" = 2>} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32>
      attributes {weft.tied = array<i64: -1>} {
    return %x : tensor<4xf32>
  }
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected a kernel with a body and the same 'weft.tied' as this launch, got @kernel}}
    %0 = weft.launch @kernel(%x) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @init() {
    return
  }
  func.func @step() {
    return
  }
}

// -----

module attributes {weft.mesh = #weft.mesh<"dp" = 2>} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32>
      attributes {weft.tied = array<i64: -1>}
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected a kernel with a body and the same 'weft.tied' as this launch, got @kernel}}
    %0 = weft.launch @kernel(%x) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @init() {
    return
  }
  func.func @step() {
    return
  }
}

// -----

#whole = #weft.sharding<#weft.mesh<"dp" = 2>, [{}]>
module attributes {weft.mesh = #weft.mesh<"dp" = 2>} {
  weft.variable parameter @x ["hidden"] : tensor<4xf32, #whole>
  func.func @init() {
    return
  }
  func.func @step() {
    // expected-error @+1 {{after schedule, expected a local tensor of static shape}}
    %0 = weft.read @x : tensor<4xf32, #whole>
    return
  }
}
