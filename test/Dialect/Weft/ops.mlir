// RUN: weft-opt %s -verify-roundtrip | FileCheck %s

// Every op, as it prints.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#none = affine_map<(i, j) -> ()>

// CHECK: weft.variable parameter @head.weight ["vocab", "hidden"] decay : tensor<256x128xf32>
weft.variable parameter @head.weight ["vocab", "hidden"] decay : tensor<256x128xf32>
// CHECK: weft.variable parameter @head.bias ["vocab"] : tensor<256xf32>
weft.variable parameter @head.bias ["vocab"] : tensor<256xf32>
// CHECK: weft.variable optimizer @"momentum/head.bias" ["vocab"] : tensor<256xf32>
weft.variable optimizer @"momentum/head.bias" ["vocab"] : tensor<256xf32>
// CHECK: weft.variable statistic @running_mean ["channels"] : tensor<8xf32>
weft.variable statistic @running_mean ["channels"] : tensor<8xf32>
// CHECK: weft.variable input @tokens ["batch", "sequence"] : tensor<?x16xi32>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x16xi32>
// CHECK: weft.variable input @seed [] : tensor<i64>
weft.variable input @seed [] : tensor<i64>

// CHECK: weft.optimizer sgd learning_rate 1.000000e-01 decay constant warmup 0 steps 1 final 0.000000e+00
weft.optimizer sgd learning_rate 1.0e-1 decay constant warmup 0 steps 1 final 0.0
// CHECK: weft.optimizer adamw learning_rate 1.000000e-03 decay cosine warmup 2 steps 10 final 1.000000e-01
// CHECK-SAME: {beta1 = 8.000000e-01 : f64, beta2 = {{.*}}, clip = 1.000000e+00 : f64, epsilon = {{.*}}, weight_decay = {{.*}}}
weft.optimizer adamw learning_rate 1.0e-3 decay cosine warmup 2 steps 10 final 0.1
    {beta1 = 0.8, beta2 = 0.95, epsilon = 1.0e-6, weight_decay = 0.01, clip = 1.0}

// CHECK-LABEL: @read_and_assign
func.func @read_and_assign() {
  // CHECK: %[[B:.*]] = weft.read @head.bias : tensor<256xf32>
  %b = weft.read @head.bias : tensor<256xf32>
  // CHECK: weft.assign @head.bias, %[[B]] : tensor<256xf32>
  weft.assign @head.bias, %b : tensor<256xf32>
  return
}

// CHECK-LABEL: @constrain
func.func @constrain(%x: tensor<?x4x8xf32>) {
  // CHECK: weft.constrain %{{.*}} {{\[\["dp"\], unit, \[\]\]}} : tensor<?x4x8xf32>
  %0 = weft.constrain %x [["dp"], unit, []] priority 0 : tensor<?x4x8xf32>
  // CHECK: weft.constrain %{{.*}} {{\[unit, \["tp", "cp"\], unit\]}} priority 3 : tensor<?x4x8xf32>
  %1 = weft.constrain %x [unit, ["tp", "cp"], unit] priority 3 : tensor<?x4x8xf32>
  return
}

// CHECK-LABEL: @send_and_receive
func.func @send_and_receive(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: weft.send %{{.*}} to 1 number 3 : tensor<2x4xf32>
  weft.send %x to 1 number 3 : tensor<2x4xf32>
  // CHECK: weft.receive from 0 number 4 : tensor<2x4xf32>
  %0 = weft.receive from 0 number 4 : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @transfer
func.func @transfer(%x: tensor<?x4xf32>, %ids: tensor<8xi32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>) {
  // CHECK: weft.transfer %{{.*}} from 0 to 2 : tensor<?x4xf32>
  %0 = weft.transfer %x from 0 to 2 : tensor<?x4xf32>
  // CHECK: weft.transfer %{{.*}} from 1 to 0 : tensor<8xi32, #weft.sharding<#mesh, [{"tp"}]>>
  %1 = weft.transfer %ids from 1 to 0 : tensor<8xi32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>
  return
}

// CHECK-LABEL: @observe
func.func @observe(%x: tensor<f32>, %loads: tensor<4x8xf32>) {
  // CHECK: weft.observe "loss", %{{.*}} : tensor<f32>
  weft.observe "loss", %x : tensor<f32>
  // CHECK: weft.observe "load/layers.1", %{{.*}} limit 5.000000e+00 mean 4.000000e+00 : tensor<4x8xf32>
  weft.observe "load/layers.1", %loads limit 5.0 mean 4.0 : tensor<4x8xf32>
  // CHECK: weft.observe "loss", %{{.*}} layout tensor<f32, #weft.sharding<#mesh, []>> : tensor<f32>
  weft.observe "loss", %x layout tensor<f32, #weft.sharding<#weft.mesh<"tp"=2>, []>>
      : tensor<f32>
  return
}

func.func private @layer(index, tensor<4xf32>) -> tensor<4xf32>

// CHECK-LABEL: @call
func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: weft.call @layer(%{{.*}}, %{{.*}}) label "layers.0" : (index, tensor<4xf32>) -> tensor<4xf32>
  %0 = weft.call @layer(%c0, %x) label "layers.0" : (index, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @launch
func.func @launch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: weft.launch @layer(%{{.*}}, %{{.*}}) tied [1] : (index, tensor<4xf32>) -> tensor<4xf32>
  %0 = weft.launch @layer(%c0, %x) tied [1] : (index, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: weft.launch @layer(%{{.*}}, %{{.*}}) tied [-1] : (index, tensor<4xf32>) -> tensor<4xf32>
  %1 = weft.launch @layer(%c0, %0) tied [-1] : (index, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The example of the op's description.
// CHECK-LABEL: @map
func.func @map(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  // CHECK: %{{.*}} = weft.map ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16xf32>)
  // CHECK-SAME: maps [{{.*}}] -> tensor<8x16xf32> {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[B]] : f32
  // CHECK-NEXT: weft.yield %[[Y]] : f32
  // CHECK-NEXT: }
  %y = weft.map ins(%x, %b : tensor<8x16xf32>, tensor<16xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x16xf32> {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    weft.yield %2 : f32
  }
  return %y : tensor<8x16xf32>
}

// CHECK-LABEL: @map_without_operands
func.func @map_without_operands() -> tensor<f64> {
  // CHECK: weft.map maps [] -> tensor<f64> {
  %0 = weft.map maps [] -> tensor<f64> {
    %c = arith.constant 1.0 : f64
    weft.yield %c : f64
  }
  return %0 : tensor<f64>
}

// CHECK-LABEL: @map_with_two_results
func.func @map_with_two_results(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf64>) {
  // CHECK: %{{.*}}:2 = weft.map ins(%{{.*}} : tensor<?x4xf32>) maps [#{{.*}}] -> tensor<?x4xf32>, tensor<?x4xf64> {
  %0:2 = weft.map ins(%x : tensor<?x4xf32>) maps [#id] -> tensor<?x4xf32>, tensor<?x4xf64> {
  ^bb0(%a: f32):
    %b = arith.extf %a : f32 to f64
    weft.yield %a, %b : f32, f64
  }
  return %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xf64>
}

// CHECK-LABEL: @contract
func.func @contract(%x: tensor<?x4x8xf32>, %w: tensor<16x8xf32>) -> tensor<16xf32> {
  // CHECK: weft.contract "bsk,nk->bsn"(%{{.*}}, %{{.*}}) : (tensor<?x4x8xf32>, tensor<16x8xf32>) -> tensor<?x4x16xf32>
  %0 = weft.contract "bsk,nk->bsn" (%x, %w)
      : (tensor<?x4x8xf32>, tensor<16x8xf32>) -> tensor<?x4x16xf32>
  // CHECK: weft.contract "bsn->n"(%{{.*}}) : (tensor<?x4x16xf32>) -> tensor<16xf32>
  %1 = weft.contract "bsn->n" (%0) : (tensor<?x4x16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// CHECK-LABEL: @iota
func.func @iota(%i: index) {
  // CHECK: weft.iota : tensor<8xi32>
  %0 = weft.iota : tensor<8xi32>
  // CHECK: weft.iota offset %{{.*}} : tensor<2xi32>
  %1 = weft.iota offset %i : tensor<2xi32>
  return
}

// CHECK-LABEL: @fill
func.func @fill(%seed: tensor<i64>, %i: index) {
  // CHECK: weft.fill constant 1.000000e+00 : tensor<4xf32>
  %0 = weft.fill constant 1.0 : tensor<4xf32>
  // CHECK: weft.fill normal 5.000000e-01 seed(%{{.*}} : tensor<i64>) stream(%{{.*}}) : tensor<4x2xf32>
  %1 = weft.fill normal 0.5 seed(%seed : tensor<i64>) stream(%i) : tensor<4x2xf32>
  // CHECK: weft.fill normal 1.000000e+00 seed(%{{.*}} : tensor<i64>) stream(%{{.*}}) deviation(%{{.*}}) : tensor<4x2xf32>
  %kernel = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%i) deviation(%i) : tensor<4x2xf32>
  // CHECK: weft.fill normal 5.000000e-01 seed(%{{.*}} : tensor<i64>) stream(%{{.*}}) offsets(%{{.*}}, %{{.*}}) of [8, 2] : tensor<4x2xf32>
  %2 = weft.fill normal 0.5 seed(%seed : tensor<i64>) stream(%i) offsets(%i, %i) of [8, 2]
      : tensor<4x2xf32>
  return
}

// CHECK-LABEL: @norm
func.func @norm(%x: tensor<?x4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) {
  // CHECK: weft.norm layer %{{.*}} scale(%{{.*}} : tensor<8xf32>) bias(%{{.*}} : tensor<8xf32>) epsilon = 1.000000e-05 : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  %0 = weft.norm layer %x scale(%s : tensor<8xf32>) bias(%b : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  // CHECK: weft.norm rms %{{.*}} scale(%{{.*}} : tensor<8xf32>) epsilon = 1.000000e-05 : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  %1 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  // CHECK: weft.norm_grad layer %{{.*}} scale(%{{.*}} : tensor<8xf32>) gradient(%{{.*}} : tensor<?x4x8xf32>) epsilon = 1.000000e-05
  // CHECK-SAME: : tensor<?x4x8xf32> -> tensor<?x4x8xf32>, tensor<8xf32>, tensor<8xf32>
  %2:3 = weft.norm_grad layer %x scale(%s : tensor<8xf32>) gradient(%0 : tensor<?x4x8xf32>)
      epsilon = 1.0e-5 : tensor<?x4x8xf32> -> tensor<?x4x8xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK: weft.norm_grad rms
  // CHECK-SAME: : tensor<?x4x8xf32> -> tensor<?x4x8xf32>, tensor<8xf32>
  %3:2 = weft.norm_grad rms %x scale(%s : tensor<8xf32>) gradient(%1 : tensor<?x4x8xf32>)
      epsilon = 1.0e-5 : tensor<?x4x8xf32> -> tensor<?x4x8xf32>, tensor<8xf32>
  return
}

// CHECK-LABEL: @rotary
func.func @rotary(%x: tensor<?x4x2x8xf32>, %i: index) {
  // CHECK: weft.rotary_table [1.000000e+00, 1.000000e-01] : tensor<2x4x2xf32>
  %0 = weft.rotary_table [1.0, 0.1] : tensor<2x4x2xf32>
  // CHECK: weft.rotary_table [1.000000e+00, 1.000000e-01] offset %{{.*}} : tensor<2x4x2xf32>
  %1 = weft.rotary_table [1.0, 0.1] offset %i : tensor<2x4x2xf32>
  // CHECK: weft.rotary %{{.*}} table(%{{.*}} : tensor<2x4x2xf32>) : tensor<?x4x2x8xf32> -> tensor<?x4x2x8xf32>
  %2 = weft.rotary %x table(%0 : tensor<2x4x2xf32>) : tensor<?x4x2x8xf32> -> tensor<?x4x2x8xf32>
  // CHECK: weft.rotary inverse %{{.*}} table(%{{.*}} : tensor<2x4x2xf32>) : tensor<?x4x2x8xf32> -> tensor<?x4x2x8xf32>
  %3 = weft.rotary inverse %2 table(%0 : tensor<2x4x2xf32>)
      : tensor<?x4x2x8xf32> -> tensor<?x4x2x8xf32>
  return
}

// CHECK-LABEL: @quantize
func.func @quantize(%x: tensor<?x4xf32>, %w: tensor<3x4xf32>) {
  // CHECK: %[[AMAX:.*]] = weft.amax %{{.*}} : tensor<?x4xf32> -> tensor<f32>
  %0 = weft.amax %x : tensor<?x4xf32> -> tensor<f32>
  // CHECK: weft.amax %{{.*}} {history = #weft.history<"x" of 16>} :
  %h = weft.amax %x {history = #weft.history<"x" of 16>} : tensor<?x4xf32> -> tensor<f32>
  // CHECK: weft.quantize e4m3 %{{.*}} by %[[AMAX]] : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xbf16>
  %1 = weft.quantize e4m3 %x by %0 : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xbf16>
  // CHECK: weft.quantize e5m2 %{{.*}} by %{{.*}} : tensor<?x4xbf16>, tensor<f32> -> tensor<?x4xbf16>
  %2 = weft.quantize e5m2 %1 by %0 : tensor<?x4xbf16>, tensor<f32> -> tensor<?x4xbf16>
  // CHECK: weft.contract "bk,nk->bn"(%{{.*}}, %{{.*}}) gradient e5m2 : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x3xf32>
  %3 = weft.contract "bk,nk->bn" (%x, %w) gradient e5m2
      : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x3xf32>
  return
}

// CHECK-LABEL: @fp8
func.func @fp8(%x: tensor<16x32xf32>, %w: tensor<16x32xbf16>, %m: tensor<f32>,
                      %r: tensor<16x16xbf16>, %b: tensor<16xbf16>) {
  // CHECK: %[[X:.*]], %[[F:.*]] = weft.encode e4m3 %{{.*}} by %{{.*}} lead 0 : tensor<16x32xf32> -> rows tensor<16x32xf8E4M3FN>
  %0, %f = weft.encode e4m3 %x by %m lead 0 : tensor<16x32xf32> -> rows tensor<16x32xf8E4M3FN>
  // CHECK: %[[W:.*]], %[[T:.*]], %[[G:.*]] = weft.encode e5m2 %{{.*}} by %{{.*}} lead 1 : tensor<16x32xbf16> -> rows tensor<16x32xf8E5M2> turned tensor<32x16xf8E5M2>
  %1, %t, %g = weft.encode e5m2 %w by %m lead 1
      : tensor<16x32xbf16> -> rows tensor<16x32xf8E5M2> turned tensor<32x16xf8E5M2>
  // CHECK: weft.fp8_matmul "bk,nk->bn"(%[[X]], %[[W]]) factors(%[[F]], %[[G]]) plus %{{.*}} : tensor<16x16xbf16> bias %{{.*}} : tensor<16xbf16> : tensor<16x32xf8E4M3FN>, tensor<16x32xf8E5M2> -> tensor<16x16xbf16>
  %2 = weft.fp8_matmul "bk,nk->bn"(%0, %1) factors(%f, %g) plus %r : tensor<16x16xbf16>
      bias %b : tensor<16xbf16>
      : tensor<16x32xf8E4M3FN>, tensor<16x32xf8E5M2> -> tensor<16x16xbf16>
  return
}

// CHECK-LABEL: @embedding
func.func @embedding(%t: tensor<32x8xf32>, %ids: tensor<?x4xi32>, %i: index) {
  // CHECK: weft.embedding %{{.*}}[%{{.*}}] : tensor<32x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>
  %0 = weft.embedding %t[%ids] : tensor<32x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>
  // CHECK: weft.embedding %{{.*}}[%{{.*}}] offset %{{.*}} : tensor<32x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>
  %1 = weft.embedding %t[%ids] offset %i : tensor<32x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>
  // CHECK: weft.embedding_grad %{{.*}}[%{{.*}}] : tensor<?x4x8xf32>[tensor<?x4xi32>] -> tensor<32x8xf32>
  %2 = weft.embedding_grad %0[%ids] : tensor<?x4x8xf32>[tensor<?x4xi32>] -> tensor<32x8xf32>
  // CHECK: weft.embedding_grad %{{.*}}[%{{.*}}] offset %{{.*}} : tensor<?x4x8xf32>[tensor<?x4xi32>] -> tensor<32x8xf32>
  %3 = weft.embedding_grad %0[%ids] offset %i
      : tensor<?x4x8xf32>[tensor<?x4xi32>] -> tensor<32x8xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                     %v: tensor<2x4x2x8xf32>) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00
  // CHECK-SAME: : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32> -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  %0:2 = weft.attention(%q, %k, %v) scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad(%{{.*}}, %{{.*}}, %{{.*}}) output(%{{.*}}, %{{.*}}) gradient(%{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00 :
  %1:3 = weft.attention_grad(%q, %k, %v) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.0
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// CHECK-LABEL: @attention_bidirectional
func.func @attention_bidirectional(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00 bidirectional :
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 bidirectional
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad
  // CHECK-SAME: dropout = 0.000000e+00 bidirectional :
  %1:3 = weft.attention_grad(%q, %k, %k) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.0 bidirectional
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// CHECK-LABEL: @attention_window
func.func @attention_window(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                            %v: tensor<2x4x2x8xf32>) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00 window = 3 :
  %0:2 = weft.attention(%q, %k, %v) scale = 0.5 dropout = 0.0 window = 3
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad
  // CHECK-SAME: dropout = 0.000000e+00 window = 3 :
  %1:3 = weft.attention_grad(%q, %k, %v) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.0 window = 3
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// CHECK-LABEL: @attention_documents
func.func @attention_documents(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                               %s: tensor<2x4xi32>) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00 starts(%{{.*}} : tensor<2x4xi32>) :
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 starts(%s : tensor<2x4xi32>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad
  // CHECK-SAME: window = 3 starts(%{{.*}} : tensor<2x4xi32>) :
  %1:3 = weft.attention_grad(%q, %k, %k) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.0 window = 3 starts(%s : tensor<2x4xi32>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

#cp = #weft.mesh<"cp"=2>

// CHECK-LABEL: @attention_shards
func.func @attention_shards(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %i: index) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 0.000000e+00 offsets(%{{.*}}, %{{.*}}) of [8, 8] turn %{{.*}} :
  %0:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 offsets(%i, %i) of [8, 8] turn %i
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad
  // CHECK-SAME: offsets(%{{.*}}, %{{.*}}) of [8, 8] over ["cp"] of #{{mesh[0-9]*}} :
  %1:3 = weft.attention_grad(%q, %k, %k) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.0 offsets(%i, %i) of [8, 8] over ["cp"] of #cp
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// CHECK-LABEL: @order
func.func @order(%q: tensor<2x8x2x3x4xf32>, %k: tensor<2x8x2x4xf32>, %ids: tensor<2x8xi32>,
                 %s: tensor<i64>, %l: index) {
  // CHECK: weft.reorder %{{.*}} dim 1 order <4 x 2> : tensor<2x8xi32> -> tensor<2x8xi32>
  %0 = weft.reorder %ids dim 1 order <4 x 2> : tensor<2x8xi32> -> tensor<2x8xi32>
  // CHECK: weft.reorder inverse %{{.*}} dim 1 order <4 x 2> offset %{{.*}} : tensor<2x8xi32> -> tensor<2x4xi32>
  %1 = weft.reorder inverse %0 dim 1 order <4 x 2> offset %l : tensor<2x8xi32> -> tensor<2x4xi32>
  // CHECK: weft.attention({{.*}} order <4 x 2> :
  %2:2 = weft.attention(%q, %k, %k) scale = 0.5 dropout = 0.0 order <4 x 2>
      : tensor<2x8x2x3x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>
      -> tensor<2x8x2x3x4xf32>, tensor<2x2x3x8xf32>
  // CHECK: weft.dropout {{.*}} order <4 x 2> dim 1 :
  %3 = weft.dropout %k rate = 0.5 site = 1 key(%s, %s, %l : tensor<i64>, tensor<i64>)
      order <4 x 2> dim 1 : tensor<2x8x2x4xf32> -> tensor<2x8x2x4xf32>
  return
}

// CHECK-LABEL: @attention_dropout
func.func @attention_dropout(%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>,
                             %v: tensor<2x4x2x8xf32>, %seed: tensor<i64>, %layer: index) {
  // CHECK: weft.attention(%{{.*}}, %{{.*}}, %{{.*}}) scale = 5.000000e-01 dropout = 1.000000e-01
  // CHECK-SAME: key(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>) :
  %0:2 = weft.attention(%q, %k, %v) scale = 0.5 dropout = 0.1
      key(%seed, %seed, %layer : tensor<i64>, tensor<i64>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>
  // CHECK: weft.attention_grad
  // CHECK-SAME: key(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>) :
  %1:3 = weft.attention_grad(%q, %k, %v) output(%0#0, %0#1) gradient(%0#0)
      scale = 0.5 dropout = 0.1 key(%seed, %seed, %layer : tensor<i64>, tensor<i64>)
      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x3x8xf32>,
        tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
  return
}

// CHECK-LABEL: @cross_entropy
func.func @cross_entropy(%x: tensor<?x4x32xf32>, %t: tensor<?x4xi32>, %i: index) {
  // CHECK: weft.cross_entropy %{{.*}}[%{{.*}}] : tensor<?x4x32xf32>[tensor<?x4xi32>] -> tensor<?x4xf32>, tensor<?x4xf32>
  %0:2 = weft.cross_entropy %x[%t]
      : tensor<?x4x32xf32>[tensor<?x4xi32>] -> tensor<?x4xf32>, tensor<?x4xf32>
  // CHECK: weft.cross_entropy %{{.*}}[%{{.*}}] offset %{{.*}} :
  %1:2 = weft.cross_entropy %x[%t] offset %i
      : tensor<?x4x32xf32>[tensor<?x4xi32>] -> tensor<?x4xf32>, tensor<?x4xf32>
  // CHECK: weft.cross_entropy_grad %{{.*}}[%{{.*}}] lse(%{{.*}}) gradient(%{{.*}}, %{{.*}})
  // CHECK-SAME: : tensor<?x4x32xf32>[tensor<?x4xi32>], tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4x32xf32>
  %2 = weft.cross_entropy_grad %x[%t] lse(%0#0) gradient(%1#0, %1#1)
      : tensor<?x4x32xf32>[tensor<?x4xi32>], tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
      -> tensor<?x4x32xf32>
  // CHECK: weft.cross_entropy_grad %{{.*}}[%{{.*}}] lse(%{{.*}}) gradient(%{{.*}}, %{{.*}}) offset %{{.*}} :
  %3 = weft.cross_entropy_grad %x[%t] lse(%0#0) gradient(%1#0, %1#1) offset %i
      : tensor<?x4x32xf32>[tensor<?x4xi32>], tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
      -> tensor<?x4x32xf32>
  return
}

// CHECK-LABEL: @dropout
func.func @dropout(%x: tensor<2x8xf32>, %seed: tensor<i64>, %i: index) {
  // CHECK: weft.dropout %{{.*}} rate = 1.000000e-01 site = 1 key(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>) : tensor<2x8xf32> -> tensor<2x8xf32>
  %0 = weft.dropout %x rate = 0.1 site = 1 key(%seed, %seed, %i : tensor<i64>, tensor<i64>)
      : tensor<2x8xf32> -> tensor<2x8xf32>
  // CHECK: weft.dropout %{{.*}} rate = 1.000000e-01 site = 1 key(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>) offsets(%{{.*}}, %{{.*}}) of [4, 8] : tensor<2x8xf32> -> tensor<2x8xf32>
  %1 = weft.dropout %x rate = 0.1 site = 1 key(%seed, %seed, %i : tensor<i64>, tensor<i64>)
      offsets(%i, %i) of [4, 8] : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}
