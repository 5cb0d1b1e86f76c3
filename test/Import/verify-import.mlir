// RUN: weft-opt %s --split-input-file --verify-import --verify-diagnostics

module @fine {
  weft.variable parameter @p ["hidden"] decay : tensor<4xf32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func private @layer(%layer: index, %x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @loss() -> tensor<f32> {
    %p = weft.read @p : tensor<4xf32>
    %0 = weft.contract "h->" (%p) : (tensor<4xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<4xf32>
    weft.assign @p, %0 : tensor<4xf32>
    return
  }
  func.func @evaluate() {
    return
  }
}

// -----

// expected-error @+1 {{verify-import: expected an input called 'tokens'}}
module {
}

// -----

// expected-error @+1 {{verify-import: expected an input called 'seed'}}
module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable parameter @seed [] : tensor<i64>
}

// -----

// expected-error @+1 {{verify-import: expected one optimizer, got 0}}
module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
}

// -----

// expected-error @+1 {{verify-import: expected a function @loss}}
module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
}

// -----

module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  // expected-error @+1 {{verify-import: expected @loss to have no arguments and one floating-point number as result, got '() -> tensor<i64>'}}
  func.func @loss() -> tensor<i64> {
    %0 = weft.read @seed : tensor<i64>
    return %0 : tensor<i64>
  }
}

// -----

module {
  weft.variable parameter @p [] decay : tensor<f32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.read @p : tensor<f32>
    // expected-error @+1 {{verify-import: expected no assignment in @loss but to statistics}}
    weft.assign @p, %0 : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Running means are the loss's to assign.
module {
  weft.variable statistic @s [] : tensor<f32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.read @s : tensor<f32>
    weft.assign @s, %0 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<f32>
    weft.assign @s, %0 : tensor<f32>
    return
  }
}

// -----

module {
  // expected-error @+1 {{verify-import: statistic 's' is assigned 0 times in @init, expected once}}
  weft.variable statistic @s [] : tensor<f32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.read @s : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{verify-import: parameter 'p' is assigned 0 times in @init, expected once}}
  weft.variable parameter @p [] decay : tensor<f32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.read @p : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    return
  }
}

// -----

module {
  weft.variable parameter @p [] decay : tensor<f32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  // expected-error @+1 {{verify-import: expected the first argument of layer function @layer to be the layer's number, of type index}}
  func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @loss() -> tensor<f32> {
    %0 = weft.read @p : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<f32>
    weft.assign @p, %0 : tensor<f32>
    return
  }
}

// -----

#mesh = #weft.mesh<"dp"=2>
module {
  weft.variable parameter @p ["hidden"] decay : tensor<4xf32>
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %p = weft.read @p : tensor<4xf32>
    %0 = weft.contract "h->" (%p) : (tensor<4xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    // expected-error @+1 {{verify-import: expected no sharding before Plan}}
    %0 = weft.fill constant 1.0 : tensor<4xf32, #weft.sharding<#mesh, [{"dp"}]>>
    %1 = weft.fill constant 1.0 : tensor<4xf32>
    weft.assign @p, %1 : tensor<4xf32>
    return
  }
}

// -----

module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.fill constant 1.0 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    return
  }
  // expected-error @+1 {{verify-import: expected @evaluate to have no arguments and no results, got '() -> tensor<f32>'}}
  func.func @evaluate() -> tensor<f32> {
    %0 = weft.fill constant 1.0 : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  weft.variable input @tokens ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @targets ["batch", "sequence"] : tensor<?x4xi32>
  weft.variable input @seed [] : tensor<i64>
  weft.variable input @step_number [] : tensor<i64>
  weft.variable optimizer @"momentum/p" [] : tensor<f32>
  weft.optimizer sgd learning_rate 1.0 decay constant warmup 0 steps 1 final 1.0
  func.func @loss() -> tensor<f32> {
    %0 = weft.fill constant 1.0 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @init() {
    return
  }
  func.func @evaluate() {
    %0 = weft.fill constant 1.0 : tensor<f32>
    // expected-error @+1 {{verify-import: expected no assignment in @evaluate}}
    weft.assign @"momentum/p", %0 : tensor<f32>
    return
  }
}
