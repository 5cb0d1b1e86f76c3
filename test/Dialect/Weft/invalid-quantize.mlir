// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @amax_in_bf16(%x: tensor<4xbf16>) {
  // amax_c1
  // expected-error @+1 {{output must be of 'f32', got 'bf16'}}
  %0 = weft.amax %x : tensor<4xbf16> -> tensor<bf16>
  return
}

// -----

func.func @amax_of_rows(%x: tensor<4x2xf32>) {
  // amax_c1
  // expected-error @+1 {{result #0 must have 0 dimensions, got 1}}
  %0 = weft.amax %x : tensor<4x2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @amax_of_another_type(%x: tensor<4xf32>, %m: tensor<f64>) {
  // quantize_c1
  // expected-error @+1 {{amax must be of 'f32', got 'f64'}}
  %0 = weft.quantize e4m3 %x by %m : tensor<4xf32>, tensor<f64> -> tensor<4xf32>
  return
}

// -----

func.func @quantize_reshapes(%x: tensor<4xf32>, %m: tensor<f32>) {
  // quantize_c2
  // expected-error @+1 {{result #0 dimension 0 has size 8, expected 4 as operand #0 dimension 0}}
  %0 = weft.quantize e4m3 %x by %m : tensor<4xf32>, tensor<f32> -> tensor<8xf32>
  return
}

// -----

func.func @quantize_widens(%x: tensor<4xf32>, %m: tensor<f32>) {
  // quantize_c2
  // expected-error @+1 {{output must be of 'f32' or narrower, got 'f64'}}
  %0 = weft.quantize e4m3 %x by %m : tensor<4xf32>, tensor<f32> -> tensor<4xf64>
  return
}

// -----

func.func @sum_with_a_gradient_format(%x: tensor<4xf32>) {
  // contract_c5
  // expected-error @+1 {{quantizes its gradient, but has one operand: expected two}}
  %0 = weft.contract "a->" (%x) gradient e5m2 : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

// Rounding is not linear.
#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#scalar = #weft.sharding<#weft.mesh<"tp"=2>, []>
func.func @quantize_a_pending_sum(%x: tensor<4xf32, #pending>, %m: tensor<f32, #scalar>) {
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.quantize e4m3 %x by %m : tensor<4xf32, #pending>, tensor<f32, #scalar>
      -> tensor<4xf32, #pending>
  return
}

// -----

// A rank that scaled by the maximum of its own shard would round otherwise than one that has all.
#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
#part = #weft.sharding<#weft.mesh<"tp"=2>, [], unreduced = max{"tp"}>
func.func @quantize_by_the_maximum_of_a_shard(%x: tensor<4xf32, #cut>) {
  %m = weft.amax %x : tensor<4xf32, #cut> -> tensor<f32, #part>
  // expected-error @+1 {{pending}}
  %0 = weft.quantize e4m3 %x by %m : tensor<4xf32, #cut>, tensor<f32, #part> -> tensor<4xf32, #cut>
  return
}

// -----

#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, []>
func.func @amax_of_a_shard_is_not_that_of_all(%x: tensor<4xf32, #cut>) {
  // expected-error @+1 {{must have the sharding}}
  %m = weft.amax %x : tensor<4xf32, #cut> -> tensor<f32, #whole>
  return
}

// -----

func.func @history_of_no_steps(%x: tensor<4xf32>) {
  // history_c1
  // expected-error @+1 {{expected a name and at least one step, got 'x' of 0}}
  %0 = weft.amax %x {history = #weft.history<"x" of 0>} : tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @history_without_a_format(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) {
  // contract_c7
  // expected-error @+1 {{keeps a history of its gradient, which is not quantized}}
  %0 = weft.contract "bk,nk->bn" (%x, %w) {gradient_history = #weft.history<"y" of 2>}
      : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}
