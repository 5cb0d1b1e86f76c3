// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Ops on shards, and their use of pending sums. What is not here is in
// invalid-rules.mlir.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}]>
#cut = #weft.sharding<#mesh, [{"tp"}]>
#pending = #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>
#both = #weft.sharding<#mesh, [{}], unreduced = sum{"dp", "tp"}>
#id = affine_map<(i) -> (i)>

// CHECK-LABEL: @sum_of_pending_sums
func.func @sum_of_pending_sums(%x: tensor<4xf32, #pending>, %y: tensor<4xf32, #pending>)
    -> tensor<4xf32, #pending> {
  %0 = weft.map ins(%x, %y : tensor<4xf32, #pending>, tensor<4xf32, #pending>) maps [#id, #id]
      -> tensor<4xf32, #pending> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    weft.yield %c : f32
  }
  return %0 : tensor<4xf32, #pending>
}

// CHECK-LABEL: @scale_times_pending_sum
func.func @scale_times_pending_sum(%x: tensor<4xf32, #pending>, %y: tensor<4xf32, #whole>)
    -> tensor<4xf32, #pending> {
  %0 = weft.map ins(%x, %y : tensor<4xf32, #pending>, tensor<4xf32, #whole>) maps [#id, #id]
      -> tensor<4xf32, #pending> {
  ^bb0(%a: f32, %b: f32):
    %two = arith.constant 2.0 : f32
    %c = arith.mulf %a, %two : f32
    %d = arith.divf %c, %b : f32
    %e = arith.negf %d : f32
    weft.yield %e : f32
  }
  return %0 : tensor<4xf32, #pending>
}

// Each axis for itself: additive in x over dp, and in x and y over tp.
// CHECK-LABEL: @pending_over_different_axes
func.func @pending_over_different_axes(
    %x: tensor<4xf32, #both>, %y: tensor<4xf32, #whole>, %z: tensor<4xf32, #whole>)
    -> tensor<4xf32, #both> {
  %0 = weft.map ins(%x, %y, %z : tensor<4xf32, #both>, tensor<4xf32, #whole>, tensor<4xf32, #whole>)
      maps [#id, #id, #id] -> tensor<4xf32, #both> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %less = arith.cmpf olt, %b, %c : f32
    %d = arith.negf %a : f32
    %e = arith.select %less, %a, %d : f32
    weft.yield %e : f32
  }
  return %0 : tensor<4xf32, #both>
}

// CHECK-LABEL: @contract_of_cut_dimension
func.func @contract_of_cut_dimension(%x: tensor<4xf32, #cut>, %y: tensor<4xf32, #cut>)
    -> tensor<f32, #weft.sharding<#mesh, [], unreduced = sum{"tp"}>> {
  %0 = weft.contract "a,a->" (%x, %y) : (tensor<4xf32, #cut>, tensor<4xf32, #cut>)
      -> tensor<f32, #weft.sharding<#mesh, [], unreduced = sum{"tp"}>>
  return %0 : tensor<f32, #weft.sharding<#mesh, [], unreduced = sum{"tp"}>>
}

// CHECK-LABEL: @contract_of_pending_sum
func.func @contract_of_pending_sum(
    %x: tensor<4xf32, #pending>, %y: tensor<2xf32, #weft.sharding<#mesh, [{"dp"}]>>)
    -> tensor<4x2xf32, #weft.sharding<#mesh, [{}, {"dp"}], unreduced = sum{"tp"}>> {
  %0 = weft.contract "a,b->ab" (%x, %y)
      : (tensor<4xf32, #pending>, tensor<2xf32, #weft.sharding<#mesh, [{"dp"}]>>)
      -> tensor<4x2xf32, #weft.sharding<#mesh, [{}, {"dp"}], unreduced = sum{"tp"}>>
  return %0 : tensor<4x2xf32, #weft.sharding<#mesh, [{}, {"dp"}], unreduced = sum{"tp"}>>
}

// One operand is pending over one axis, the other over another: (Σa)(Σb) is a sum over both.
// CHECK-LABEL: @contract_of_sums_over_different_axes
func.func @contract_of_sums_over_different_axes(
    %x: tensor<4xf32, #pending>, %y: tensor<4xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"dp"}>>)
    -> tensor<4xf32, #both> {
  %0 = weft.contract "a,a->a" (%x, %y)
      : (tensor<4xf32, #pending>, tensor<4xf32, #weft.sharding<#mesh, [{}], unreduced = sum{"dp"}>>)
      -> tensor<4xf32, #both>
  return %0 : tensor<4xf32, #both>
}

// CHECK-LABEL: @embedding_of_cut_vocabulary
func.func @embedding_of_cut_vocabulary(
    %t: tensor<8x4xf32, #weft.sharding<#mesh, [{"tp"}, {}]>>,
    %ids: tensor<2xi32, #weft.sharding<#mesh, [{"dp"}]>>)
    -> tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>> {
  %0 = weft.embedding %t[%ids]
      : tensor<8x4xf32, #weft.sharding<#mesh, [{"tp"}, {}]>>[tensor<2xi32, #weft.sharding<#mesh, [{"dp"}]>>]
      -> tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
  return %0 : tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
}

// CHECK-LABEL: @cross_entropy_of_cut_vocabulary
func.func @cross_entropy_of_cut_vocabulary(
    %x: tensor<2x8xf32, #weft.sharding<#mesh, [{"dp"}, {"tp"}]>>,
    %t: tensor<2xi32, #weft.sharding<#mesh, [{"dp"}]>>) {
  %0:2 = weft.cross_entropy %x[%t]
      : tensor<2x8xf32, #weft.sharding<#mesh, [{"dp"}, {"tp"}]>>[tensor<2xi32, #weft.sharding<#mesh, [{"dp"}]>>]
      -> tensor<2xf32, #weft.sharding<#mesh, [{"dp"}], unreduced = logsumexp{"tp"}>>,
         tensor<2xf32, #weft.sharding<#mesh, [{"dp"}], unreduced = sum{"tp"}>>
  return
}

// A norm's derivative is linear in the gradient.
// CHECK-LABEL: @norm_grad_of_pending_gradient
func.func @norm_grad_of_pending_gradient(
    %x: tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>, %s: tensor<4xf32, #whole>,
    %g: tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>) {
  %0:2 = weft.norm_grad rms %x scale(%s : tensor<4xf32, #whole>)
      gradient(%g : tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>)
      epsilon = 1.0e-5 : tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}]>>
      -> tensor<2x4xf32, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>,
         tensor<4xf32, #both>
  return
}
