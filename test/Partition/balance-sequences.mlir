// RUN: weft-opt %s -split-input-file -balance-sequences -verify-plan | FileCheck %s

// Tokens come in by position and are reordered (the example of the pass's description), in every
// function that reads them; so are numbers of positions. Attention, in a layer, and dropout get to
// know the order; a norm and a matmul need not. What is observed is by position again.

#mesh = #weft.mesh<"cp"=2>
#ids = #weft.sharding<#mesh, [{}, {"cp"}]>
#rows = #weft.sharding<#mesh, [{}, {"cp"}, {}]>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
#sequence = #weft.sharding<#mesh, [{"cp"}]>
#scalar = #weft.sharding<#mesh, []>
module attributes {weft.mesh = #mesh} {
  weft.variable input @tokens ["batch", "sequence"] : tensor<4x8xi32, #ids>
  weft.variable input @seed [] : tensor<i64, #scalar>
  weft.variable parameter @table ["vocab", "hidden"] : tensor<16x2xf64, #whole>
  weft.variable parameter @heads ["kv_heads", "hidden"] : tensor<1x2xf64, #whole>

  // CHECK-LABEL: func.func private @layer
  // CHECK-NOT:     weft.reorder
  // CHECK:         weft.attention({{.*}} order <4 x 2> :
  func.func private @layer(%q: tensor<4x8x1x1x2xf64, #query>, %k: tensor<4x8x1x2xf64, #key>)
      -> tensor<4x8x1x1x2xf64, #query> {
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    return %0#0 : tensor<4x8x1x1x2xf64, #query>
  }

  // CHECK-LABEL: func.func @step
  // CHECK:         %[[READ:.*]] = weft.read @tokens
  // CHECK-NEXT:    %[[WHOLE:.*]] = weft.reshard %[[READ]] : {{.*}} -> tensor<4x8xi32, {{.*}} [{}, {}]>>
  // CHECK-NEXT:    %[[STORED:.*]] = weft.reorder %[[WHOLE]] dim 1 order <4 x 2> : {{.*}} -> tensor<4x8xi32, {{.*}} [{}, {"cp"}]>>
  // CHECK:         weft.embedding %{{.*}}[%[[STORED]]]
  // CHECK:         %[[IOTA:.*]] = weft.iota : tensor<8xi32, {{.*}} [{}]>>
  // CHECK-NEXT:    %[[PLACES:.*]] = weft.reorder %[[IOTA]] dim 0 order <4 x 2> : {{.*}} -> tensor<8xi32, {{.*}} [{"cp"}]>>
  // CHECK-NEXT:    weft.embedding %{{.*}}[%[[PLACES]]]
  // CHECK:         weft.dropout {{.*}} order <4 x 2> dim 1 :
  // CHECK:         weft.contract
  // CHECK-NOT:     order
  // CHECK:         %[[OUT:.*]] = weft.call @layer
  // CHECK-NEXT:    %[[ALL:.*]] = weft.reshard %[[OUT]] : {{.*}} -> tensor<{{.*}} [{}, {}, {}, {}, {}]>>
  // CHECK-NEXT:    %[[SEEN:.*]] = weft.reorder inverse %[[ALL]] dim 1 order <4 x 2> : {{.*}} -> tensor<{{.*}} [{}, {"cp"}, {}, {}, {}]>>
  // CHECK-NEXT:    weft.observe "logits", %[[SEEN]]
  func.func @step() {
    %tokens = weft.read @tokens : tensor<4x8xi32, #ids>
    %seed = weft.read @seed : tensor<i64, #scalar>
    %table = weft.read @table : tensor<16x2xf64, #whole>
    %heads = weft.read @heads : tensor<1x2xf64, #whole>
    %c0 = arith.constant 0 : index
    %0 = weft.embedding %table[%tokens]
        : tensor<16x2xf64, #whole>[tensor<4x8xi32, #ids>] -> tensor<4x8x2xf64, #rows>
    %places = weft.iota : tensor<8xi32, #sequence>
    %1 = weft.embedding %table[%places]
        : tensor<16x2xf64, #whole>[tensor<8xi32, #sequence>] -> tensor<8x2xf64, #weft.sharding<#mesh, [{"cp"}, {}]>>
    %2 = weft.dropout %0 rate = 0.5 site = 0 key(%seed, %seed, %c0 : tensor<i64, #scalar>, tensor<i64, #scalar>)
        : tensor<4x8x2xf64, #rows> -> tensor<4x8x2xf64, #rows>
    %e = weft.contract "bsh,sh->bsh" (%2, %1)
        : (tensor<4x8x2xf64, #rows>, tensor<8x2xf64, #weft.sharding<#mesh, [{"cp"}, {}]>>) -> tensor<4x8x2xf64, #rows>
    %k = weft.contract "bsh,gh->bsgh" (%e, %heads)
        : (tensor<4x8x2xf64, #rows>, tensor<1x2xf64, #whole>) -> tensor<4x8x1x2xf64, #key>
    %q = weft.contract "bsgh,rh->bsgrh" (%k, %heads)
        : (tensor<4x8x1x2xf64, #key>, tensor<1x2xf64, #whole>) -> tensor<4x8x1x1x2xf64, #query>
    %3 = weft.call @layer(%q, %k) label "layers.0"
        : (tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>) -> tensor<4x8x1x1x2xf64, #query>
    weft.observe "logits", %3 : tensor<4x8x1x1x2xf64, #query>
    return
  }
}

// -----

// In a window all queries see as many keys: shards stay together.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x8x1x1x2xf64, #query>
  weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x8x1x2xf64, #key>
  // CHECK-LABEL: func.func @window
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @window() {
    %q = weft.read @q : tensor<4x8x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x8x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0 window = 2
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    return
  }
}

// -----

// Nor is anything to win without causality.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x8x1x1x2xf64, #query>
  weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x8x1x2xf64, #key>
  // CHECK-LABEL: func.func @bidirectional
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @bidirectional() {
    %q = weft.read @q : tensor<4x8x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x8x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0 bidirectional
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    return
  }
}

// -----

// A sequence that is whole on each rank is no more than that.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x8x1x1x2xf64, #query>
  weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x8x1x2xf64, #key>
  // CHECK-LABEL: func.func @whole
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @whole() {
    %q = weft.read @q : tensor<4x8x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x8x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    return
  }
}

// -----

// Six positions are not four equal chunks.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x6x1x1x2xf64, #query>
  weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x6x1x2xf64, #key>
  // CHECK-LABEL: func.func @indivisible
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @indivisible() {
    %q = weft.read @q : tensor<4x6x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x6x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<4x6x1x1x2xf64, #query>, tensor<4x6x1x2xf64, #key>, tensor<4x6x1x2xf64, #key>
        -> tensor<4x6x1x1x2xf64, #query>, tensor<4x1x1x6xf64, #lse>
    return
  }
}

// -----

// A parameter lies as it lies.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x8x1x1x2xf64, #query>
  weft.variable parameter @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x8x1x2xf64, #key>
  // CHECK-LABEL: func.func @parameter
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @parameter() {
    %q = weft.read @q : tensor<4x8x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x8x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    return
  }
}

// -----

// What takes positions by their numbers needs them where they are.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#every = #weft.sharding<#mesh, [{}, {}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<4x8x1x1x2xf64, #query>
  weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<4x8x1x2xf64, #key>
  // CHECK-LABEL: func.func @extracted
  // CHECK-NOT:     order
  // CHECK:         return
  func.func @extracted() {
    %q = weft.read @q : tensor<4x8x1x1x2xf64, #query>
    %k = weft.read @k : tensor<4x8x1x2xf64, #key>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<4x8x1x1x2xf64, #query>, tensor<4x8x1x2xf64, #key>, tensor<4x8x1x2xf64, #key>
        -> tensor<4x8x1x1x2xf64, #query>, tensor<4x1x1x8xf64, #lse>
    %1 = weft.reshard %0#0 : tensor<4x8x1x1x2xf64, #query> -> tensor<4x8x1x1x2xf64, #every>
    %2 = weft.extract %1 from [0, 4, 0, 0, 0] by [1, 1, 1, 1, 1]
        : tensor<4x8x1x1x2xf64, #every> -> tensor<4x4x1x1x2xf64, #every>
    weft.observe "last", %2 : tensor<4x4x1x1x2xf64, #every>
    return
  }
}
