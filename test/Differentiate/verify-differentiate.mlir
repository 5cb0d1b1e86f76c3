// RUN: weft-opt %s -split-input-file -verify-diagnostics -verify-differentiate

// The invariants of modules after Differentiate.

weft.variable parameter @w ["hidden"] : tensor<4xf64>
weft.variable optimizer @"momentum/w" ["hidden"] : tensor<4xf64>
weft.variable input @x ["batch"] : tensor<4xf64>
func.func @init() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  weft.assign @"momentum/w", %0 : tensor<4xf64>
  return
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  weft.observe "gradient_norm", %0 : tensor<f64>
  %1 = weft.read @w : tensor<4xf64>
  weft.observe "gradient/w", %1 : tensor<4xf64>
  weft.assign @w, %1 : tensor<4xf64>
  return
}

// -----

// expected-error @+1 {{verify-differentiate: expected a function @init}}
module {
  func.func @step() { return }
}

// -----

// expected-error @+1 {{verify-differentiate: expected a function @step}}
module {
  func.func @init() { return }
}

// -----

// The example of the pass's description.
func.func @init() { return }
// expected-error @+1 {{verify-differentiate: expected @step to have no arguments and no results, got '() -> tensor<f64>'}}
func.func @step() -> tensor<f64> {
  %0 = weft.fill constant 0.0 : tensor<f64>
  return %0 : tensor<f64>
}

// -----

// expected-error @+1 {{verify-differentiate: expected @init to have no arguments and no results, got '(index) -> ()'}}
func.func @init(%i: index) { return }
func.func @step() { return }

// -----

// expected-error @+1 {{verify-differentiate: @loss is left, expected @step instead}}
module {
  func.func @init() { return }
  func.func @step() { return }
  func.func @loss() { return }
}

// -----

func.func @init() { return }
func.func @step() { return }
// expected-error @+1 {{verify-differentiate: the optimizer is left, expected build-updates to replace it}}
weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0

// -----

// expected-error @+1 {{verify-differentiate: 'w' is assigned 0 times in @init, expected once}}
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @init() { return }
func.func @step() { return }

// -----

// expected-error @+1 {{verify-differentiate: 'momentum/w' is assigned 2 times in @init, expected once}}
weft.variable optimizer @"momentum/w" ["hidden"] : tensor<4xf64>
func.func @init() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  weft.assign @"momentum/w", %0 : tensor<4xf64>
  weft.assign @"momentum/w", %0 : tensor<4xf64>
  return
}
func.func @step() { return }

// -----

// expected-error @+1 {{verify-differentiate: 'w' is assigned 2 times in @step, expected once at most}}
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @init() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  return
}
func.func @step() {
  %0 = weft.read @w : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  return
}

// -----

func.func @init() { return }
// expected-error @+1 {{verify-differentiate: expected @step to observe 'loss'}}
func.func @step() { return }

// -----

func.func @init() { return }
// expected-error @+1 {{verify-differentiate: expected @step to observe 'gradient_norm'}}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  return
}

// -----

// expected-error @+1 {{verify-differentiate: expected @step to observe 'gradient/w'}}
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @init() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  return
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  weft.observe "gradient_norm", %0 : tensor<f64>
  %1 = weft.read @w : tensor<4xf64>
  weft.assign @w, %1 : tensor<4xf64>
  return
}

// -----

func.func @init() { return }
func.func @step() { return }
// expected-error @+1 {{verify-differentiate: expected @evaluate to have no arguments and no results, got '() -> tensor<f64>'}}
func.func @evaluate() -> tensor<f64> {
  %0 = weft.fill constant 0.0 : tensor<f64>
  return %0 : tensor<f64>
}

// -----

weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func @init() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  weft.assign @w, %0 : tensor<4xf64>
  return
}
func.func @step() { return }
func.func @evaluate() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  // expected-error @+1 {{verify-differentiate: expected no assignment in @evaluate}}
  weft.assign @w, %0 : tensor<4xf64>
  return
}

// -----

func.func @init() { return }
func.func @step() { return }
// expected-error @+1 {{verify-differentiate: expected @evaluate to observe 'validation_loss' once, 'logits' at most once, and nothing else}}
func.func @evaluate() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  weft.observe "loss", %0 : tensor<f64>
  return
}

// -----

func.func @init() { return }
func.func @step() { return }
// expected-error @+1 {{verify-differentiate: expected @evaluate to observe 'validation_loss' once, 'logits' at most once, and nothing else}}
func.func @evaluate() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %1 = weft.fill constant 0.0 : tensor<4x8x16xf64>
  weft.observe "logits", %1 : tensor<4x8x16xf64>
  weft.observe "logits", %1 : tensor<4x8x16xf64>
  weft.observe "validation_loss", %0 : tensor<f64>
  return
}
