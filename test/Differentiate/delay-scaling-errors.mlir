// RUN: weft-opt %s -delay-scaling -split-input-file -verify-diagnostics

// expected-error @+1 {{delay-scaling: expected @init and a variable @step_number}}
module {
  weft.variable parameter @w ["hidden"] : tensor<4xf32>
  func.func @step() {
    %w = weft.read @w : tensor<4xf32>
    %m = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4xf32> -> tensor<f32>
    %q = weft.quantize e4m3 %w by %m : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    return
  }
}

// -----

weft.variable parameter @w ["hidden"] : tensor<4xf32>
weft.variable input @step_number [] : tensor<i64>
func.func @init() {
  return
}
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  // expected-error @+1 {{delay-scaling: keeps a history of what is not quantized}}
  %m = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4xf32> -> tensor<f32>
  return
}

// -----

weft.variable parameter @w ["hidden"] : tensor<4xf32>
weft.variable input @step_number [] : tensor<i64>
func.func @init() {
  return
}
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %m = weft.amax %w {history = #weft.history<"w" of 8>} : tensor<4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %w by %m : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  // expected-error @+1 {{delay-scaling: expected one tensor 'w' in @step, got two}}
  %n = weft.amax %q {history = #weft.history<"w" of 8>} : tensor<4xf32> -> tensor<f32>
  %r = weft.quantize e4m3 %q by %n : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

weft.variable input @step_number [] : tensor<i64>
func.func @init() {
  return
}
func.func @step() {
  return
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{delay-scaling: expected a history in what @step or @evaluate calls}}
  %m = weft.amax %x {history = #weft.history<"x" of 8>} : tensor<4xf32> -> tensor<f32>
  %q = weft.quantize e4m3 %x by %m : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return %q : tensor<4xf32>
}
