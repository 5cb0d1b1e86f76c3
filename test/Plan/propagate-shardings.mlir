// RUN: weft-opt %s -split-input-file -apply-plan="pins=dp=2,tp=2 batch=4" -propagate-shardings | FileCheck %s

// Pins cut "batch" over dp, and "ffn", "vocab" and "kv_heads" over tp; "hidden" stays whole. Shardings
// in checks are those of the value that is made.

// The example of the pass's description.

#id = affine_map<(i, j) -> (i, j)>
weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable parameter @x ["sequence", "hidden"] : tensor<2x4xf64>

// CHECK-LABEL: func.func @description
// CHECK:         %[[W:.*]] = weft.read @w {{.*}} [{"tp"}, {}]>>
// CHECK-NEXT:    %[[Y:.*]] = weft.contract "bk,nk->bn"(%{{.*}}, %[[W]]) {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
// CHECK-NEXT:    %[[Z:.*]] = weft.contract "bn,nk->bk"(%[[Y]], %[[W]]) {{.*}} -> tensor<{{.*}} [{}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[SUM:.*]] = weft.reshard %[[Z]] : {{.*}} -> tensor<{{.*}} [{}, {}]>>
// CHECK-NEXT:    weft.map ins(%[[SUM]] :
func.func @description() {
  %x = weft.read @x : tensor<2x4xf64>
  %w = weft.read @w : tensor<8x4xf64>
  %y = weft.contract "bk,nk->bn" (%x, %w) : (tensor<2x4xf64>, tensor<8x4xf64>) -> tensor<2x8xf64>
  %z = weft.contract "bn,nk->bk" (%y, %w) : (tensor<2x8xf64>, tensor<8x4xf64>) -> tensor<2x4xf64>
  %e = weft.map ins(%z : tensor<2x4xf64>) maps [#id] -> tensor<2x4xf64> {
  ^bb0(%a: f64):
    %b = math.exp %a : f64
    weft.yield %b : f64
  }
  return
}

// -----

// Megatron's MLP: a product with a matrix cut by columns, a function, a product with one cut by
// rows. One reshard in all, where the residual is added.

#id = affine_map<(i, j) -> (i, j)>
weft.variable parameter @up ["ffn", "hidden"] : tensor<8x4xf64>
weft.variable parameter @down ["hidden", "ffn"] : tensor<4x8xf64>
weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>

// CHECK-LABEL: func.func @megatron_mlp
// CHECK-NOT:     weft.reshard
// CHECK:         weft.contract "bk,nk->bn"{{.*}} -> tensor<{{.*}} [{"dp"}, {"tp"}]>>
// CHECK-NEXT:    weft.map {{.*}} -> tensor<{{.*}} [{"dp"}, {"tp"}]>>
// CHECK:         %[[PARTS:.*]] = weft.contract "bn,kn->bk"{{.*}} -> tensor<{{.*}} [{"dp"}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[WHOLE:.*]] = weft.reshard %[[PARTS]] : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-NEXT:    weft.map ins(%{{.*}}, %[[WHOLE]] :
// CHECK-NOT:     weft.reshard
func.func @megatron_mlp() {
  %x = weft.read @x : tensor<?x4xf64>
  %u = weft.read @up : tensor<8x4xf64>
  %d = weft.read @down : tensor<4x8xf64>
  %0 = weft.contract "bk,nk->bn" (%x, %u) : (tensor<?x4xf64>, tensor<8x4xf64>) -> tensor<?x8xf64>
  %1 = weft.map ins(%0 : tensor<?x8xf64>) maps [#id] -> tensor<?x8xf64> {
  ^bb0(%a: f64):
    %b = math.tanh %a : f64
    weft.yield %b : f64
  }
  %2 = weft.contract "bn,kn->bk" (%1, %d) : (tensor<?x8xf64>, tensor<4x8xf64>) -> tensor<?x4xf64>
  %3 = weft.map ins(%x, %2 : tensor<?x4xf64>, tensor<?x4xf64>) maps [#id, #id] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  weft.observe "y", %3 : tensor<?x4xf64>
  return
}

// -----

// A weight's gradient under data parallelism is a pending sum over the samples. It is reduced once
// for all that use it; the sum of two such gradients stays pending before.

#id = affine_map<(i, j) -> (i, j)>
weft.variable parameter @w ["hidden", "positions"] : tensor<4x2xf64>
weft.variable input @x ["batch", "positions"] : tensor<?x2xf64>
weft.variable input @dy ["batch", "hidden"] : tensor<?x4xf64>

// CHECK-LABEL: func.func @data_parallel_gradient
// CHECK:         %[[G:.*]] = weft.contract "bn,bk->nk"{{.*}} -> tensor<{{.*}} [{}, {}], unreduced = sum{"dp"}>>
// CHECK-NEXT:    %[[GG:.*]] = weft.map ins(%[[G]], %[[G]] : {{.*}} -> tensor<{{.*}} [{}, {}], unreduced = sum{"dp"}>>
// CHECK:         %[[WHOLE:.*]] = weft.reshard %[[GG]] : {{.*}} -> tensor<{{.*}} [{}, {}]>>
// CHECK-NEXT:    weft.observe "gradient/w", %[[WHOLE]]
// CHECK-NEXT:    weft.contract "ab,ab->"(%[[WHOLE]], %[[WHOLE]])
// CHECK-NEXT:    weft.assign @w, %[[WHOLE]]
// CHECK-NOT:     weft.reshard
func.func @data_parallel_gradient() {
  %x = weft.read @x : tensor<?x2xf64>
  %dy = weft.read @dy : tensor<?x4xf64>
  %g = weft.contract "bn,bk->nk" (%dy, %x) : (tensor<?x4xf64>, tensor<?x2xf64>) -> tensor<4x2xf64>
  %gg = weft.map ins(%g, %g : tensor<4x2xf64>, tensor<4x2xf64>) maps [#id, #id] -> tensor<4x2xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  weft.observe "gradient/w", %gg : tensor<4x2xf64>
  %n = weft.contract "ab,ab->" (%gg, %gg) : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<f64>
  weft.assign @w, %gg : tensor<4x2xf64>
  return
}

// -----

// Operands disagree: the larger one decides. Its cut is taken over here...

weft.variable parameter @large ["sequence", "ffn"] : tensor<16x8xf64>
weft.variable parameter @small ["hidden"] : tensor<8xf64>

// CHECK-LABEL: func.func @larger_operand_is_cut
// CHECK:         %[[SMALL:.*]] = weft.read @small
// CHECK-NEXT:    %[[CUT:.*]] = weft.reshard %[[SMALL]] : {{.*}} [{}]>> -> tensor<{{.*}} [{"tp"}]>>
// CHECK-NEXT:    weft.contract "ab,b->ab"(%{{.*}}, %[[CUT]]) {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
func.func @larger_operand_is_cut() {
  %0 = weft.read @large : tensor<16x8xf64>
  %1 = weft.read @small : tensor<8xf64>
  %2 = weft.contract "ab,b->ab" (%0, %1) : (tensor<16x8xf64>, tensor<8xf64>) -> tensor<16x8xf64>
  return
}

// -----

// ... and that of the smaller one is given up here, although it stands first.

weft.variable parameter @large ["sequence", "hidden"] : tensor<16x8xf64>
weft.variable parameter @small ["ffn"] : tensor<8xf64>

// CHECK-LABEL: func.func @larger_operand_is_whole
// CHECK:         %[[WHOLE:.*]] = weft.reshard %{{.*}} : {{.*}} [{"tp"}]>> -> tensor<{{.*}} [{}]>>
// CHECK-NEXT:    weft.contract "b,ab->ab"(%[[WHOLE]], %{{.*}}) {{.*}} -> tensor<{{.*}} [{}, {}]>>
func.func @larger_operand_is_whole() {
  %0 = weft.read @large : tensor<16x8xf64>
  %1 = weft.read @small : tensor<8xf64>
  %2 = weft.contract "b,ab->ab" (%1, %0) : (tensor<8xf64>, tensor<16x8xf64>) -> tensor<16x8xf64>
  return
}

// -----

// One axis cannot cut two factors: the second operand is gathered.

weft.variable parameter @a ["ffn"] : tensor<8xf64>
weft.variable parameter @b ["vocab"] : tensor<4xf64>

// CHECK-LABEL: func.func @axis_taken
// CHECK:         %[[B:.*]] = weft.read @b
// CHECK-NEXT:    %[[WHOLE:.*]] = weft.reshard %[[B]] : {{.*}} [{"tp"}]>> -> tensor<{{.*}} [{}]>>
// CHECK-NEXT:    weft.contract "a,b->ab"(%{{.*}}, %[[WHOLE]]) {{.*}} -> tensor<{{.*}} [{"tp"}, {}]>>
func.func @axis_taken() {
  %0 = weft.read @a : tensor<8xf64>
  %1 = weft.read @b : tensor<4xf64>
  %2 = weft.contract "a,b->ab" (%0, %1) : (tensor<8xf64>, tensor<4xf64>) -> tensor<8x4xf64>
  return
}

// -----

// A norm needs whole rows, and its samples may be cut.

weft.variable input @x ["batch", "ffn"] : tensor<?x8xf64>
weft.variable parameter @s ["ffn"] : tensor<8xf64>

// CHECK-LABEL: func.func @must_replicate
// CHECK-DAG:     %[[X:.*]] = weft.reshard %{{.*}} : {{.*}} [{"dp"}, {"tp"}]>> -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-DAG:     %[[S:.*]] = weft.reshard %{{.*}} : {{.*}} [{"tp"}]>> -> tensor<{{.*}} [{}]>>
// CHECK:         weft.norm rms %[[X]] scale(%[[S]] : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
func.func @must_replicate() {
  %0 = weft.read @x : tensor<?x8xf64>
  %1 = weft.read @s : tensor<8xf64>
  %2 = weft.norm rms %0 scale(%1 : tensor<8xf64>) epsilon = 1.0e-5
      : tensor<?x8xf64> -> tensor<?x8xf64>
  return
}

// -----

// Each rank looks up the words of its part of the vocabulary; rotations and dropout are linear and
// pass the pending sum on.

weft.variable parameter @embed ["vocab", "hidden"] : tensor<8x4xf64>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x2xi32>
weft.variable input @seed [] : tensor<i64>

// CHECK-LABEL: func.func @vocabulary_parallel_embedding
// CHECK-NOT:     weft.reshard
// CHECK:         weft.embedding {{.*}} -> tensor<{{.*}} [{"dp"}, {}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    weft.rotary_table {{.*}} : tensor<{{.*}} [{}, {}, {}]>>
// CHECK-NEXT:    weft.rotary {{.*}} -> tensor<{{.*}} [{"dp"}, {}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    weft.dropout {{.*}} -> tensor<{{.*}} [{"dp"}, {}, {}], unreduced = sum{"tp"}>>
// CHECK-NOT:     weft.reshard
func.func @vocabulary_parallel_embedding() {
  %0 = weft.read @embed : tensor<8x4xf64>
  %1 = weft.read @tokens : tensor<?x2xi32>
  %seed = weft.read @seed : tensor<i64>
  %c0 = arith.constant 0 : index
  %2 = weft.embedding %0[%1] : tensor<8x4xf64>[tensor<?x2xi32>] -> tensor<?x2x4xf64>
  %3 = weft.rotary_table [1.0] : tensor<2x2x1xf64>
  %4 = weft.rotary %2 table(%3 : tensor<2x2x1xf64>) : tensor<?x2x4xf64> -> tensor<?x2x4xf64>
  %5 = weft.dropout %4 rate = 0.5 site = 0 key(%seed, %seed, %c0 : tensor<i64>, tensor<i64>)
      : tensor<?x2x4xf64> -> tensor<?x2x4xf64>
  return
}

// -----

// Logits of a cut vocabulary are never gathered: only two numbers for each token are reduced, by
// their own operators. The gradient of the logits is cut as they are, and that of a table that was
// cut is made in pieces.

#id = affine_map<(i, j) -> (i, j)>
weft.variable parameter @head ["vocab", "hidden"] : tensor<8x4xf64>
weft.variable input @x ["batch", "sequence", "hidden"] : tensor<?x2x4xf64>
weft.variable input @targets ["batch", "sequence"] : tensor<?x2xi32>

// CHECK-LABEL: func.func @vocabulary_parallel_loss
// CHECK:         %[[LOGITS:.*]] = weft.contract "bsk,vk->bsv"{{.*}} -> tensor<{{.*}} [{"dp"}, {}, {"tp"}]>>
// CHECK-NEXT:    %[[LSE:.*]], %[[PICKED:.*]] = weft.cross_entropy %[[LOGITS]]{{.*}} [{"dp"}, {}], unreduced = logsumexp{"tp"}>>, tensor<{{.*}} [{"dp"}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[A:.*]] = weft.reshard %[[LSE]] : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-NEXT:    %[[B:.*]] = weft.reshard %[[PICKED]] : {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-NEXT:    %[[LOSS:.*]] = weft.map ins(%[[A]], %[[B]] :
// CHECK:         weft.contract "bs->"{{.*}} -> tensor<f64, {{.*}} [], unreduced = sum{"dp"}>>
// CHECK-NEXT:    weft.cross_entropy_grad %[[LOGITS]][%{{.*}}] lse(%[[A]]) gradient(%[[LOSS]], %[[LOSS]]) {{.*}} -> tensor<{{.*}} [{"dp"}, {}, {"tp"}]>>
// CHECK-NEXT:    weft.contract "bsv,vk->bsk"{{.*}} -> tensor<{{.*}} [{"dp"}, {}, {}], unreduced = sum{"tp"}>>
// CHECK-NEXT:    weft.contract "bsv,bsk->vk"{{.*}} -> tensor<{{.*}} [{"tp"}, {}], unreduced = sum{"dp"}>>
func.func @vocabulary_parallel_loss() {
  %x = weft.read @x : tensor<?x2x4xf64>
  %w = weft.read @head : tensor<8x4xf64>
  %t = weft.read @targets : tensor<?x2xi32>
  %0 = weft.contract "bsk,vk->bsv" (%x, %w) : (tensor<?x2x4xf64>, tensor<8x4xf64>) -> tensor<?x2x8xf64>
  %1:2 = weft.cross_entropy %0[%t] : tensor<?x2x8xf64>[tensor<?x2xi32>] -> tensor<?x2xf64>, tensor<?x2xf64>
  %2 = weft.map ins(%1#0, %1#1 : tensor<?x2xf64>, tensor<?x2xf64>) maps [#id, #id] -> tensor<?x2xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.subf %a, %b : f64
    weft.yield %c : f64
  }
  %3 = weft.contract "bs->" (%2) : (tensor<?x2xf64>) -> tensor<f64>
  %4 = weft.cross_entropy_grad %0[%t] lse(%1#0) gradient(%2, %2)
      : tensor<?x2x8xf64>[tensor<?x2xi32>], tensor<?x2xf64>, tensor<?x2xf64>, tensor<?x2xf64> -> tensor<?x2x8xf64>
  %5 = weft.contract "bsv,vk->bsk" (%4, %w) : (tensor<?x2x8xf64>, tensor<8x4xf64>) -> tensor<?x2x4xf64>
  %6 = weft.contract "bsv,bsk->vk" (%4, %x) : (tensor<?x2x8xf64>, tensor<?x2x4xf64>) -> tensor<8x4xf64>
  return
}

// -----

// How a value is used decides what no operand decides: values of a fill, and rows of the gradient of
// a table, which are made where the parameter's are, also where the gradient is added to another first.

#id = affine_map<(i, j) -> (i, j)>
weft.variable parameter @table ["vocab", "hidden"] : tensor<8x4xf64>
weft.variable input @tokens ["batch", "sequence"] : tensor<?x2xi32>
weft.variable input @dy ["batch", "sequence", "hidden"] : tensor<?x2x4xf64>

// CHECK-LABEL: func.func @init
// CHECK-NEXT:    %[[FILL:.*]] = weft.fill constant 1.000000e+00 : tensor<{{.*}} [{"tp"}, {}]>>
// CHECK-NEXT:    weft.assign @table, %[[FILL]]
func.func @init() {
  %0 = weft.fill constant 1.0 : tensor<8x4xf64>
  weft.assign @table, %0 : tensor<8x4xf64>
  return
}

// CHECK-LABEL: func.func @wanted_gradient
// CHECK:         %[[T:.*]] = weft.read @table
// CHECK-NEXT:    %[[G:.*]] = weft.embedding_grad {{.*}} -> tensor<{{.*}} [{"tp"}, {}], unreduced = sum{"dp"}>>
// CHECK-NEXT:    %[[WHOLE:.*]] = weft.reshard %[[G]] : {{.*}} -> tensor<{{.*}} [{"tp"}, {}]>>
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[WHOLE]], %[[T]]
// CHECK:         weft.observe "gradient/table", %[[SUM]]
func.func @wanted_gradient() {
  %ids = weft.read @tokens : tensor<?x2xi32>
  %dy = weft.read @dy : tensor<?x2x4xf64>
  %t = weft.read @table : tensor<8x4xf64>
  %0 = weft.embedding_grad %dy[%ids] : tensor<?x2x4xf64>[tensor<?x2xi32>] -> tensor<8x4xf64>
  %1 = weft.map ins(%0, %t : tensor<8x4xf64>, tensor<8x4xf64>) maps [#id, #id] -> tensor<8x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  weft.observe "gradient/table", %1 : tensor<8x4xf64>
  return
}

// -----

// The sum of squares of a cut and of a whole parameter: the scalar that is not pending is made so, the
// sum stays pending, and its root takes one reduction.

#none = affine_map<() -> ()>
weft.variable parameter @cut ["ffn"] : tensor<8xf64>
weft.variable parameter @whole ["hidden"] : tensor<8xf64>

// CHECK-LABEL: func.func @scalar_sum
// CHECK:         %[[A:.*]] = weft.contract "a,a->"{{.*}} -> tensor<f64, {{.*}} [], unreduced = sum{"tp"}>>
// CHECK:         %[[B:.*]] = weft.contract "a,a->"{{.*}} -> tensor<f64, {{.*}} []>>
// CHECK-NEXT:    %[[C:.*]] = weft.reshard %[[B]] : {{.*}} -> tensor<f64, {{.*}} [], unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[A]], %[[C]] : {{.*}} -> tensor<f64, {{.*}} [], unreduced = sum{"tp"}>>
// CHECK:         %[[DONE:.*]] = weft.reshard %[[SUM]] : {{.*}} -> tensor<f64, {{.*}} []>>
// CHECK-NEXT:    weft.map ins(%[[DONE]] :
// CHECK-NOT:     weft.reshard
func.func @scalar_sum() {
  %0 = weft.read @cut : tensor<8xf64>
  %1 = weft.contract "a,a->" (%0, %0) : (tensor<8xf64>, tensor<8xf64>) -> tensor<f64>
  %2 = weft.read @whole : tensor<8xf64>
  %3 = weft.contract "a,a->" (%2, %2) : (tensor<8xf64>, tensor<8xf64>) -> tensor<f64>
  %4 = weft.map ins(%1, %3 : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  %5 = weft.map ins(%4 : tensor<f64>) maps [#none] -> tensor<f64> {
  ^bb0(%a: f64):
    %b = math.sqrt %a : f64
    weft.yield %b : f64
  }
  return
}

// -----

// Two pending sums cannot be multiplied, and a pending sum cannot meet an operand that the same axis
// cuts: they are reduced first.

weft.variable parameter @w ["hidden", "ffn"] : tensor<4x8xf64>
weft.variable parameter @v ["ffn"] : tensor<8xf64>

// CHECK-LABEL: func.func @products_of_pending_sums
// CHECK:         %[[P:.*]] = weft.contract "ab,b->a"{{.*}} unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[R:.*]] = weft.reshard %[[P]] : {{.*}} -> tensor<{{.*}} [{}]>>
// CHECK-NEXT:    weft.contract "a,a->"(%[[R]], %[[R]]) {{.*}} -> tensor<f64, {{.*}} []>>
// CHECK-NEXT:    weft.contract "a,b->ab"(%[[R]], %{{.*}}) {{.*}} -> tensor<{{.*}} [{}, {"tp"}]>>
func.func @products_of_pending_sums() {
  %0 = weft.read @w : tensor<4x8xf64>
  %1 = weft.read @v : tensor<8xf64>
  %2 = weft.contract "ab,b->a" (%0, %1) : (tensor<4x8xf64>, tensor<8xf64>) -> tensor<4xf64>
  %3 = weft.contract "a,a->" (%2, %2) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %4 = weft.contract "a,b->ab" (%2, %1) : (tensor<4xf64>, tensor<8xf64>) -> tensor<4x8xf64>
  return
}

// -----

// A layer is made once for each combination of argument types. Its arguments are never pending, but
// its results may be.

weft.variable parameter @cut ["ffn"] : tensor<8xf64>
weft.variable parameter @whole ["hidden"] : tensor<8xf64>
weft.variable parameter @matrix ["hidden", "ffn"] : tensor<8x8xf64>

// CHECK-LABEL: func.func @specialized_layer
// CHECK:         %[[A:.*]] = weft.call @layer(%{{.*}}) label "cut" : (tensor<8xf64, {{.*}} [{"tp"}]>>) -> tensor<f64, {{.*}} [], unreduced = sum{"tp"}>>
// CHECK-NEXT:    %[[B:.*]] = weft.call @[[OTHER:layer_[0-9]+]](%{{.*}}) label "whole" : (tensor<8xf64, {{.*}} [{}]>>) -> tensor<f64, {{.*}} []>>
// CHECK-NEXT:    weft.call @layer(%{{.*}}) label "cut again"
// CHECK-NEXT:    %[[PARTS:.*]] = weft.contract "ab,b->a"
// CHECK-NEXT:    %[[SUM:.*]] = weft.reshard %[[PARTS]]
// CHECK-NEXT:    weft.call @[[OTHER]](%[[SUM]]) label "pending"
// CHECK:       func.func private @layer(%{{.*}}: tensor<8xf64, {{.*}} [{"tp"}]>>) -> tensor<f64, {{.*}} unreduced = sum{"tp"}>>
// CHECK:       func.func private @[[OTHER]](%{{.*}}: tensor<8xf64, {{.*}} [{}]>>) -> tensor<f64, {{.*}} []>>
// CHECK-NOT:   func.func
func.func @specialized_layer() {
  %0 = weft.read @cut : tensor<8xf64>
  %1 = weft.read @whole : tensor<8xf64>
  %2 = weft.read @matrix : tensor<8x8xf64>
  %3 = weft.call @layer(%0) label "cut" : (tensor<8xf64>) -> tensor<f64>
  %4 = weft.call @layer(%1) label "whole" : (tensor<8xf64>) -> tensor<f64>
  %5 = weft.call @layer(%0) label "cut again" : (tensor<8xf64>) -> tensor<f64>
  %6 = weft.contract "ab,b->a" (%2, %0) : (tensor<8x8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %7 = weft.call @layer(%6) label "pending" : (tensor<8xf64>) -> tensor<f64>
  return
}
func.func private @layer(%x: tensor<8xf64>) -> tensor<f64> {
  %0 = weft.contract "a,a->" (%x, %x) : (tensor<8xf64>, tensor<8xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// Attention cuts the batch and the KV heads.

weft.variable input @q ["batch", "sequence", "kv_heads", "group", "head"] : tensor<?x4x2x3x8xf64>
weft.variable input @k ["batch", "sequence", "kv_heads", "head"] : tensor<?x4x2x8xf64>

// CHECK-LABEL: func.func @attention
// CHECK-NOT:     weft.reshard
// CHECK:         weft.attention({{.*}} -> tensor<{{.*}} [{"dp"}, {}, {"tp"}, {}, {}]>>, tensor<{{.*}} [{"dp"}, {"tp"}, {}, {}]>>
func.func @attention() {
  %0 = weft.read @q : tensor<?x4x2x3x8xf64>
  %1 = weft.read @k : tensor<?x4x2x8xf64>
  %2:2 = weft.attention(%0, %1, %1) scale = 0.5 dropout = 0.0
      : tensor<?x4x2x3x8xf64>, tensor<?x4x2x8xf64>, tensor<?x4x2x8xf64>
      -> tensor<?x4x2x3x8xf64>, tensor<?x2x3x4xf64>
  return
}

// -----

// Four heads go over two ranks, three do not: there the features are gathered first.

weft.variable parameter @x ["batch", "ffn"] : tensor<?x12xf64>

// CHECK-LABEL: func.func @reshape
// CHECK:         %[[X:.*]] = weft.read @x {{.*}} [{"dp"}, {"tp"}]>>
// CHECK-NEXT:    weft.reshape %[[X]] {{.*}} -> tensor<{{.*}} [{"dp"}, {"tp"}, {}]>>
// CHECK-NEXT:    %[[WHOLE:.*]] = weft.reshard %[[X]] {{.*}} -> tensor<{{.*}} [{"dp"}, {}]>>
// CHECK-NEXT:    weft.reshape %[[WHOLE]] {{.*}} -> tensor<{{.*}} [{"dp"}, {}, {}]>>
func.func @reshape() {
  %x = weft.read @x : tensor<?x12xf64>
  %y = weft.reshape %x [[0], [1, 2]] : tensor<?x12xf64> -> tensor<?x4x3xf64>
  %z = weft.reshape %x [[0], [1, 2]] : tensor<?x12xf64> -> tensor<?x3x4xf64>
  return
}

// -----

// The greatest of all ranks' greatest: rounding does not depend on how a tensor is cut.

weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>

// CHECK-LABEL: func.func @amax
// CHECK:         %[[PART:.*]] = weft.amax %{{.*}} -> tensor<f64, {{.*}} unreduced = max{"dp"}>>
// CHECK:         %[[AMAX:.*]] = weft.reshard %[[PART]]
// CHECK:         weft.quantize e4m3 %{{.*}} by %[[AMAX]] : {{.*}} [{"dp"}, {}]>>
func.func @amax() {
  %x = weft.read @x : tensor<?x4xf64>
  %m = weft.amax %x : tensor<?x4xf64> -> tensor<f64>
  %q = weft.quantize e4m3 %x by %m : tensor<?x4xf64>, tensor<f64> -> tensor<?x4xf64>
  return
}
