// RUN: weft-opt %s -split-input-file -localize | FileCheck %s

// The example of the pass's description, for four ranks.

#mesh = #weft.mesh<"cp"=4>

// CHECK-LABEL: func.func @description() -> tensor<2xi32>
// CHECK-NEXT:    %[[RANK:.*]] = weft.axis_index "cp" of #mesh
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[RANK]], %[[LENGTH]] : index
// CHECK-NEXT:    %[[IOTA:.*]] = weft.iota offset %[[OFFSET]] : tensor<2xi32>
// CHECK-NEXT:    return %[[IOTA]] : tensor<2xi32>
func.func @description() -> tensor<8xi32, #weft.sharding<#mesh, [{"cp"}]>> {
  %1 = weft.iota : tensor<8xi32, #weft.sharding<#mesh, [{"cp"}]>>
  return %1 : tensor<8xi32, #weft.sharding<#mesh, [{"cp"}]>>
}

// -----

// A rank's number in a group of two axes: the first axis is major.

#mesh = #weft.mesh<"dp"=2, "tp"=3>

// CHECK-LABEL: func.func @two_axes
// CHECK-NEXT:    %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[DP:.*]] = weft.axis_index "dp"
// CHECK-NEXT:    %[[SIZE:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[MAJOR:.*]] = arith.muli %[[TP]], %[[SIZE]]
// CHECK-NEXT:    %[[SHARD:.*]] = arith.addi %[[MAJOR]], %[[DP]]
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[SHARD]], %[[LENGTH]]
// CHECK-NEXT:    weft.iota offset %[[OFFSET]] : tensor<4xi32>
func.func @two_axes() {
  %0 = weft.iota : tensor<24xi32, #weft.sharding<#mesh, [{"tp", "dp"}]>>
  return
}

// -----

// Variables keep the whole type, reads and assignments have the shard, observations remember the
// whole. What is not cut needs no offset.

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}, {}]>
#whole = #weft.sharding<#mesh, [{}]>
// CHECK: weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {}]>>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64, #cut>

// CHECK-LABEL: func.func @types
// CHECK-NEXT:    %[[W:.*]] = weft.read @w : tensor<4x4xf64>
// CHECK-NEXT:    %[[L:.*]] = weft.call @layer(%[[W]]) label "" : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT:    weft.observe "gradient/w", %[[L]] layout tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {}]>> : tensor<4x4xf64>
// CHECK-NEXT:    weft.assign @w, %[[L]] : tensor<4x4xf64>
// CHECK-NEXT:    weft.iota : tensor<8xi32>
// CHECK-NEXT:    weft.fill constant 0.000000e+00 : tensor<4x4xf64>
// CHECK-LABEL: func.func private @layer
// CHECK-SAME:      (%[[X:.*]]: tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK:         return %[[X]] : tensor<4x4xf64>
func.func @types() {
  %0 = weft.read @w : tensor<8x4xf64, #cut>
  %1 = weft.call @layer(%0) label "" : (tensor<8x4xf64, #cut>) -> tensor<8x4xf64, #cut>
  weft.observe "gradient/w", %1 : tensor<8x4xf64, #cut>
  weft.assign @w, %1 : tensor<8x4xf64, #cut>
  %2 = weft.iota : tensor<8xi32, #whole>
  %3 = weft.fill constant 0.0 : tensor<8x4xf64, #cut>
  return
}
func.func private @layer(%x: tensor<8x4xf64, #cut>) -> tensor<8x4xf64, #cut> {
  return %x : tensor<8x4xf64, #cut>
}

// -----

// Random numbers count the elements of the whole, in all dimensions: the offset of one that is not
// cut is zero.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#cut = #weft.sharding<#mesh, [{}, {"tp"}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
#scalar = #weft.sharding<#mesh, []>

// CHECK-LABEL: func.func private @fill
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 3 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[TP]], %[[LENGTH]]
// CHECK-NEXT:    weft.fill normal 1.000000e+00 seed({{.*}}) stream(%{{.*}}) offsets(%[[ZERO]], %[[OFFSET]]) of [4, 6] : tensor<4x3xf64>
// CHECK-NEXT:    weft.fill normal 1.000000e+00 seed({{.*}}) stream(%{{.*}}) : tensor<4x6xf64>
func.func private @fill(%seed: tensor<i64, #scalar>, %i: index) {
  %0 = weft.fill normal 1.0 seed(%seed : tensor<i64, #scalar>) stream(%i) : tensor<4x6xf64, #cut>
  %1 = weft.fill normal 1.0 seed(%seed : tensor<i64, #scalar>) stream(%i) : tensor<4x6xf64, #whole>
  return
}

// CHECK-LABEL: func.func private @dropout
// CHECK:         weft.dropout {{.*}} offsets(%{{.*}}, %{{.*}}) of [4, 6] : tensor<4x3xf64> -> tensor<4x3xf64>
func.func private @dropout(%x: tensor<4x6xf64, #cut>, %seed: tensor<i64, #scalar>, %i: index) {
  %0 = weft.dropout %x rate = 0.5 site = 1
      key(%seed, %seed, %i : tensor<i64, #scalar>, tensor<i64, #scalar>)
      : tensor<4x6xf64, #cut> -> tensor<4x6xf64, #cut>
  return
}

// -----

// Positions that the sequence cuts.

#mesh = #weft.mesh<"cp"=2>
#positions = #weft.sharding<#mesh, [{}, {"cp"}, {}]>

// CHECK-LABEL: func.func @rotary_table
// CHECK:         %[[OFFSET:.*]] = arith.muli
// CHECK-NEXT:    weft.rotary_table [1.000000e+00] offset %[[OFFSET]] : tensor<2x4x1xf64>
func.func @rotary_table() {
  %0 = weft.rotary_table [1.0] : tensor<2x8x1xf64, #positions>
  return
}

// -----

// A cut vocabulary.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#table = #weft.sharding<#mesh, [{"tp"}, {}]>
#ids = #weft.sharding<#mesh, [{"dp"}]>
#rows = #weft.sharding<#mesh, [{"dp"}, {}]>
#logits = #weft.sharding<#mesh, [{"dp"}, {"tp"}]>

// CHECK-LABEL: func.func private @embedding
// CHECK:         %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[TP]], %[[LENGTH]]
// CHECK-NEXT:    weft.embedding %{{.*}}[%{{.*}}] offset %[[OFFSET]] : tensor<4x3xf64>[tensor<2xi32>] -> tensor<2x3xf64>
func.func private @embedding(%t: tensor<8x3xf64, #table>, %ids: tensor<4xi32, #ids>) {
  %0 = weft.embedding %t[%ids] : tensor<8x3xf64, #table>[tensor<4xi32, #ids>]
      -> tensor<4x3xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
  return
}

// CHECK-LABEL: func.func private @embedding_grad
// CHECK:         %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[TP]], %[[LENGTH]]
// CHECK-NEXT:    weft.embedding_grad %{{.*}}[%{{.*}}] offset %[[OFFSET]] : tensor<2x3xf64>[tensor<2xi32>] -> tensor<4x3xf64>
func.func private @embedding_grad(%g: tensor<4x3xf64, #rows>, %ids: tensor<4xi32, #ids>) {
  %0 = weft.embedding_grad %g[%ids] : tensor<4x3xf64, #rows>[tensor<4xi32, #ids>]
      -> tensor<8x3xf64, #weft.sharding<#mesh, [{"tp"}, {}], unreduced = sum{"dp"}>>
  return
}

// CHECK-LABEL: func.func private @cross_entropy
// CHECK:         %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[TP]], %[[LENGTH]]
// CHECK-NEXT:    weft.cross_entropy %{{.*}}[%{{.*}}] offset %[[OFFSET]] : tensor<2x4xf64>[tensor<2xi32>] -> tensor<2xf64>, tensor<2xf64>
func.func private @cross_entropy(%x: tensor<4x8xf64, #logits>, %ids: tensor<4xi32, #ids>) {
  %0:2 = weft.cross_entropy %x[%ids] : tensor<4x8xf64, #logits>[tensor<4xi32, #ids>]
      -> tensor<4xf64, #weft.sharding<#mesh, [{"dp"}], unreduced = logsumexp{"tp"}>>,
         tensor<4xf64, #weft.sharding<#mesh, [{"dp"}], unreduced = sum{"tp"}>>
  return
}

// CHECK-LABEL: func.func private @cross_entropy_grad
// CHECK:         %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[TP]], %[[LENGTH]]
// CHECK-NEXT:    weft.cross_entropy_grad {{.*}} offset %[[OFFSET]] : {{.*}} -> tensor<2x4xf64>
func.func private @cross_entropy_grad(%x: tensor<4x8xf64, #logits>, %ids: tensor<4xi32, #ids>,
                                      %g: tensor<4xf64, #ids>) {
  %0 = weft.cross_entropy_grad %x[%ids] lse(%g) gradient(%g, %g)
      : tensor<4x8xf64, #logits>[tensor<4xi32, #ids>], tensor<4xf64, #ids>, tensor<4xf64, #ids>,
        tensor<4xf64, #ids> -> tensor<4x8xf64, #logits>
  return
}

// -----

// Attention that is whole in its positions needs its place only for dropout.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#query = #weft.sharding<#mesh, [{"dp"}, {}, {"tp"}, {}, {}]>
#key = #weft.sharding<#mesh, [{"dp"}, {}, {"tp"}, {}]>
#lse = #weft.sharding<#mesh, [{"dp"}, {"tp"}, {}, {}]>
#scalar = #weft.sharding<#mesh, []>

// CHECK-LABEL: func.func private @attention
// CHECK:         weft.attention({{.*}}) scale = 1.000000e+00 dropout = 0.000000e+00 : tensor<2x3x2x1x8xf64>,
// CHECK-NEXT:    %[[DP:.*]] = weft.axis_index "dp"
// CHECK-NEXT:    %[[SAMPLES:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[SAMPLE:.*]] = arith.muli %[[DP]], %[[SAMPLES]]
// CHECK-NEXT:    %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[HEADS:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[HEAD:.*]] = arith.muli %[[TP]], %[[HEADS]]
// CHECK:         weft.attention({{.*}}) scale = 1.000000e+00 dropout = 5.000000e-01 key({{.*}}) offsets(%[[SAMPLE]], %[[HEAD]], %{{.*}}, %{{.*}}, %{{.*}}) of [4, 4, 1, 3, 3] :
// CHECK:         weft.attention_grad({{.*}} offsets({{.*}}) of [4, 4, 1, 3, 3] :
func.func private @attention(%q: tensor<4x3x4x1x8xf64, #query>, %k: tensor<4x3x4x8xf64, #key>,
                             %s: tensor<i64, #scalar>, %i: index) {
  %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
      : tensor<4x3x4x1x8xf64, #query>, tensor<4x3x4x8xf64, #key>, tensor<4x3x4x8xf64, #key>
      -> tensor<4x3x4x1x8xf64, #query>, tensor<4x4x1x3xf64, #lse>
  %1:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.5
      key(%s, %s, %i : tensor<i64, #scalar>, tensor<i64, #scalar>)
      : tensor<4x3x4x1x8xf64, #query>, tensor<4x3x4x8xf64, #key>, tensor<4x3x4x8xf64, #key>
      -> tensor<4x3x4x1x8xf64, #query>, tensor<4x4x1x3xf64, #lse>
  %2:3 = weft.attention_grad(%q, %k, %k) output(%1#0, %1#1) gradient(%1#0)
      scale = 1.0 dropout = 0.5 key(%s, %s, %i : tensor<i64, #scalar>, tensor<i64, #scalar>)
      : tensor<4x3x4x1x8xf64, #query>, tensor<4x3x4x8xf64, #key>, tensor<4x3x4x8xf64, #key>,
        tensor<4x3x4x1x8xf64, #query>, tensor<4x4x1x3xf64, #lse>, tensor<4x3x4x1x8xf64, #query>
      -> tensor<4x3x4x1x8xf64, #query>, tensor<4x3x4x8xf64, #key>, tensor<4x3x4x8xf64, #key>
  return
}

// -----

// Queries that are a shard know which of the keys are before them. Where the keys are shards too,
// all ranks' shards are meant.

#mesh = #weft.mesh<"cp"=2>
#query = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}, {}]>
#key = #weft.sharding<#mesh, [{}, {"cp"}, {}, {}]>
#whole = #weft.sharding<#mesh, [{}, {}, {}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}, {}, {}], unreduced = sum{"cp"}>
#lse = #weft.sharding<#mesh, [{}, {}, {}, {"cp"}]>

// CHECK-LABEL: func.func private @sequence
// CHECK:         %[[CP:.*]] = weft.axis_index "cp"
// CHECK-NEXT:    %[[QUERIES:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[QUERY:.*]] = arith.muli %[[CP]], %[[QUERIES]]
// CHECK-NEXT:    %[[KEY:.*]] = arith.constant 0 : index
// CHECK-NEXT:    weft.attention({{.*}} offsets(%[[QUERY]], %[[KEY]]) of [8, 8] : tensor<2x4x1x1x2xf64>, tensor<2x8x1x2xf64>,
// CHECK:         weft.attention_grad({{.*}} of [8, 8] : {{.*}} -> tensor<2x4x1x1x2xf64>, tensor<2x8x1x2xf64>, tensor<2x8x1x2xf64>
// CHECK:         weft.attention({{.*}} offsets(%{{.*}}, %{{.*}}) of [8, 8] over ["cp"] of #mesh : tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>,
// CHECK:         weft.attention_grad({{.*}} of [8, 8] over ["cp"] of #mesh : {{.*}} -> tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>
func.func private @sequence(%q: tensor<2x8x1x1x2xf64, #query>, %all: tensor<2x8x1x2xf64, #whole>,
                            %k: tensor<2x8x1x2xf64, #key>) {
  %0:2 = weft.attention(%q, %all, %all) scale = 1.0 dropout = 0.0
      : tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #whole>, tensor<2x8x1x2xf64, #whole>
      -> tensor<2x8x1x1x2xf64, #query>, tensor<2x1x1x8xf64, #lse>
  %1:3 = weft.attention_grad(%q, %all, %all) output(%0#0, %0#1) gradient(%0#0)
      scale = 1.0 dropout = 0.0
      : tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #whole>, tensor<2x8x1x2xf64, #whole>,
        tensor<2x8x1x1x2xf64, #query>, tensor<2x1x1x8xf64, #lse>, tensor<2x8x1x1x2xf64, #query>
      -> tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #pending>, tensor<2x8x1x2xf64, #pending>
  %2:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
      : tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #key>, tensor<2x8x1x2xf64, #key>
      -> tensor<2x8x1x1x2xf64, #query>, tensor<2x1x1x8xf64, #lse>
  %3:3 = weft.attention_grad(%q, %k, %k) output(%2#0, %2#1) gradient(%2#0)
      scale = 1.0 dropout = 0.0
      : tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #key>, tensor<2x8x1x2xf64, #key>,
        tensor<2x8x1x1x2xf64, #query>, tensor<2x1x1x8xf64, #lse>, tensor<2x8x1x1x2xf64, #query>
      -> tensor<2x8x1x1x2xf64, #query>, tensor<2x8x1x2xf64, #key>, tensor<2x8x1x2xf64, #key>
  return
}

// -----

// Slices and partial sums learn this rank's number in its group; collectives keep mesh and axes.

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}]>
#both = #weft.sharding<#mesh, [{"dp", "tp"}]>

// CHECK-LABEL: func.func private @movements
// CHECK-NEXT:    %[[DP:.*]] = weft.axis_index "dp"
// CHECK-NEXT:    %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    %[[SIZE:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[MAJOR:.*]] = arith.muli %[[DP]], %[[SIZE]]
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.addi %[[MAJOR]], %[[TP]]
// CHECK-NEXT:    %[[S:.*]] = weft.slice %{{.*}} dim 0 over ["dp", "tp"] of #mesh index %[[NUMBER]] : tensor<8xf64> -> tensor<2xf64>
// CHECK-NEXT:    %[[G:.*]] = weft.all_gather %[[S]] dim 0 over ["dp", "tp"] of #mesh : tensor<2xf64> -> tensor<8xf64>
// CHECK-NEXT:    %[[TP:.*]] = weft.axis_index "tp"
// CHECK-NEXT:    weft.partial %[[G]] over ["tp"] of #mesh index %[[TP]] : tensor<8xf64> -> tensor<8xf64>
func.func private @movements(%x: tensor<8xf64, #whole>) {
  %0 = weft.slice %x dim 0 over ["dp", "tp"] of #mesh : tensor<8xf64, #whole> -> tensor<8xf64, #both>
  %1 = weft.all_gather %0 dim 0 over ["dp", "tp"] of #mesh : tensor<8xf64, #both> -> tensor<8xf64, #whole>
  %2 = weft.partial %1 over ["tp"] of #mesh : tensor<8xf64, #whole>
      -> tensor<8xf64, #weft.sharding<#mesh, [{}], unreduced = sum{"tp"}>>
  return
}

// -----

// A stage sends the shards that it has.

#mesh = #weft.mesh<"tp"=2>
#cut = #weft.sharding<#mesh, [{"tp"}, {}]>
// CHECK-LABEL: func.func @transfer(
// CHECK-SAME:      %[[X:.*]]: tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT:    %[[Y:.*]] = weft.transfer %[[X]] from 0 to 1 : tensor<4x4xf64>
// CHECK-NEXT:    return %[[Y]] : tensor<4x4xf64>
func.func @transfer(%x: tensor<8x4xf64, #cut>) -> tensor<8x4xf64, #cut> {
  %0 = weft.transfer %x from 0 to 1 : tensor<8x4xf64, #cut>
  return %0 : tensor<8x4xf64, #cut>
}
