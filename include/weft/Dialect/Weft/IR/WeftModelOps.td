//===- WeftModelOps.td - ops of transformers ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MODEL_OPS_TD
#define WEFT_MODEL_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_NormOp : Weft_Op<"norm", [Pure, Weft_Additive, Weft_Differentiable]> {
  let summary = "layer norm or RMS norm over the last dimension";
  let description = [{
    layer: (x - mean) / sqrt(variance + epsilon) * scale + bias, rms: x / sqrt(mean of
    squares + epsilon) * scale. The bias is optional.

    **Constraints:**
    - norm_c1: scale and bias have one dimension, as long as the last of the input.
    - norm_c2: an RMS norm has no bias.
    - norm_c3: epsilon is positive.
    - norm_c4: the output has the input's element type, scale and bias its wide type.
  }];
  let arguments = (ins Weft_NormKindAttr:$kind, Weft_FloatTensor:$input,
                       Weft_FloatTensor:$scale, Optional<Weft_FloatTensor>:$bias,
                       F64Attr:$epsilon);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    `` $kind $input `scale` `(` $scale `:` type($scale) `)` (`bias` `(` $bias^ `:` type($bias) `)`)?
    `epsilon` `=` $epsilon attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_NormGradOp : Weft_Op<"norm_grad", [Pure, Weft_Additive]> {
  let summary = "derivative of a norm";
  let description = [{
    Gradients of the input, of the scale, and of the bias where there is one. The
    statistics are computed again from the input: it is read anyway.

    **Constraints:**
    - norm_grad_c1: gradient and input gradient have the input's element type, scale and the
      other gradients its wide type.
  }];
  let arguments = (ins Weft_NormKindAttr:$kind, Weft_FloatTensor:$input,
                       Weft_FloatTensor:$scale, Weft_FloatTensor:$gradient,
                       F64Attr:$epsilon);
  let results = (outs Weft_FloatTensor:$input_gradient, Weft_FloatTensor:$scale_gradient,
                      Optional<Weft_FloatTensor>:$bias_gradient);
  let assemblyFormat = [{
    `` $kind $input `scale` `(` $scale `:` type($scale) `)`
    `gradient` `(` $gradient `:` type($gradient) `)` `epsilon` `=` $epsilon attr-dict
    `:` type($input) `->` type($input_gradient) `,` type($scale_gradient)
    (`,` type($bias_gradient)^)?
  }];
  let hasVerifier = 1;
}

def Weft_RotaryTableOp : Weft_Op<"rotary_table", [Pure, Weft_Positional]> {
  let summary = "cosines and sines of rotary position embeddings";
  let description = [{
    `output[0, p, i] = cos(p * frequencies[i])`, `output[1, p, i]` the sine, for
    position p; computed in float64.

    **Constraints:**
    - rotary_table_c1: the type is [2, positions, number of frequencies].
  }];
  let arguments = (ins F64ArrayAttr:$frequencies, Optional<Index>:$offset);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = "$frequencies (`offset` $offset^)? attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Weft_RotaryOp : Weft_Op<"rotary", [Pure, Weft_Additive, Weft_Differentiable]> {
  let summary = "rotation of pairs of features by their position";
  let description = [{
    With m frequencies in the table, features i and i + m (i < m) of the last dimension
    are rotated by the angle of (position, i); features from 2m on stay. `inverse`
    rotates back, which is the derivative by the input; the table, which `weft.rotary_table`
    makes, is taken as constant. The second dimension is the position.

    **Constraints:**
    - rotary_c1: the table is [2, positions, m], positions as in the input's second
      dimension and 2m at most its last.
    - rotary_c2: input and output have the same shape, of at least three dimensions.
    - rotary_c3: input and output have one element type, the table its wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, Weft_FloatTensor:$table, UnitAttr:$inverse);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $input `table` `(` $table `:` type($table) `)` attr-dict
    `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_EmbeddingOp : Weft_Op<"embedding", [Pure, Weft_Differentiable,
    Weft_Shardable<["isAdditiveIn", "getPositionFactors", "setPosition", "getPosition", "isNothingBeyond",
                    "getCost"]>]> {
  let summary = "rows of a table, chosen by number";
  let description = [{
    `output[i…, h] = table[ids[i…] - offset, h]`, and zero where that row lies outside of
    the table: each rank holds some rows, and the sum over ranks is the whole.

    **Constraints:**
    - embedding_c1: the table has two dimensions; the output has the ids' dimensions and
      then the table's second.
    - embedding_c2: table and output have one element type.
  }];
  let arguments = (ins Weft_FloatTensor:$table, Weft_IdTensor:$ids, Optional<Index>:$offset);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $table `[` $ids `]` (`offset` $offset^)? attr-dict
    `:` type($table) `[` type($ids) `]` `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_EmbeddingGradOp : Weft_Op<"embedding_grad", [Pure,
    Weft_Shardable<["isAdditiveIn", "getPositionFactors", "setPosition", "getPosition", "isNothingBeyond",
                    "getCost"]>]> {
  let summary = "gradient of an embedding's table";
  let description = [{
    Row r of the result is the sum of `gradient[i…]` over all i with ids[i…] = offset + r,
    in the order of i.

    **Constraints:**
    - embedding_grad_c1: the gradient has the ids' dimensions and one more, the output two
      dimensions of which the second is that one.
    - embedding_grad_c2: the output has the wide type of the gradient's.
  }];
  let arguments = (ins Weft_IdTensor:$ids, Weft_FloatTensor:$gradient,
                       Optional<Index>:$offset);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $gradient `[` $ids `]` (`offset` $offset^)? attr-dict
    `:` type($gradient) `[` type($ids) `]` `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_AttentionOp : Weft_Op<"attention", [Pure, Weft_Differentiable, Weft_Permutation,
    AttrSizedOperandSegments,
    Weft_Shardable<["getPositionFactors", "setPosition", "getPosition", "setUnpaddedSizes",
                    "setOrder", "mayBePadded", "isNothingBeyond",
                    "getCost"]>]> {
  let summary = "attention with grouped queries";
  let description = [{
    query is [batch, position, KV head, query head in the group, feature], key
    [batch, position, KV head, feature], value the same with a number of features of its own, which
    is that of the output. For each query, softmax over the keys at its
    position and before of `scale` times the products, then the sum of values by these
    weights. `lse`, [batch, KV head, query head, position], is the logarithm of the
    softmax's denominator, which is all that the derivative needs: no matrix of
    positions by positions is ever held.

    With a window of w, only the w keys up to the query's own position count. A bidirectional
    attention has no order of positions: each query sees all keys.

    `starts`, [batch, position], are the first positions of queries' documents: keys before them
    do not count. They count positions of the whole, never fall along a sequence, and are no later
    than the query's own position.

    With a dropout rate above zero, weights are dropped by the generator of
    `docs/Numerics.md` from seed, step and layer (site 3), and the others scaled by
    1 / (1 - rate).

    Keys and values have a position of their own, a permutation whose partner is the queries'
    position: they may be whole where queries are cut, or cut alike. A shard knows from the
    offsets which of the keys its queries see. `over` says that keys and values are shards,
    and that those of all ranks of the group over these axes are meant. `turn` k says that
    the keys and values are not those at the offset, but those of the rank k before, the
    first rank coming after the last. `turns` is the number of ranks, given where their shards
    together are longer than the whole, as they are when it is padded. Where positions are stored in
    another `order`, offsets count what is stored. A query that sees no key at all has an lse of -1e30, and
    an output that counts nothing.

    **Constraints:**
    - attention_c1: the shapes agree as said above.
    - attention_c2: seed, step and layer are given exactly when the dropout rate is above
      zero; the rate lies in [0, 1).
    - attention_c3: offsets come with sizes of the whole: of queries and keys, unless
      the attention is bidirectional; with dropout of batch, KV heads, query heads in the group,
      queries and keys. Sizes without offsets are those of a whole that is padded.
    - attention_c4: a window is at least 1.
    - attention_c5: query, key and value have one element type, the output that or its wide type,
      lse its wide type.
    - attention_c6: a bidirectional attention has neither a window nor starts.
    - attention_c7: unless it is bidirectional, the whole has as many queries as keys.
    - attention_c9: an order is one of as many positions as the whole has, its padding included.
    - attention_c8: `over` names distinct axes of the mesh, and there is no turn with it; a turn
      needs offsets, and `turns` a turn.
  }];
  let arguments = (ins Weft_FloatTensor:$query, Weft_FloatTensor:$key, Weft_FloatTensor:$value,
                       Optional<Weft_CounterTensor>:$seed, Optional<Weft_CounterTensor>:$step,
                       Optional<Index>:$layer, Optional<Weft_IdTensor>:$starts,
                       Variadic<Index>:$offsets, Optional<Index>:$turn,
                       F64Attr:$scale, F64Attr:$dropout, OptionalAttr<I64Attr>:$window,
                       UnitAttr:$bidirectional,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape,
                       OptionalAttr<Weft_ZigzagAttr>:$order,
                       OptionalAttr<Weft_MeshAttr>:$mesh, OptionalAttr<StrArrayAttr>:$axes,
                       OptionalAttr<I64Attr>:$turns);
  let results = (outs Weft_FloatTensor:$output, Weft_FloatTensor:$lse);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `(` $query `,` $key `,` $value `)` `scale` `=` $scale `dropout` `=` $dropout
    (`window` `=` $window^)? (`bidirectional` $bidirectional^)? (`key` `(` $seed^ `,` $step `,` $layer `:` type($seed) `,` type($step) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? (`order` $order^)? (`turn` $turn^)?
    (`turns` $turns^)?
    (`over` $axes^ `of` $mesh)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($output) `,` type($lse)
  }];
}

def Weft_AttentionGradOp : Weft_Op<"attention_grad", [Pure, Weft_Permutation,
    AttrSizedOperandSegments,
    Weft_Shardable<["getPositionFactors", "setPosition", "getPosition", "setUnpaddedSizes",
                    "setOrder", "mayBePadded", "isNothingBeyond",
                    "getCost"]>]> {
  let summary = "derivative of attention";
  let description = [{
    Gradients of query, key and value from that of the output; the weights are computed
    again from `lse`, row by row. The constraints are those of attention.

    **Constraints:**
    - attention_grad_c1: all have one element type but lse and the gradients that it results in,
      which are sums over positions: these have its wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$query, Weft_FloatTensor:$key, Weft_FloatTensor:$value,
                       Weft_FloatTensor:$output, Weft_FloatTensor:$lse,
                       Weft_FloatTensor:$gradient,
                       Optional<Weft_CounterTensor>:$seed, Optional<Weft_CounterTensor>:$step,
                       Optional<Index>:$layer, Optional<Weft_IdTensor>:$starts,
                       Variadic<Index>:$offsets, Optional<Index>:$turn,
                       F64Attr:$scale, F64Attr:$dropout, OptionalAttr<I64Attr>:$window,
                       UnitAttr:$bidirectional,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape,
                       OptionalAttr<Weft_ZigzagAttr>:$order,
                       OptionalAttr<Weft_MeshAttr>:$mesh, OptionalAttr<StrArrayAttr>:$axes,
                       OptionalAttr<I64Attr>:$turns);
  let results = (outs Weft_FloatTensor:$query_gradient, Weft_FloatTensor:$key_gradient,
                      Weft_FloatTensor:$value_gradient);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `(` $query `,` $key `,` $value `)` `output` `(` $output `,` $lse `)`
    `gradient` `(` $gradient `)` `scale` `=` $scale `dropout` `=` $dropout
    (`window` `=` $window^)? (`bidirectional` $bidirectional^)? (`key` `(` $seed^ `,` $step `,` $layer `:` type($seed) `,` type($step) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? (`order` $order^)? (`turn` $turn^)?
    (`turns` $turns^)?
    (`over` $axes^ `of` $mesh)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($lse)
    `,` type($gradient)
    `->` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient)
  }];
}

def Weft_CrossEntropyOp : Weft_Op<"cross_entropy", [Pure, Weft_Differentiable,
    Weft_Shardable<["getPositionFactors", "setPosition", "getPosition", "setUnpaddedSizes",
                    "isNothingBeyond", "getCost"]>]> {
  let summary = "the two halves of a cross-entropy loss";
  let description = [{
    `lse[i…]` is the logarithm of the sum of exp(logits[i…, v]) over v, `picked[i…]` the
    logit of the target, zero where that lies outside of the shard that this rank holds.
    The loss of a token is lse - picked. Over a cut vocabulary lse is pending by
    log-sum-exp and picked by a sum: logits are never gathered.

    **Constraints:**
    - cross_entropy_c1: lse, picked and targets have the logits' shape without its last
      dimension.
    - cross_entropy_c2: lse and picked have the wide type of the logits'.
    - cross_entropy_c3: `columns` is one number, at least 1.

    `columns` is how many columns the whole has, where it is padded: others do not count.
  }];
  let arguments = (ins Weft_FloatTensor:$logits, Weft_IdTensor:$targets,
                       Optional<Index>:$offset, OptionalAttr<DenseI64ArrayAttr>:$columns);
  let results = (outs Weft_FloatTensor:$lse, Weft_FloatTensor:$picked);
  let assemblyFormat = [{
    $logits `[` $targets `]` (`offset` $offset^)? (`of` $columns^)? attr-dict
    `:` type($logits) `[` type($targets) `]` `->` type($lse) `,` type($picked)
  }];
  let hasVerifier = 1;
}

def Weft_CrossEntropyGradOp : Weft_Op<"cross_entropy_grad", [Pure,
    Weft_Shardable<["getPositionFactors", "setPosition", "getPosition", "setUnpaddedSizes",
                    "isNothingBeyond", "getCost"]>]> {
  let summary = "gradient of the logits";
  let description = [{
    `output[i…, v] = exp(logits[i…, v] - lse[i…]) * lse_gradient[i…]`, and
    picked_gradient[i…] added at the target.

    **Constraints:**
    - cross_entropy_grad_c1: the output has the logits' element type, lse and its gradients the
      wide type.
    - cross_entropy_grad_c2: `columns` is one number, at least 1.

    Beyond `columns`, which is as in cross_entropy, the output is zero.
  }];
  let arguments = (ins Weft_FloatTensor:$logits, Weft_IdTensor:$targets,
                       Weft_FloatTensor:$lse, Weft_FloatTensor:$lse_gradient,
                       Weft_FloatTensor:$picked_gradient, Optional<Index>:$offset,
                       OptionalAttr<DenseI64ArrayAttr>:$columns);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $logits `[` $targets `]` `lse` `(` $lse `)` `gradient` `(` $lse_gradient `,`
    $picked_gradient `)` (`offset` $offset^)? (`of` $columns^)? attr-dict `:` type($logits) `[` type($targets) `]`
    `,` type($lse) `,` type($lse_gradient) `,` type($picked_gradient) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_ReorderOp : Weft_Op<"reorder", [Pure,
    Weft_Shardable<["isAdditiveIn", "getPositionFactors", "setPosition", "getPosition", "mayBePadded",
                    "getCost"]>]> {
  let summary = "positions stored in another order";
  let description = [{
    Along dimension `dim`, the input is stored by position, and the output in `order`; `inverse`
    the other way round. The input must be whole along it.

    **Constraints:**
    - reorder_c1: the input has the dimension, with as many positions as the order.
    - reorder_c2: the output has the input's shape and element type.
  }];
  let arguments = (ins Weft_Tensor:$input, I64Attr:$dim, Weft_ZigzagAttr:$order,
                       UnitAttr:$inverse, Optional<Index>:$offset);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $input `dim` $dim `order` $order (`offset` $offset^)? attr-dict
    `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_DropoutOp : Weft_Op<"dropout", [Pure, Weft_Differentiable,
    Weft_Shardable<["isAdditiveIn", "getPositionFactors", "setPosition", "getPosition", "setUnpaddedSizes",
                    "setOrder", "getCost"]>]> {
  let summary = "drops elements at random, and scales the others";
  let description = [{
    Element i (row-major index in the whole tensor) is kept, times 1 / (1 - rate), or
    becomes zero, as the generator of `docs/Numerics.md` says from seed, step, layer and
    site. The derivative drops the same elements of the gradient; no mask is kept. An element's
    index is that of its position, also where positions are stored in another `order`.

    **Constraints:**
    - dropout_c1: the rate lies in (0, 1).
    - dropout_c2: offsets come with the shape of the whole, one for each dimension; a shape
      without offsets is that of a whole that is padded.
    - dropout_c3: input and output have one element type.
    - dropout_c4: an order and the dimension that is stored in it are given together; the whole has
      as many positions there, its padding included.
  }];
  let arguments = (ins Weft_FloatTensor:$input, Weft_CounterTensor:$seed,
                       Weft_CounterTensor:$step, Index:$layer, Variadic<Index>:$offsets,
                       F64Attr:$rate, I64Attr:$site,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape,
                       OptionalAttr<Weft_ZigzagAttr>:$order,
                       OptionalAttr<I64Attr>:$ordered_dim);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $input `rate` `=` $rate `site` `=` $site
    `key` `(` $seed `,` $step `,` $layer `:` type($seed) `,` type($step) `)`
    (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? (`order` $order^ `dim` $ordered_dim)?
    attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

#endif // WEFT_MODEL_OPS_TD
