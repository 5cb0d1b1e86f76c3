// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: "l" scope: NODE latency_seconds: 0
// RUN: weft-opt %s -split-input-file -search-shardings='machine="%{machine} bandwidth_bytes_per_second: 1e9 }"' -verify-plan | FileCheck %s
// RUN: weft-opt %s -split-input-file -search-shardings='machine="%{machine} bandwidth_bytes_per_second: 1e3 }"' -verify-plan | FileCheck %s --check-prefix=SLOW
// RUN: not weft-opt %s -split-input-file -search-shardings='machine="version: 1"' 2>&1 | FileCheck %s --check-prefix=REFUSED

// Devices compute 1 Gflop/s. Between them goes 1 GB/s, or on SLOW a millionth of that. Shardings in checks are
// those of the value that is made.

// REFUSED: search-shardings: machine:{{.*}}name

// The example of the pass's description: Megatron's MLP, since two ranks compute it in half the time;
// on slow links each computes everything.

#id = affine_map<(i, j) -> (i, j)>
#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @up ["ffn", "hidden"] : tensor<64x32xf64, #rows>
  weft.variable parameter @down ["hidden", "ffn"] : tensor<32x64xf64, #columns>
  weft.variable parameter @x ["sequence", "hidden"] : tensor<128x32xf64, #whole>

  // CHECK-LABEL: func.func @step
  // CHECK-NOT:     weft.reshard
  // CHECK:         weft.contract "sk,nk->sn"{{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-NOT:     weft.reshard
  // CHECK:         weft.map {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-NOT:     weft.reshard
  // CHECK:         %[[PARTS:.*]] = weft.contract "sn,kn->sk"{{.*}} -> tensor<{{.*}} [{}, {}], unreduced = sum{"tp"}>>
  // CHECK-NEXT:    %[[SUM:.*]] = weft.reshard %[[PARTS]] {{.*}} -> tensor<{{.*}} [{}, {}]>>
  // CHECK-NEXT:    weft.assign @x, %[[SUM]]
  // SLOW-LABEL: func.func @step
  // SLOW-NOT:     unreduced
  func.func @step() {
    %x = weft.read @x : tensor<128x32xf64>
    %up = weft.read @up : tensor<64x32xf64>
    %down = weft.read @down : tensor<32x64xf64>
    %h = weft.contract "sk,nk->sn"(%x, %up)
        : (tensor<128x32xf64>, tensor<64x32xf64>) -> tensor<128x64xf64>
    %e = weft.map ins(%h : tensor<128x64xf64>) maps [#id] -> tensor<128x64xf64> {
    ^bb0(%s: f64):
      %t = math.exp %s : f64
      weft.yield %t : f64
    }
    %y = weft.contract "sn,kn->sk"(%e, %down)
        : (tensor<128x64xf64>, tensor<32x64xf64>) -> tensor<128x32xf64>
    weft.assign @x, %y : tensor<128x32xf64>
    return
  }
}

// -----

// What three products share is gathered once, at the border of a layer that is called twice.

#mesh = #weft.mesh<"tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @q ["ffn", "hidden"] : tensor<256x64xf64, #rows>
  weft.variable parameter @k ["ffn", "hidden"] : tensor<256x64xf64, #rows>
  weft.variable parameter @v ["ffn", "hidden"] : tensor<256x64xf64, #rows>
  weft.variable input @x ["sequence", "hidden"] : tensor<64x64xf64, #rows>

  // CHECK-LABEL: func.func private @layer
  // CHECK-SAME:      %[[X:arg0]]: tensor<64x64xf64, {{.*}}[{}, {}]>>
  // CHECK-NOT:     weft.reshard
  // CHECK:         weft.contract "sk,nk->sn"(%[[X]], {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-NEXT:    weft.contract "sk,nk->sn"(%[[X]], {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-NEXT:    weft.contract "sk,nk->sn"(%[[X]], {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-LABEL: func.func @step
  // CHECK:         weft.reshard
  // CHECK-NOT:     weft.reshard
  func.func private @layer(%x: tensor<64x64xf64>, %q: tensor<256x64xf64>, %k: tensor<256x64xf64>,
                           %v: tensor<256x64xf64>)
      -> (tensor<64x256xf64>, tensor<64x256xf64>, tensor<64x256xf64>) {
    %0 = weft.contract "sk,nk->sn"(%x, %q)
        : (tensor<64x64xf64>, tensor<256x64xf64>) -> tensor<64x256xf64>
    %1 = weft.contract "sk,nk->sn"(%x, %k)
        : (tensor<64x64xf64>, tensor<256x64xf64>) -> tensor<64x256xf64>
    %2 = weft.contract "sk,nk->sn"(%x, %v)
        : (tensor<64x64xf64>, tensor<256x64xf64>) -> tensor<64x256xf64>
    return %0, %1, %2 : tensor<64x256xf64>, tensor<64x256xf64>, tensor<64x256xf64>
  }
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf64>
    %q = weft.read @q : tensor<256x64xf64>
    %k = weft.read @k : tensor<256x64xf64>
    %v = weft.read @v : tensor<256x64xf64>
    %0:3 = weft.call @layer(%x, %q, %k, %v) label "layers.0"
        : (tensor<64x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>)
        -> (tensor<64x256xf64>, tensor<64x256xf64>, tensor<64x256xf64>)
    weft.observe "q", %0#0 : tensor<64x256xf64>
    weft.observe "k", %0#1 : tensor<64x256xf64>
    weft.observe "v", %0#2 : tensor<64x256xf64>
    %1:3 = weft.call @layer(%x, %q, %k, %v) label "layers.1"
        : (tensor<64x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>)
        -> (tensor<64x256xf64>, tensor<64x256xf64>, tensor<64x256xf64>)
    return
  }
}

// -----

// Attention of a sequence that lies in two pieces, and its derivative. Whole keys are gathered once
// for both, and their gradients scattered; round a ring keys would go twice, and their gradients
// home besides. If what goes round cost nothing, it would be chosen.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<1x64x1x1x16xf64, #query>
  weft.variable parameter @k ["batch", "sequence", "kv_heads", "head"] : tensor<1x64x1x16xf64, #key>

  // CHECK-LABEL: func.func @step
  // CHECK:         %[[K:.*]] = weft.read @k
  // CHECK:         %[[WHOLE:.*]] = weft.reshard %[[K]] : {{.*}} -> tensor<{{.*}} [{}, {}, {}, {}]>>
  // CHECK:         weft.attention({{.*}}, %[[WHOLE]], %[[WHOLE]]) {{.*}} : tensor<{{.*}} [{}, {"cp"}, {}, {}, {}]>>,
  // CHECK:         weft.attention_grad({{.*}}, %[[WHOLE]], %[[WHOLE]]) {{.*}} unreduced = sum{"cp"}>>
  // SLOW-LABEL: func.func @step
  func.func @step() {
    %q = weft.read @q : tensor<1x64x1x1x16xf64>
    %k = weft.read @k : tensor<1x64x1x16xf64>
    %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
        : tensor<1x64x1x1x16xf64>, tensor<1x64x1x16xf64>, tensor<1x64x1x16xf64>
        -> tensor<1x64x1x1x16xf64>, tensor<1x1x1x64xf64>
    %1:3 = weft.attention_grad(%q, %k, %k) output(%0#0, %0#1) gradient(%q) scale = 1.0 dropout = 0.0
        : tensor<1x64x1x1x16xf64>, tensor<1x64x1x16xf64>, tensor<1x64x1x16xf64>,
          tensor<1x64x1x1x16xf64>, tensor<1x1x1x64xf64>, tensor<1x64x1x1x16xf64>
        -> tensor<1x64x1x1x16xf64>, tensor<1x64x1x16xf64>, tensor<1x64x1x16xf64>
    weft.assign @q, %1#0 : tensor<1x64x1x1x16xf64>
    weft.assign @k, %1#1 : tensor<1x64x1x16xf64>
    return
  }
}
