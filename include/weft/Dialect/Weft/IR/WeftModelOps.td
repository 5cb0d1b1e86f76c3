//===- WeftModelOps.td - ops of transformers ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MODEL_OPS_TD
#define WEFT_MODEL_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_NormOp : Weft_Op<"norm", [Pure, Weft_Shardable, Weft_Cost, Weft_Differentiable]> {
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

def Weft_NormGradOp : Weft_Op<"norm_grad", [Pure, Weft_Additive, Weft_Cost]> {
  let summary = "derivative of a norm";
  let description = [{
    Gradients of the input, of the scale, and of the bias if there is one. The statistics are
    recomputed from the input, which is read anyway.

    **Constraints:**
    - norm_grad_c1: gradient and input gradient have the input's element type; scale and the other
      gradients have its wide type.
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

def Weft_RotaryTableOp : Weft_Op<"rotary_table", [Pure, Weft_Shardable, Weft_Cost, Weft_Position]> {
  let summary = "cosines and sines of rotary position embeddings";
  let description = [{
    For position p, `output[0, p, i] = cos(p * frequencies[i])` and `output[1, p, i]` is the sine of
    the same angle; computed in float64.

    **Constraints:**
    - rotary_table_c1: the type is [2, positions, number of frequencies].
  }];
  let arguments = (ins F64ArrayAttr:$frequencies, Optional<Index>:$offset);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = "$frequencies (`offset` $offset^)? attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Weft_RotaryOp : Weft_Op<"rotary", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "rotation of pairs of features by their position";
  let description = [{
    With m frequencies in the table, features i and i + m (i < m) of the last dimension
    are rotated by the angle of (position, i); features from 2m on do not change. `inverse` rotates
    back, which is the derivative by the input; the table of `weft.rotary_table` counts as constant.
    The second dimension is the position.

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
    Weft_Additive, Weft_Cost, Weft_Position, Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "rows of a table by their numbers";
  let description = [{
    `output[i…, h] = table[ids[i…] - offset, h]`, and zero if that row lies outside of the table.
    With a cut table, each rank has some rows, and the result is pending by a sum.

    **Constraints:**
    - embedding_c1: the table has two dimensions; the output has the ids' dimensions followed by the
      table's second.
    - embedding_c2: the output has the table's element type, or its wide type.
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
    Weft_Additive, Weft_Cost, Weft_Position, Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "gradient of an embedding's table";
  let description = [{
    Row r of the result is the sum of `gradient[i…]` over all i with ids[i…] = offset + r,
    in the order of i.

    **Constraints:**
    - embedding_grad_c1: the gradient has the ids' dimensions and one more; the output has two
      dimensions, of which the second is this one.
    - embedding_grad_c2: the output's element type is the wide type of the gradient's.
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
    Weft_Shardable, Weft_Cost, Weft_Position, Weft_Order, Weft_UnpaddedSizes,
    Weft_Padding<["mayBePadded", "isNothingBeyond"]>]> {
  let summary = "attention with grouped queries";
  let description = [{
    query is [batch, position, KV head, query head in the group, feature], key
    [batch, position, KV head, feature], value the same but with its own number of features, which
    the output has too. The weights of a query are the softmax, over the keys up to its own
    position, of `scale` times the inner products of query and key; the output is the sum of values
    with these weights. `lse`, [batch, KV head, query head, position], is the logarithm of the
    softmax's denominator. The derivative needs no more, so no matrix of positions by positions is
    ever stored.

    With a window of w, a query sees only the w keys up to its own position. In bidirectional
    attention each query sees all keys.

    `starts`, [batch, position], are the first positions of the queries' documents: a query sees no
    key before them. They are positions in the whole sequence, never decrease along it, and are at
    most the query's own position.

    With a dropout rate above zero, weights are dropped by the generator of
    `docs/Numerics.md` from seed, step and layer (site 3), and the others scaled by
    1 / (1 - rate).

    The positions of keys and values are a factor of their own, a permutation whose partner is the
    queries' position: if queries are cut, keys may be whole, or cut alike. The offsets tell a shard
    which keys its queries see. With `over`, keys and values are shards, and the op stands for
    attention to the keys of all ranks of the group over these axes. With `turn` k, the keys and
    values are not those at the offset, but those of the k-th rank before, cyclically. `turns` is
    the number of ranks, given if their shards together are longer than the whole, because it is
    padded. If positions are stored in another `order`, offsets count stored positions. A query that
    sees no key has an lse of -1e30, so that its output has no weight when turns are joined.

    **Constraints:**
    - attention_c1: the shapes agree as said above.
    - attention_c2: seed, step and layer are given exactly when the dropout rate is above
      zero; the rate lies in [0, 1).
    - attention_c3: offsets are given together with sizes of the whole: of queries and keys, unless
      the attention is bidirectional; with dropout, of batch, KV heads, query heads in the group,
      queries and keys. Sizes without offsets are the unpadded sizes of a padded whole.
    - attention_c4: a window is at least 1.
    - attention_c5: query, key and value have one element type, the output this type or its wide
      type, lse its wide type.
    - attention_c6: a bidirectional attention has neither a window nor starts.
    - attention_c7: unless it is bidirectional, the whole has as many queries as keys.
    - attention_c9: an order has the number of positions of the whole, its padding included.
    - attention_c8: `over` names distinct axes of the mesh and excludes a turn; a turn needs
      offsets, and `turns` needs a turn.
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
    (`window` `=` $window^)? (`bidirectional` $bidirectional^)?
    (`key` `(` $seed^ `,` $step `,` $layer `:` type($seed) `,` type($step) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? (`order` $order^)? (`turn` $turn^)?
    (`turns` $turns^)?
    (`over` custom<GroupAxes>($axes, $mesh)^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($output) `,` type($lse)
  }];
}

def Weft_AttentionGradOp : Weft_Op<"attention_grad", [Pure, Weft_Permutation,
    AttrSizedOperandSegments,
    Weft_Shardable, Weft_Cost, Weft_Position, Weft_Order, Weft_UnpaddedSizes,
    Weft_Padding<["mayBePadded", "isNothingBeyond"]>]> {
  let summary = "derivative of attention";
  let description = [{
    Gradients of query, key and value from the output's gradient. The weights are recomputed from
    `lse`, row by row. The constraints are those of attention.

    **Constraints:**
    - attention_grad_c1: all operands but lse have one element type; lse and the results, which are
      sums over positions, have its wide type. All three results may have the operands' type.
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
    (`window` `=` $window^)? (`bidirectional` $bidirectional^)?
    (`key` `(` $seed^ `,` $step `,` $layer `:` type($seed) `,` type($step) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? (`order` $order^)? (`turn` $turn^)?
    (`turns` $turns^)?
    (`over` custom<GroupAxes>($axes, $mesh)^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($lse)
    `,` type($gradient)
    `->` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient)
  }];
}

def Weft_CrossEntropyOp : Weft_Op<"cross_entropy", [Pure, Weft_Differentiable,
    Weft_Shardable, Weft_Cost, Weft_Position, Weft_UnpaddedSizes,
    Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "the two halves of a cross-entropy loss";
  let description = [{
    `lse[i…]` is the logarithm of the sum of exp(logits[i…, v]) over v, `picked[i…]` the logit of
    the target, or zero if the target lies outside of this rank's shard. The loss of a token is lse
    - picked. If the vocabulary is cut, lse is pending by log-sum-exp and picked by a sum: logits
    are never gathered.

    **Constraints:**
    - cross_entropy_c1: lse, picked and targets have the logits' shape without its last
      dimension.
    - cross_entropy_c2: lse and picked have the wide type of the logits' element type.
    - cross_entropy_c3: `columns` is one number, at least 1.

    `columns` is the number of columns of the whole without its padding, which the op ignores.
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
    Weft_Shardable, Weft_Cost, Weft_Position, Weft_UnpaddedSizes,
    Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "gradient of the logits";
  let description = [{
    `output[i…, v] = exp(logits[i…, v] - lse[i…]) * lse_gradient[i…]`, and
    picked_gradient[i…] is added at the target.

    **Constraints:**
    - cross_entropy_grad_c1: the output has the logits' element type, lse and its gradients the
      wide type.
    - cross_entropy_grad_c2: `columns` is one number, at least 1.

    In the padding after `columns`, see cross_entropy, the output is zero.
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
    Weft_Additive, Weft_Cost, Weft_Position, Weft_Padding<["mayBePadded"]>]> {
  let summary = "change of the order in which positions are stored";
  let description = [{
    Along dimension `dim`, the input is stored by position, and the output in `order`; with
    `inverse` the other way round. The dimension must be whole.

    **Constraints:**
    - reorder_c1: the input has the dimension, with the order's number of positions.
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
    Weft_Additive, Weft_Cost, Weft_Position, Weft_Order, Weft_UnpaddedSizes]> {
  let summary = "drops elements at random, and scales the others";
  let description = [{
    Element i (row-major index in the whole tensor) is multiplied by 1 / (1 - rate), or becomes
    zero, as the generator of `docs/Numerics.md` decides from seed, step, layer and site. The
    derivative drops the same elements of the gradient; no mask is stored. The index counts
    positions, even if they are stored in another `order`.

    **Constraints:**
    - dropout_c1: the rate lies in (0, 1).
    - dropout_c2: offsets are given together with the shape of the whole, one for each dimension; a
      shape without offsets is the unpadded shape of a padded whole.
    - dropout_c3: input and output have one element type.
    - dropout_c4: an order and its dimension are given together; the whole has the order's number of
      positions there, its padding included.
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
