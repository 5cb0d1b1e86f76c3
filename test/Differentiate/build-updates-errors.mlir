// RUN: weft-opt %s -split-input-file -verify-diagnostics -build-updates

// expected-error @+1 {{build-updates: expected @init, @step and one weft.optimizer}}
module {
  func.func @init() { return }
  func.func @step() { return }
}

// -----

// expected-error @+1 {{build-updates: expected @init, @step and one weft.optimizer}}
module {
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
  func.func @init() { return }
  func.func @step() { return }
}

// -----

// expected-error @+1 {{build-updates: expected @init, @step and one weft.optimizer}}
module {
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
  func.func private @init()
  func.func private @step()
}

// -----

// expected-error @+1 {{build-updates: expected a variable @step_number}}
module {
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
  func.func @init() { return }
  func.func @step() { return }
}

// -----

// expected-error @+1 {{build-updates: no parameter has a gradient}}
module {
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
  func.func @init() { return }
  func.func @step() { return }
}

// -----

weft.variable input @x ["hidden"] : tensor<4xf64>
weft.variable input @step_number [] : tensor<i64>
weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 0.0
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @x : tensor<4xf64>
  // expected-error @+1 {{build-updates: expected the name of a parameter, got 'x'}}
  weft.observe "gradient/x", %0 : tensor<4xf64>
  return
}
