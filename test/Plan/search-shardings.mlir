// DEFINE: %{machine} = version: 1 name: "m" devices_per_node: 2 device { name: "d" peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e12 } links { name: "l" scope: NODE latency_seconds: 0
// RUN: weft-opt %s -split-input-file -search-shardings='machine="%{machine} bandwidth_bytes_per_second: 1e9 }"' -verify-plan | FileCheck %s
// RUN: weft-opt %s -split-input-file -search-shardings='machine="%{machine} bandwidth_bytes_per_second: 1e3 }"' -verify-plan | FileCheck %s --check-prefix=SLOW

// Devices compute 1 Gflop/s. Between them goes 1 GB/s, or on SLOW a millionth of that. Shardings in checks are
// those of the value that is made.

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
  // SLOW:         weft.assign @x
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

// What three matmuls share is gathered once, at the border of a layer that is called twice.

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
    %1:3 = weft.call @layer(%x, %q, %k, %v) label "layers.1"
        : (tensor<64x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>, tensor<256x64xf64>)
        -> (tensor<64x256xf64>, tensor<64x256xf64>, tensor<64x256xf64>)
    weft.observe "q", %0#0 : tensor<64x256xf64>
    weft.observe "k", %1#1 : tensor<64x256xf64>
    return
  }
}

// -----

// Pins hold, although both ranks would be faster with halves of the sequence: n is cut by tp, and so
// is the variable. What is not pinned follows.

#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn", "hidden"] {weft.pins = [["tp"], unit]} : tensor<64x32xf64>
  weft.variable input @x ["sequence", "hidden"] : tensor<128x32xf64>

  // CHECK-LABEL: module attributes
  // CHECK:       @w ["ffn", "hidden"] : tensor<64x32xf64, {{.*}}[{"tp"}, {}]>>
  // CHECK:       weft.contract "sk,nk->sn"{{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
  // CHECK-NOT:   weft.pins
  func.func @step() {
    %x = weft.read @x : tensor<128x32xf64>
    %w = weft.read @w : tensor<64x32xf64>
    %y = weft.contract "sk,nk->sn"(%x, %w) {weft.pins = [unit, unit, ["tp"]]}
        : (tensor<128x32xf64>, tensor<64x32xf64>) -> tensor<128x64xf64>
    weft.observe "y", %y : tensor<128x64xf64>
    return
  }
}

// -----

// A weight's gradient is pending over the axis of the batch, through sums, and is scattered where the
// weight and its state lie in parts, which is no slower than whole; the new weight is gathered.

#id = affine_map<(i, j) -> (i, j)>
#mesh = #weft.mesh<"dp"=2>
#batch = #weft.sharding<#mesh, [{"dp"}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["hidden", "ffn"] {weft.pins = [[], []]} : tensor<64x32xf64>
  weft.variable optimizer @"m/w" ["hidden", "ffn"] : tensor<64x32xf64>
  weft.variable input @x ["batch", "ffn"] : tensor<512x32xf64, #batch>
  weft.variable input @dy ["batch", "hidden"] : tensor<512x64xf64, #batch>

  // CHECK-LABEL: module attributes
  // CHECK:       @"m/w" {{.*}} : tensor<64x32xf64, {{.*}}[{"dp"}, {}]>>
  // CHECK:       %[[G:.*]] = weft.contract "bn,bk->nk"{{.*}} unreduced = sum{"dp"}>>
  // CHECK-NEXT:  %[[H:.*]] = weft.contract "bn,bk->nk"{{.*}} unreduced = sum{"dp"}>>
  // CHECK-NEXT:  %[[GG:.*]] = weft.map ins(%[[G]], %[[H]] {{.*}} unreduced = sum{"dp"}>>
  // CHECK:       weft.reshard %[[GG]] : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
  func.func @step() {
    %x = weft.read @x : tensor<512x32xf64>
    %dy = weft.read @dy : tensor<512x64xf64>
    %m = weft.read @"m/w" : tensor<64x32xf64>
    %g = weft.contract "bn,bk->nk"(%dy, %x)
        : (tensor<512x64xf64>, tensor<512x32xf64>) -> tensor<64x32xf64>
    %h = weft.contract "bn,bk->nk"(%dy, %x)
        : (tensor<512x64xf64>, tensor<512x32xf64>) -> tensor<64x32xf64>
    %gg = weft.map ins(%g, %h : tensor<64x32xf64>, tensor<64x32xf64>) maps [#id, #id] -> tensor<64x32xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    %n = weft.map ins(%gg, %m : tensor<64x32xf64>, tensor<64x32xf64>) maps [#id, #id] -> tensor<64x32xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.mulf %a, %b : f64
      weft.yield %c : f64
    }
    weft.assign @"m/w", %n : tensor<64x32xf64>
    weft.assign @w, %n : tensor<64x32xf64>
    return
  }
}

// -----

// What the step has decided of a function holds for others that call it, although no argument of it could
// tell that it was decided.

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  weft.variable parameter @w ["ffn", "hidden"] : tensor<256x64xf64>

  // CHECK-LABEL: func.func private @square
  // CHECK-SAME:      -> tensor<256x256xf64, [[$RESULT:.*]]> {
  // CHECK:         weft.reshard
  // CHECK-NOT:     weft.reshard
  // CHECK-LABEL: func.func @evaluate
  // CHECK:         weft.call @square() label "" : () -> tensor<256x256xf64, [[$RESULT]]>
  // CHECK-LABEL: func.func @step
  // CHECK:         weft.call @square() label "" : () -> tensor<256x256xf64, [[$RESULT]]>
  func.func private @square() -> tensor<256x256xf64> {
    %w = weft.read @w : tensor<256x64xf64>
    %0 = weft.contract "nk,mk->nm"(%w, %w)
        : (tensor<256x64xf64>, tensor<256x64xf64>) -> tensor<256x256xf64>
    return %0 : tensor<256x256xf64>
  }
  func.func @evaluate() {
    %0 = weft.call @square() label "" : () -> tensor<256x256xf64>
    weft.observe "evaluated", %0 : tensor<256x256xf64>
    return
  }
  func.func @step() {
    %0 = weft.call @square() label "" : () -> tensor<256x256xf64>
    weft.observe "square", %0 : tensor<256x256xf64>
    return
  }
}

// -----

// A variable of 1.5 GiB does not fit into a device of 1 GiB, so that it lies in parts and is gathered in
// every step.

#id = affine_map<(i) -> (i)>
#mesh = #weft.mesh<"dp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["hidden"] : tensor<201326592xf64>

  // CHECK-LABEL: module attributes
  // CHECK:       @w ["hidden"] : tensor<201326592xf64, {{.*}}[{"dp"}]>>
  func.func @step() {
    %w = weft.read @w : tensor<201326592xf64>
    %s = weft.map ins(%w : tensor<201326592xf64>) maps [#id] -> tensor<201326592xf64> {
    ^bb0(%a: f64):
      %c = math.exp %a : f64
      weft.yield %c : f64
    }
    weft.assign @w, %s : tensor<201326592xf64>
    return
  }
}

// -----

// Attention of a sequence that lies in two shards, and its derivative. Whole keys are gathered once
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
