// RUN: weft-opt %s -split-input-file -verify-diagnostics -build-gradients

// expected-error @+1 {{build-gradients: expected a function @loss}}
module {
}

// -----

// expected-error @+1 {{build-gradients: expected a function @loss}}
module {
  func.func private @loss() -> tensor<f64>
}

// -----

// expected-error @+1 {{build-gradients: expected @loss to have no arguments and one floating-point number as result, got '() -> tensor<4xf64>'}}
func.func @loss() -> tensor<4xf64> {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// expected-error @+1 {{build-gradients: expected @loss to have no arguments and one floating-point number as result, got '() -> ()'}}
func.func @loss() {
  return
}

// -----

weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @loss() -> tensor<f64> {
  %0 = weft.read @w : tensor<4xf64>
  // expected-error @+1 {{build-gradients: has no derivative, but the loss depends on it}}
  %1:2 = weft.norm_grad rms %0 scale(%0 : tensor<4xf64>) gradient(%0 : tensor<4xf64>)
      epsilon = 1.0e-5 : tensor<4xf64> -> tensor<4xf64>, tensor<4xf64>
  %2 = weft.contract "a->" (%1#0) : (tensor<4xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}

// -----

func.func @loss() -> tensor<f64> {
  // expected-error @+1 {{build-gradients: layer 'layer' has no body}}
  %0 = weft.call @layer() label "" : () -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @layer() -> tensor<f64>

// -----

func.func @loss() -> tensor<f64> {
  %0 = weft.call @layer() label "" : () -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @layer() -> tensor<f64> {
  // expected-error @+1 {{build-gradients: layer 'layer' calls itself}}
  %0 = weft.call @layer() label "" : () -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

weft.variable parameter @w [] : tensor<f64>
func.func @loss() -> tensor<f64> {
  %0 = weft.call @layer() label "" : () -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @layer() -> tensor<f64> {
  // expected-error @+1 {{build-gradients: a layer takes variables as arguments, expected no read in 'layer'}}
  %0 = weft.read @w : tensor<f64>
  return %0 : tensor<f64>
}

// -----

weft.variable parameter @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<1x2x1x1x2xf64>
weft.variable parameter @k ["batch", "sequence", "kv_heads", "head"] : tensor<1x2x1x2xf64>
func.func @loss() -> tensor<f64> {
  %q = weft.read @q : tensor<1x2x1x1x2xf64>
  %k = weft.read @k : tensor<1x2x1x2xf64>
  // expected-error @+1 {{has no derivative of its lse, but the loss depends on it}}
  %o, %lse = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
      : tensor<1x2x1x1x2xf64>, tensor<1x2x1x2xf64>, tensor<1x2x1x2xf64>
        -> tensor<1x2x1x1x2xf64>, tensor<1x1x1x2xf64>
  %loss = weft.contract "bgrs->"(%lse) : (tensor<1x1x1x2xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
