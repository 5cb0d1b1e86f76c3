// RUN: weft-opt %s -split-input-file -verify-diagnostics -verify-partition

// The invariants of modules after Partition: variables keep the whole type, other tensors are local.

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}]>
weft.variable parameter @w ["ffn"] : tensor<8xf64, #cut>
func.func @step() {
  %0 = weft.read @w : tensor<4xf64>
  %1 = weft.all_reduce max %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  weft.observe "x", %1 layout tensor<8xf64, #cut> : tensor<4xf64>
  return
}

// -----

// The example of the pass's description.
#mesh = #weft.mesh<"tp"=2>
func.func private @layer(%0: tensor<4xf64, #weft.sharding<#mesh, [{}]>>) {
  // expected-error @+1 {{verify-partition: a reshard is left, expected reshard-to-collectives to replace it}}
  %1 = weft.reshard %0 : tensor<4xf64, #weft.sharding<#mesh, [{}]>> -> tensor<4xf64, #weft.sharding<#mesh, [{"tp"}]>>
  return
}

// -----

#mesh = #weft.mesh<"cp"=2>
func.func private @layer(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %i: index) {
  // expected-error @+1 {{verify-partition: an op over the shards of several ranks is left, expected expand-permutations to replace it}}
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 offsets(%i, %i) of [8, 8]
      over ["cp"] of #mesh
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
func.func @step() {
  // expected-error @+1 {{still has an encoding, expected localize to remove it}}
  %0 = weft.fill constant 1.0 : tensor<4xf64, #weft.sharding<#mesh, [{}]>>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
// expected-error @+1 {{still has an encoding, expected localize to remove it}}
func.func private @layer(%x: tensor<4xf64, #weft.sharding<#mesh, [{}]>>) {
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
func.func @step() {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  // expected-error @+1 {{verify-partition: no library reduces by logsumexp, expected expand-log-sum-exp to replace it}}
  %1 = weft.all_reduce logsumexp %0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
  return
}

// -----

#mesh = #weft.mesh<"tp"=2>
func.func @step() {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  // expected-error @+1 {{verify-partition: no library reduces by logsumexp}}
  %1 = weft.reduce_scatter logsumexp %0 dim 0 over ["tp"] of #mesh : tensor<4xf64> -> tensor<2xf64>
  return
}
