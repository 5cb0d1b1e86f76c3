// RUN: weft-opt %s -split-input-file -verify-diagnostics

// Rounding is not linear: what is rounded must be reduced before.
#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @rounding_of_a_pending_sum(%x: tensor<4xf32, #pending>) {
  // sharding_c7
  // expected-error @+2 {{a tensor of 'bf16' cannot be unreduced}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [affine_map<(i) -> (i)>]
      -> tensor<4xbf16, #pending> {
  ^bb0(%a: f32):
    %1 = arith.truncf %a : f32 to bf16
    weft.yield %1 : bf16
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
func.func @rounding_and_back(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [affine_map<(i) -> (i)>]
      -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %1 = arith.truncf %a : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    weft.yield %2 : f32
  }
  return
}

// -----

func.func @map_arithmetic(%x: tensor<4xbf16>) {
  %0 = weft.map ins(%x : tensor<4xbf16>) maps [affine_map<(i) -> (i)>] -> tensor<4xbf16> {
  ^bb0(%a: bf16):
    // map_c5
    // expected-error @+1 {{computes in 'bf16', expected to in f32}}
    %1 = arith.addf %a, %a : bf16
    weft.yield %1 : bf16
  }
  return
}

// -----

func.func @contract_of_two_types(%x: tensor<4xbf16>, %y: tensor<4xf32>) {
  // contract_c4
  // expected-error @+1 {{operands must have one element type, got 'bf16' and 'f32'}}
  %0 = weft.contract "a,a->" (%x, %y) : (tensor<4xbf16>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @contract_rounds_wide_operands(%x: tensor<4xf32>) {
  // contract_c4
  // expected-error @+1 {{operand of 'f32' must have the result's element type 'bf16'}}
  %0 = weft.contract "a->" (%x) : (tensor<4xf32>) -> tensor<bf16>
  return
}

// -----

func.func @norm_output(%x: tensor<4x8xbf16>, %s: tensor<8xf32>) {
  // norm_c4
  // expected-error @+1 {{output must be of 'bf16', got 'f32'}}
  %0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<4x8xbf16> -> tensor<4x8xf32>
  return
}

// -----

func.func @norm_scale(%x: tensor<4x8xbf16>, %s: tensor<8xbf16>) {
  // norm_c4
  // expected-error @+1 {{scale must be of 'f32', got 'bf16'}}
  %0 = weft.norm rms %x scale(%s : tensor<8xbf16>) epsilon = 1.0e-5
      : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return
}

// -----

func.func @norm_bias(%x: tensor<4x8xf64>, %s: tensor<8xf64>, %b: tensor<8xf32>) {
  // norm_c4
  // expected-error @+1 {{bias must be of 'f64', got 'f32'}}
  %0 = weft.norm layer %x scale(%s : tensor<8xf64>) bias(%b : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<4x8xf64> -> tensor<4x8xf64>
  return
}

// -----

func.func @norm_grad_gradient(%x: tensor<4x8xbf16>, %s: tensor<8xf32>, %g: tensor<4x8xf32>) {
  // norm_grad_c1
  // expected-error @+1 {{gradient must be of 'bf16', got 'f32'}}
  %0:2 = weft.norm_grad rms %x scale(%s : tensor<8xf32>) gradient(%g : tensor<4x8xf32>)
      epsilon = 1.0e-5 : tensor<4x8xbf16> -> tensor<4x8xbf16>, tensor<8xf32>
  return
}

// -----

func.func @norm_grad_of_scale(%x: tensor<4x8xbf16>, %s: tensor<8xf32>) {
  // norm_grad_c1
  // expected-error @+1 {{scale gradient must be of 'f32', got 'bf16'}}
  %0:2 = weft.norm_grad rms %x scale(%s : tensor<8xf32>) gradient(%x : tensor<4x8xbf16>)
      epsilon = 1.0e-5 : tensor<4x8xbf16> -> tensor<4x8xbf16>, tensor<8xbf16>
  return
}

// -----

func.func @rotary_table_type(%x: tensor<2x4x8xbf16>, %t: tensor<2x4x4xbf16>) {
  // rotary_c3
  // expected-error @+1 {{table must be of 'f32', got 'bf16'}}
  %0 = weft.rotary %x table(%t : tensor<2x4x4xbf16>) : tensor<2x4x8xbf16> -> tensor<2x4x8xbf16>
  return
}

// -----

func.func @rotary_output(%x: tensor<2x4x8xf32>, %t: tensor<2x4x4xf32>) {
  // rotary_c3
  // expected-error @+1 {{output must be of 'f32', got 'f64'}}
  %0 = weft.rotary %x table(%t : tensor<2x4x4xf32>) : tensor<2x4x8xf32> -> tensor<2x4x8xf64>
  return
}

// -----

func.func @attention_value(%q: tensor<2x4x2x3x8xbf16>, %k: tensor<2x4x2x8xbf16>,
                           %v: tensor<2x4x2x8xf32>) {
  // attention_c5
  // expected-error @+1 {{value must be of 'bf16', got 'f32'}}
  %0:2 = weft.attention(%q, %k, %v) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xbf16>, tensor<2x2x3x4xf32>
  return
}

// -----

func.func @attention_lse(%q: tensor<2x4x2x3x8xbf16>, %k: tensor<2x4x2x8xbf16>) {
  // attention_c5
  // expected-error @+1 {{lse must be of 'f32', got 'bf16'}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>
      -> tensor<2x4x2x3x8xbf16>, tensor<2x2x3x4xbf16>
  return
}

// -----

func.func @attention_query_gradient(%q: tensor<2x4x2x3x8xbf16>, %k: tensor<2x4x2x8xbf16>,
                                    %l: tensor<2x2x3x4xf32>) {
  // attention_grad_c1
  // expected-error @+1 {{query gradient must be of 'f32', got 'f16'}}
  %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>,
        tensor<2x4x2x3x8xbf16>, tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xbf16>
      -> tensor<2x4x2x3x8xf16>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// -----

func.func @attention_key_gradient(%q: tensor<2x4x2x3x8xbf16>, %k: tensor<2x4x2x8xbf16>,
                                  %l: tensor<2x2x3x4xf32>) {
  // attention_grad_c1
  // expected-error @+1 {{key gradient must be of 'f32', got 'bf16'}}
  %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>,
        tensor<2x4x2x3x8xbf16>, tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xbf16>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xf32>
  return
}

// -----

func.func @attention_value_gradient(%q: tensor<2x4x2x3x8xbf16>, %k: tensor<2x4x2x8xbf16>,
                                    %l: tensor<2x2x3x4xf32>) {
  // attention_grad_c1
  // expected-error @+1 {{value gradient must be of 'bf16', got 'f32'}}
  %0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>,
        tensor<2x4x2x3x8xbf16>, tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xbf16>
      -> tensor<2x4x2x3x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xf32>
  return
}

// -----

func.func @cross_entropy_grad_output(%x: tensor<2x8xbf16>, %t: tensor<2xi32>, %l: tensor<2xf32>) {
  // cross_entropy_grad_c1
  // expected-error @+1 {{output must be of 'bf16', got 'f32'}}
  %0 = weft.cross_entropy_grad %x[%t] lse(%l) gradient(%l, %l)
      : tensor<2x8xbf16>[tensor<2xi32>], tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
      -> tensor<2x8xf32>
  return
}

// -----

func.func @dropout_output(%x: tensor<4xbf16>, %s: tensor<i64>, %l: index) {
  // dropout_c3
  // expected-error @+1 {{output must be of 'bf16', got 'f32'}}
  %0 = weft.dropout %x rate = 0.5 site = 1 key(%s, %s, %l : tensor<i64>, tensor<i64>)
      : tensor<4xbf16> -> tensor<4xf32>
  return
}

// -----

// variable_c3
// expected-error @+1 {{cannot be of 'bf16', expected f32 or f64}}
weft.variable parameter @w ["hidden"] : tensor<8xbf16>

// -----

func.func @map_arithmetic_of_f16(%x: tensor<4xf16>) {
  %0 = weft.map ins(%x : tensor<4xf16>) maps [affine_map<(i) -> (i)>] -> tensor<4xf16> {
  ^bb0(%a: f16):
    // map_c5
    // expected-error @+1 {{computes in 'f16', expected to in f32}}
    %1 = arith.addf %a, %a : f16
    weft.yield %1 : f16
  }
  return
}
