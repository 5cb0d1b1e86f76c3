// RUN: weft-opt %s -split-input-file -reshard-to-collectives -localize -expand-permutations -verify-partition | FileCheck %s

// The collectives of attention if four ranks share the sequence. A shard of
// keys, and of values, is 2 x 4 x 4 x 8 elements here, a fourth of the whole.

// Exchanged for heads (Jacobs et al. 2023, DeepSpeed Ulysses): queries, keys, values and outputs go
// by all-to-alls, 3/4 of a shard each, and nothing else moves.

#mesh = #weft.mesh<"cp"=4>
#positions = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#heads = #weft.sharding<#mesh, [{}, {}, {"cp"}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#key_heads = #weft.sharding<#mesh, [{}, {}, {"cp"}, {}]>
#lse = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>

// CHECK-LABEL: func.func private @exchanged
// CHECK-NOT:     axis_index
// CHECK:         %[[Q:.*]] = weft.all_to_all %arg0 split 2 concat 1 over ["cp"]
// CHECK-NEXT:    %[[K:.*]] = weft.all_to_all %arg1 split 2 concat 1 over ["cp"]
// CHECK-NEXT:    %[[V:.*]] = weft.all_to_all %arg2 split 2 concat 1 over ["cp"]
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = weft.attention(%[[Q]], %[[K]], %[[V]])
// CHECK-NEXT:    %[[R:.*]] = weft.all_to_all %[[O]] split 1 concat 2 over ["cp"]
// CHECK-NEXT:    return %[[R]]
func.func private @exchanged(%q: tensor<2x16x4x1x8xf64, #positions>, %k: tensor<2x16x4x8xf64, #key>,
                             %v: tensor<2x16x4x8xf64, #key>) -> tensor<2x16x4x1x8xf64, #positions> {
  %0 = weft.reshard %q : tensor<2x16x4x1x8xf64, #positions> -> tensor<2x16x4x1x8xf64, #heads>
  %1 = weft.reshard %k : tensor<2x16x4x8xf64, #key> -> tensor<2x16x4x8xf64, #key_heads>
  %2 = weft.reshard %v : tensor<2x16x4x8xf64, #key> -> tensor<2x16x4x8xf64, #key_heads>
  %3:2 = weft.attention(%0, %1, %2) scale = 1.0 dropout = 0.0
      : tensor<2x16x4x1x8xf64, #heads>, tensor<2x16x4x8xf64, #key_heads>, tensor<2x16x4x8xf64, #key_heads>
      -> tensor<2x16x4x1x8xf64, #heads>, tensor<2x4x1x16xf64, #lse>
  %4 = weft.reshard %3#0 : tensor<2x16x4x1x8xf64, #heads> -> tensor<2x16x4x1x8xf64, #positions>
  return %4 : tensor<2x16x4x1x8xf64, #positions>
}

// -----

// Round a ring (Liu et al. 2023, Ring Attention): a rank has one of four shards and needs all, so
// it takes in at least three of keys and three of values, and that is all that moves. Backward
// the same, and four times their gradients: three to meet every rank's queries, and home.

#mesh = #weft.mesh<"cp"=4>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>

// CHECK-LABEL: func.func private @ring_forward
// CHECK-COUNT-6: weft.permute {{.*}} over ["cp"] of #mesh from [3, 0, 1, 2] : tensor<2x4x4x8xf64> ->
// CHECK-NOT:     weft.{{permute|all_|reduce_scatter}}
// CHECK:         return
func.func private @ring_forward(%q: tensor<2x16x4x1x8xf64, #query>, %k: tensor<2x16x4x8xf64, #key>,
                                %v: tensor<2x16x4x8xf64, #key>)
    -> tensor<2x16x4x1x8xf64, #query> {
  %0:2 = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0
      : tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #key>, tensor<2x16x4x8xf64, #key>
      -> tensor<2x16x4x1x8xf64, #query>, tensor<2x4x1x16xf64, #lse>
  return %0#0 : tensor<2x16x4x1x8xf64, #query>
}

// CHECK-LABEL: func.func private @ring_backward
// CHECK-COUNT-14: weft.permute {{.*}} over ["cp"] of #mesh from [3, 0, 1, 2] : tensor<2x4x4x8xf64> ->
// CHECK-NOT:     weft.{{permute|all_|reduce_scatter}}
// CHECK:         return
func.func private @ring_backward(%q: tensor<2x16x4x1x8xf64, #query>, %k: tensor<2x16x4x8xf64, #key>,
                                 %v: tensor<2x16x4x8xf64, #key>, %l: tensor<2x4x1x16xf64, #lse>)
    -> (tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #key>, tensor<2x16x4x8xf64, #key>) {
  %0:3 = weft.attention_grad(%q, %k, %v) output(%q, %l) gradient(%q) scale = 1.0 dropout = 0.0
      : tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #key>, tensor<2x16x4x8xf64, #key>,
        tensor<2x16x4x1x8xf64, #query>, tensor<2x4x1x16xf64, #lse>, tensor<2x16x4x1x8xf64, #query>
      -> tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #key>, tensor<2x16x4x8xf64, #key>
  return %0#0, %0#1, %0#2 : tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #key>, tensor<2x16x4x8xf64, #key>
}

// -----

// With whole keys: gathered forward, and their gradients scattered as they are added up.

#mesh = #weft.mesh<"cp"=4>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#whole = #weft.sharding<#mesh, [{}, {}, {}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}, {}, {}], unreduced = sum{"cp"}>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>

// CHECK-LABEL: func.func private @gathered
// CHECK:         weft.all_gather {{.*}} dim 1 over ["cp"]
// CHECK-NOT:     weft.{{permute|all_|reduce_scatter}}
// CHECK:         weft.reduce_scatter sum {{.*}} dim 1 over ["cp"]
// CHECK-NOT:     weft.{{permute|all_|reduce_scatter}}
// CHECK:         return
func.func private @gathered(%q: tensor<2x16x4x1x8xf64, #query>, %k: tensor<2x16x4x8xf64, #key>)
    -> tensor<2x16x4x8xf64, #key> {
  %0 = weft.reshard %k : tensor<2x16x4x8xf64, #key> -> tensor<2x16x4x8xf64, #whole>
  %1:2 = weft.attention(%q, %0, %0) scale = 1.0 dropout = 0.0
      : tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #whole>, tensor<2x16x4x8xf64, #whole>
      -> tensor<2x16x4x1x8xf64, #query>, tensor<2x4x1x16xf64, #lse>
  %2:3 = weft.attention_grad(%q, %0, %0) output(%1#0, %1#1) gradient(%q) scale = 1.0 dropout = 0.0
      : tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #whole>, tensor<2x16x4x8xf64, #whole>,
        tensor<2x16x4x1x8xf64, #query>, tensor<2x4x1x16xf64, #lse>, tensor<2x16x4x1x8xf64, #query>
      -> tensor<2x16x4x1x8xf64, #query>, tensor<2x16x4x8xf64, #pending>, tensor<2x16x4x8xf64, #pending>
  %3 = weft.reshard %2#1 : tensor<2x16x4x8xf64, #pending> -> tensor<2x16x4x8xf64, #key>
  return %3 : tensor<2x16x4x8xf64, #key>
}
