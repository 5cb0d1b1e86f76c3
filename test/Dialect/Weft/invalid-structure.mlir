// RUN: weft-opt %s -split-input-file -verify-diagnostics

// variable_c1
// expected-error @+1 {{names 1 dimensions, expected one for each of the tensor's 2}}
weft.variable parameter @w ["vocab"] : tensor<8x4xf32>

// -----

// variable_c1
// expected-error @+1 {{dimension "hidden" occurs twice}}
weft.variable parameter @w ["hidden", "hidden"] : tensor<8x4xf32>

// -----

// variable_c2
// expected-error @+1 {{only a parameter may decay, this is input}}
weft.variable input @x ["batch"] decay : tensor<8xf32>

// -----

// read_c1
func.func @read_no_variable() {
  // expected-error @+1 {{@w is no weft.variable}}
  %0 = weft.read @w : tensor<8xf32>
  return
}

// -----

// read_c1
func.func private @w()
func.func @read_function() {
  // expected-error @+1 {{@w is no weft.variable}}
  %0 = weft.read @w : tensor<8xf32>
  return
}

// -----

// read_c1
weft.variable parameter @w ["hidden"] : tensor<8xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>
func.func @read_shard_of_wrong_shape() {
  // expected-error @+1 {{has type 'tensor<2xf32>', expected that of @w}}
  %0 = weft.read @w : tensor<2xf32>
  return
}

// -----

// assign_c1
weft.variable parameter @w ["hidden"] : tensor<8xf32>
func.func @assign_other_type(%x: tensor<8xf64>) {
  // expected-error @+1 {{has type 'tensor<8xf64>', expected that of @w: 'tensor<8xf32>'}}
  weft.assign @w, %x : tensor<8xf64>
  return
}

// -----

// assign_c1
weft.variable input @x ["batch"] : tensor<8xf32>
func.func @assign_input(%x: tensor<8xf32>) {
  // expected-error @+1 {{cannot assign @x, an input}}
  weft.assign @x, %x : tensor<8xf32>
  return
}

// -----

// call_c1
func.func @call_nothing() {
  // expected-error @+1 {{@layer is no function}}
  weft.call @layer() label "" : () -> ()
  return
}

// -----

// call_c1
func.func private @layer(tensor<8xf32>)
func.func @call_operands(%x: tensor<4xf32>) {
  // expected-error @+1 {{has operands of types ('tensor<4xf32>'), expected ('tensor<8xf32>')}}
  weft.call @layer(%x) label "" : (tensor<4xf32>) -> ()
  return
}

// -----

// call_c1
func.func private @layer() -> tensor<8xf32>
func.func @call_results() {
  // expected-error @+1 {{has results of types (), expected ('tensor<8xf32>')}}
  weft.call @layer() label "" : () -> ()
  return
}

// -----

// launch_c1
func.func private @kernel(index)
func.func @launch_operands() {
  // expected-error @+1 {{has operands of types (), expected ('index')}}
  weft.launch @kernel() tied [] : () -> ()
  return
}

// -----

// launch_c2
func.func private @kernel(tensor<8xf32>) -> tensor<8xf32>
func.func @launch_too_few_ties(%x: tensor<8xf32>) {
  // expected-error @+1 {{ties 0 results, expected 1}}
  %0 = weft.launch @kernel(%x) tied [] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// launch_c2
func.func private @kernel(tensor<8xf32>) -> tensor<8xf32>
func.func @launch_tie_out_of_range(%x: tensor<8xf32>) {
  // expected-error @+1 {{result #0 is tied to operand #1, which does not exist}}
  %0 = weft.launch @kernel(%x) tied [1] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// launch_c2
func.func private @kernel(tensor<4xf32>) -> tensor<8xf32>
func.func @launch_tie_of_other_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{result #0 is tied to operand #0 of another type}}
  %0 = weft.launch @kernel(%x) tied [0] : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

// launch_c2
func.func private @kernel(tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
func.func @launch_tie_twice(%x: tensor<8xf32>) {
  // expected-error @+1 {{two results are tied to operand #0}}
  %0:2 = weft.launch @kernel(%x) tied [0, 0] : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// optimizer_c1
// expected-error @+1 {{beta1, beta2 and momentum must lie in [0, 1)}}
weft.optimizer adamw learning_rate 0.1 decay constant warmup 0 steps 1 final 0.0 {beta1 = 1.0 : f64}

// -----

// optimizer_c1
// expected-error @+1 {{rates, decays and norms must not be negative}}
weft.optimizer sgd learning_rate -0.1 decay constant warmup 0 steps 1 final 0.0

// -----

// optimizer_c1
// expected-error @+1 {{rates, decays and norms must not be negative}}
weft.optimizer sgd learning_rate 0x7FF8000000000000 decay constant warmup 0 steps 1 final 0.0

// -----

// optimizer_c2
// expected-error @+1 {{numbers of steps must not be negative}}
weft.optimizer sgd learning_rate 0.1 decay constant warmup -1 steps 1 final 0.0

// -----

// optimizer_c3
// expected-error @+1 {{expected 1 to 100 iterations, got 0}}
weft.optimizer muon learning_rate 0.1 decay constant warmup 0 steps 1 final 0.0 {iterations = 0 : i64}

// -----

// optimizer_c4
// expected-error @+1 {{expected a loss scale of 0, or 1 to 2^24, an interval of at least 0 and a factor of at least 1}}
weft.optimizer sgd learning_rate 0.1 decay constant warmup 0 steps 1 final 0.0 {loss_scale = 0.5}

// -----

// variable_c4
// expected-error @+1 {{expected a matrix of a parameter, with rows and columns among its 3 dimensions, got [1, 2] of parameter}}
weft.variable parameter @no_columns ["experts", "ffn", "hidden"] matrix [1, 2] : tensor<2x4x8xf32>

// -----

// variable_c4
// expected-error @+1 {{expected a matrix of a parameter, with rows and columns among its 2 dimensions, got [0, 1] of input}}
weft.variable input @of_input ["batch", "hidden"] matrix [0, 1] : tensor<4x8xf32>

// -----

func.func @observe_layout_of_no_tensor(%x: tensor<4xf32>) {
  // observe_c1
  // expected-error @+1 {{has a value of 'tensor<4xf32>', expected a rank's shard of its layout 'f32'}}
  weft.observe "x", %x layout f32 : tensor<4xf32>
  return
}

// -----

func.func @observe_other_shard(%x: tensor<4xf32>) {
  // observe_c1
  // expected-error @+1 {{has a value of 'tensor<4xf32>', expected a rank's shard of its layout}}
  weft.observe "x", %x layout tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>> : tensor<4xf32>
  return
}

// -----

func.func @observe_limit_of_nothing(%x: tensor<4xf32>) {
  // observe_c3
  // expected-error @+1 {{expected a limit and a mean above 0, of a value with a dimension}}
  weft.observe "x", %x limit 0.0 mean 1.0 : tensor<4xf32>
  return
}

// -----

func.func @observe_limit_of_scalar(%x: tensor<f32>) {
  // observe_c3
  // expected-error @+1 {{expected a limit and a mean above 0, of a value with a dimension}}
  weft.observe "x", %x limit 2.0 mean 1.0 : tensor<f32>
  return
}

// -----

func.func @observe_unpadded_is_all(%x: tensor<4xf32>) {
  // observe_c2
  // expected-error @+1 {{has the unpadded shape [4], expected one that is smaller than that of 'tensor<4xf32>'}}
  weft.observe "x", %x unpadded [4] : tensor<4xf32>
  return
}

// -----

func.func @observe_unpadded_shard(%x: tensor<4xf32>) {
  // observe_c2
  // expected-error @+1 {{has the unpadded shape [9], expected one that is smaller}}
  weft.observe "x", %x layout tensor<8xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>> unpadded [9] : tensor<4xf32>
  return
}

// -----

// variable_c5
// expected-error @+1 {{has the unpadded shape [7], expected one that is smaller than that of 'tensor<8x4xf32>'}}
weft.variable parameter @w ["ffn", "hidden"] unpadded [7] : tensor<8x4xf32>

// -----

// variable_c5
// expected-error @+1 {{has the unpadded shape [9, 4], expected one that is smaller}}
weft.variable parameter @w ["ffn", "hidden"] unpadded [9, 4] : tensor<8x4xf32>

// -----

// variable_c5
// expected-error @+1 {{has the unpadded shape [0, 4], expected one that is smaller}}
weft.variable parameter @w ["ffn", "hidden"] unpadded [0, 4] : tensor<8x4xf32>

// -----

func.func @constrain_dimensions(%x: tensor<4x8xf32>) {
  // constrain_c1
  // expected-error @+1 {{constrains 1 dimensions, expected the 2 of 'tensor<4x8xf32>'}}
  %0 = weft.constrain %x [["dp"]] : tensor<4x8xf32>
  return
}

// -----

func.func @constrain_numbers(%x: tensor<4xf32>) {
  // constrain_c1
  // expected-error @+1 {{expected the names of axes, or unit, for each dimension, got [2 : i32]}}
  %0 = weft.constrain %x [[2 : i32]] : tensor<4xf32>
  return
}

// -----

func.func @constrain_twice(%x: tensor<4x8xf32>) {
  // constrain_c1
  // expected-error @+1 {{axis "dp" occurs twice}}
  %0 = weft.constrain %x [["dp"], ["dp"]] : tensor<4x8xf32>
  return
}

// -----

func.func @constrain_priority(%x: tensor<4xf32>) {
  // constrain_c2
  // expected-error @+1 {{expected a priority of at least 0, got -1}}
  %0 = weft.constrain %x [["dp"]] priority -1 : tensor<4xf32>
  return
}

// -----

#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}, {}]>
func.func @constrain_cut(%x: tensor<4x8xf32, #cut>) {
  // constrain_c3
  // expected-error @+1 {{has dimension 0 cut over ["tp"], expected []}}
  %0 = weft.constrain %x [[], unit] : tensor<4x8xf32, #cut>
  return
}

// -----

func.func @send_without_number(%x: tensor<4xf32>) {
  // send_c1
  // expected-error @+1 {{expected a stage, numbered from 0, and a number from 1, got 1 and 0}}
  weft.send %x to 1 number 0 : tensor<4xf32>
  return
}

// -----

func.func @receive_from_nowhere() {
  // receive_c1
  // expected-error @+1 {{expected a stage, numbered from 0, and a number from 1, got -1 and 2}}
  %0 = weft.receive from -1 number 2 : tensor<4xf32>
  return
}

// -----

func.func @transfer_to_itself(%x: tensor<4xf32>) {
  // transfer_c1
  // expected-error @+1 {{expected two stages, numbered from 0, got 1 and 1}}
  %0 = weft.transfer %x from 1 to 1 : tensor<4xf32>
  return
}

// -----

func.func @transfer_from_nowhere(%x: tensor<4xf32>) {
  // transfer_c1
  // expected-error @+1 {{expected two stages, numbered from 0, got -1 and 0}}
  %0 = weft.transfer %x from -1 to 0 : tensor<4xf32>
  return
}

// -----

func.func @transfer_to_nowhere(%x: tensor<4xf32>) {
  // transfer_c1
  // expected-error @+1 {{expected two stages, numbered from 0, got 0 and -2}}
  %0 = weft.transfer %x from 0 to -2 : tensor<4xf32>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
func.func @transfer_pending(%x: tensor<4xf32, #pending>) {
  // transfer_c2
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"; reduce it first by a weft.reshard}}
  %0 = weft.transfer %x from 0 to 1 : tensor<4xf32, #pending>
  return
}
