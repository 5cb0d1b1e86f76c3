// RUN: weft-opt %s -split-input-file -verify-diagnostics -verify-stages

// The example of the pass's description.

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @step() {
  %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
  // expected-error @+1 {{verify-stages: uses a value of stage 0, but belongs to stage 1}}
  weft.observe "w", %0 {weft.stage = 1 : i64} : tensor<4xf64>
  return
}

// -----

// With a transfer it is right; constants are of every stage.

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @step() {
  %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
  %1 = weft.transfer %0 from 0 to 1 : tensor<4xf64>
  weft.observe "w", %1 {weft.stage = 1 : i64} : tensor<4xf64>
  %2 = weft.fill constant 0.0 : tensor<4xf64>
  weft.observe "zero", %2 {weft.stage = 1 : i64} : tensor<4xf64>
  weft.assign @w, %2 {weft.stage = 0 : i64} : tensor<4xf64>
  return
}

// -----

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @transferred_to_another() {
  %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
  %1 = weft.transfer %0 from 0 to 1 : tensor<4xf64>
  // expected-error @+1 {{uses a value of stage 1, but belongs to stage 2}}
  weft.observe "w", %1 {weft.stage = 2 : i64} : tensor<4xf64>
  return
}

// -----

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @transferred_from_another() {
  %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
  // expected-error @+1 {{uses a value of stage 0, but comes from stage 2}}
  %1 = weft.transfer %0 from 2 to 1 : tensor<4xf64>
  return
}

// -----

func.func @transferred_from_all() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  // expected-error @+1 {{uses a value of no stage, but comes from stage 0}}
  %1 = weft.transfer %0 from 0 to 1 : tensor<4xf64>
  return
}

// -----

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
weft.variable parameter @v ["hidden"] {weft.stage = 1 : i64} : tensor<4xf64>
// Ops that are not marked belong to the stage of their operands, but not to two.
func.func @inherited() {
  %0 = weft.read @w {weft.stage = 0 : i64} : tensor<4xf64>
  %1 = weft.read @v {weft.stage = 1 : i64} : tensor<4xf64>
  %2 = weft.contract "a->"(%0) : (tensor<4xf64>) -> tensor<f64>
  weft.observe "sum", %2 {weft.stage = 0 : i64} : tensor<f64>
  // expected-error @+1 {{uses a value of stage 1, but belongs to stage 0}}
  %3 = weft.contract "a,a->"(%0, %1) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return
}

// -----

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @read_elsewhere() {
  // expected-error @+1 {{uses 'w' of stage 0, but belongs to stage 1}}
  %0 = weft.read @w {weft.stage = 1 : i64} : tensor<4xf64>
  return
}

// -----

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func @assigned_elsewhere() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  // expected-error @+1 {{uses 'w' of stage 0, but belongs to no stage}}
  weft.assign @w, %0 : tensor<4xf64>
  return
}

// -----

func.func private @step_forward_0(%number: index) attributes {weft.micro_batch, weft.stage = 0 : i64} {
  return
}
func.func @called_elsewhere() {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{uses 'step_forward_0' of stage 0, but belongs to stage 1}}
  weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 1 : i64} : (index) -> ()
  return
}

// -----

// A function belongs to a stage with all its ops.

weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64} : tensor<4xf64>
func.func private @step_forward_1(%number: index) -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 1 : i64} {
  // expected-error @+1 {{uses 'w' of stage 0, but belongs to stage 1}}
  %0 = weft.read @w : tensor<4xf64>
  return %0 : tensor<4xf64>
}
