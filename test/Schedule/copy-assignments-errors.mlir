// RUN: weft-opt %s --copy-assignments --split-input-file --verify-diagnostics

// expected-error @+1 {{expected a function @step without arguments and results}}
module {
  func.func @init() {
    return
  }
}

// -----

weft.variable parameter @a ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @a : tensor<4xf32>
  weft.assign @a, %0 : tensor<4xf32>
  // expected-error @+1 {{assigns @a a second time}}
  weft.assign @a, %0 : tensor<4xf32>
  return
}

// -----

weft.variable parameter @a ["hidden"] : tensor<4xf32>
func.func private @layer(%x: tensor<4xf32>) {
  // expected-error @+1 {{must stand in @init or @step}}
  weft.assign @a, %x : tensor<4xf32>
  return
}
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @a : tensor<4xf32>
  weft.call @layer(%0) label "layer" : (tensor<4xf32>) -> ()
  return
}

// -----

func.func private @first() {
  weft.call @second() label "second" : () -> ()
  return
}
func.func private @second() {
  // expected-error @+1 {{calls @first within itself}}
  weft.call @first() label "first" : () -> ()
  return
}
func.func @init() {
  return
}
func.func @step() {
  weft.call @first() label "first" : () -> ()
  return
}

// -----

func.func private @external()
func.func @init() {
  return
}
func.func @step() {
  // expected-error @+1 {{expected a function of a single block here}}
  weft.call @external() label "external" : () -> ()
  return
}
