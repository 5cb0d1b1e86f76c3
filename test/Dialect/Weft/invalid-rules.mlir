// RUN: weft-opt %s -split-input-file -verify-diagnostics

// rule_c1 without shardings has its tests with each op; here it is enough that sizes come first.
func.func @sizes(%x: tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>, %y: tensor<8xf32>) {
  // rule_c1
  // expected-error @+1 {{operand #1 dimension 0 has size 8, expected 4 as operand #0 dimension 0}}
  %0 = weft.contract "a,a->" (%x, %y)
      : (tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @one_tensor_without_sharding(%x: tensor<4xf32, #whole>, %y: tensor<4xf32>) {
  // rule_c2
  // expected-error @+1 {{operand #1 has no sharding, but another tensor of the op has one}}
  %0 = weft.contract "a,a->a" (%x, %y) : (tensor<4xf32, #whole>, tensor<4xf32>) -> tensor<4xf32, #whole>
  return
}

// -----

#tp = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
#dp = #weft.sharding<#weft.mesh<"dp"=2>, [{}]>
func.func @two_meshes(%x: tensor<4xf32, #tp>, %y: tensor<4xf32, #dp>) {
  // rule_c2
  // expected-error @+1 {{operand #1 lies on mesh #weft.mesh<"dp"=2>, expected that of the op's first tensor: #weft.mesh<"tp"=2>}}
  %0 = weft.contract "a,a->a" (%x, %y) : (tensor<4xf32, #tp>, tensor<4xf32, #dp>) -> tensor<4xf32, #tp>
  return
}

// -----

#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @factor_cut_in_one_tensor(%x: tensor<4xf32, #cut>, %y: tensor<4xf32, #whole>) {
  // rule_c3
  // expected-error @+1 {{operand #1 dimension 0 is cut over [], expected ["tp"] as the same factor in another tensor of the op}}
  %0 = weft.contract "a,a->a" (%x, %y) : (tensor<4xf32, #cut>, tensor<4xf32, #whole>) -> tensor<4xf32, #cut>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#one = #weft.sharding<#mesh, [{"dp", "tp"}]>
#other = #weft.sharding<#mesh, [{"tp", "dp"}]>
func.func @axes_in_other_order(%x: tensor<4xf32, #one>, %y: tensor<4xf32, #other>) {
  // rule_c3
  // expected-error @+1 {{operand #1 dimension 0 is cut over ["tp", "dp"], expected ["dp", "tp"]}}
  %0 = weft.contract "a,a->a" (%x, %y) : (tensor<4xf32, #one>, tensor<4xf32, #other>) -> tensor<4xf32, #one>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#cut = #weft.sharding<#mesh, [{"tp"}]>
func.func @norm_of_cut_rows(%x: tensor<2x4xf32, #columns>, %s: tensor<4xf32, #cut>) {
  // rule_c4
  // expected-error @+1 {{cannot be cut over ["tp"] along factor 1, which must be replicated}}
  %0 = weft.norm rms %x scale(%s : tensor<4xf32, #cut>) epsilon = 1.0e-5
      : tensor<2x4xf32, #columns> -> tensor<2x4xf32, #columns>
  return
}

// -----

#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
func.func @axis_cuts_two_factors(%x: tensor<4xf32, #cut>, %y: tensor<4xf32, #cut>) {
  // rule_c5
  // expected-error @+1 {{axis "tp" cuts two factors}}
  %0 = weft.contract "a,b->a" (%x, %y) : (tensor<4xf32, #cut>, tensor<4xf32, #cut>) -> tensor<4xf32, #cut>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
#columns = #weft.sharding<#weft.mesh<"tp"=2>, [{}, {"tp"}]>
func.func @axis_cuts_and_is_pending(%x: tensor<4xf32, #pending>, %y: tensor<4xf32, #cut>) {
  // rule_c5
  // expected-error @+1 {{axis "tp" cuts a factor while an operand is pending over it}}
  %0 = weft.contract "a,b->ab" (%x, %y) : (tensor<4xf32, #pending>, tensor<4xf32, #cut>) -> tensor<4x4xf32, #columns>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
func.func @contract_of_two_pending_sums(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operands #0, #1, pending over "tp"; reduce it first by a weft.reshard}}
  %0 = weft.contract "a,a->a" (%x, %x) : (tensor<4xf32, #pending>, tensor<4xf32, #pending>) -> tensor<4xf32, #pending>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @product_of_two_pending_sums(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operands #0, #1, pending over "tp"}}
  %0 = weft.map ins(%x, %x : tensor<4xf32, #pending>, tensor<4xf32, #pending>) maps [#id, #id]
      -> tensor<4xf32, #pending> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    weft.yield %c : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @exp_of_pending_sum(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id] -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    weft.yield %b : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @constant_added_to_pending_sum(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id] -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %b = arith.addf %a, %one : f32
    weft.yield %b : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
#id = affine_map<(i) -> (i)>
func.func @whole_value_added_to_pending_sum(%x: tensor<4xf32, #pending>, %y: tensor<4xf32, #whole>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x, %y : tensor<4xf32, #pending>, tensor<4xf32, #whole>) maps [#id, #id]
      -> tensor<4xf32, #pending> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    weft.yield %c : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
// One result is additive, but the other does not see the operand: it would be counted twice.
func.func @second_result_is_constant(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0:2 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id]
      -> tensor<4xf32, #pending>, tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    weft.yield %a, %one : f32, f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @condition_of_pending_sum(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id] -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf ogt, %a, %zero : f32
    %b = arith.select %positive, %a, %a : f32
    weft.yield %b : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @divided_by_pending_sum(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id] -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %b = arith.divf %one, %a : f32
    weft.yield %b : f32
  }
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}, {}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @norm_of_pending_sum(%x: tensor<2x4xf32, #pending>, %s: tensor<4xf32, #whole>) {
  // rule_c6
  // expected-error @+1 {{is not additive in operand #0, pending over "tp"}}
  %0 = weft.norm rms %x scale(%s : tensor<4xf32, #whole>) epsilon = 1.0e-5
      : tensor<2x4xf32, #pending> -> tensor<2x4xf32, #pending>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = max{"tp"}>
func.func @pending_maximum(%x: tensor<4xf32, #pending>) {
  // rule_c6
  // expected-error @+1 {{operand #0 is pending by max, but only a reshard may have such an operand}}
  %0 = weft.contract "a->a" (%x) : (tensor<4xf32, #pending>) -> tensor<4xf32, #pending>
  return
}

// -----

#cut = #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>
#scalar = #weft.sharding<#weft.mesh<"tp"=2>, []>
func.func @result_forgets_reduction(%x: tensor<4xf32, #cut>) {
  // rule_c7
  // expected-error @+1 {{result #0 must have the sharding #weft.sharding<#weft.mesh<"tp"=2>, [], unreduced = sum{"tp"}>, got #weft.sharding<#weft.mesh<"tp"=2>, []>}}
  %0 = weft.contract "a->" (%x) : (tensor<4xf32, #cut>) -> tensor<f32, #scalar>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @result_forgets_pending_operand(%x: tensor<4xf32, #pending>) {
  // rule_c7
  // expected-error @+1 {{result #0 must have the sharding}}
  %0 = weft.contract "a->a" (%x) : (tensor<4xf32, #pending>) -> tensor<4xf32, #whole>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
func.func @result_pending_by_itself(%x: tensor<4xf32, #whole>) {
  // rule_c7
  // expected-error @+1 {{result #0 must have the sharding}}
  %0 = weft.contract "a->a" (%x) : (tensor<4xf32, #whole>) -> tensor<4xf32, #pending>
  return
}

// -----

#logits = #weft.sharding<#weft.mesh<"tp"=2>, [{}, {"tp"}]>
#whole = #weft.sharding<#weft.mesh<"tp"=2>, [{}]>
#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
func.func @lse_is_no_sum(%x: tensor<2x8xf32, #logits>, %t: tensor<2xi32, #whole>) {
  // rule_c7
  // expected-error @+1 {{result #0 must have the sharding #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = logsumexp{"tp"}>}}
  %0:2 = weft.cross_entropy %x[%t] : tensor<2x8xf32, #logits>[tensor<2xi32, #whole>]
      -> tensor<2xf32, #pending>, tensor<2xf32, #pending>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
// The rule is asked before the region is checked, and must live with what it finds there.
func.func @malformed_region(%x: tensor<4xf32, #pending>) {
  %0 = "weft.map"(%x) <{maps = [#id]}> ({
  ^bb0(%a: f32):
    // expected-error @+1 {{expected 2 operands, but found 1}}
    %b = "arith.mulf"(%a) : (f32) -> f32
    "weft.yield"(%b) : (f32) -> ()
  // expected-error @-5 {{is not additive in operand #0}}
  }) : (tensor<4xf32, #pending>) -> tensor<4xf32, #pending>
  return
}

// -----

#pending = #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>
#id = affine_map<(i) -> (i)>
func.func @other_op_in_region(%x: tensor<4xf32, #pending>) {
  // expected-error @+1 {{is not additive in operand #0}}
  %0 = weft.map ins(%x : tensor<4xf32, #pending>) maps [#id] -> tensor<4xf32, #pending> {
  ^bb0(%a: f32):
    %b = math.floor %a : f32
    weft.yield %b : f32
  }
  return
}

// -----

#mesh = #weft.mesh<"a"=2, "b"=2>
#query = #weft.sharding<#mesh, [{}, {"a"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"a", "b"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"a"}]>
func.func @permutation_without_partner(%q: tensor<2x4x2x2x8xf32, #query>,
                                       %k: tensor<2x4x2x8xf32, #key>) {
  // rule_c8
  // expected-error @+1 {{cannot be cut over "b" along factor 5 without factor 1, which is cut over ["a"]}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x2x8xf32, #query>, tensor<2x4x2x8xf32, #key>, tensor<2x4x2x8xf32, #key>
      -> tensor<2x4x2x2x8xf32, #query>, tensor<2x2x2x4xf32, #lse>
  return
}
