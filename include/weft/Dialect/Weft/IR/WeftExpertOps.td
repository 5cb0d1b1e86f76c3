//===- WeftExpertOps.td - routing of tokens to experts and back --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A routing is a mask [group, token, expert]: 1 where a token goes to an expert, else 0. Each
// expert has a buffer of slots for each group; the tokens that go to it fill its slots in their
// order. A token for which no slot is left is dropped. The other parts of a router, which select
// experts, weigh and count, are plain algebra on masks; only the last three ops know slots. For
// tokens x, slots y and weights w they are the three derivatives of one sum,
//
//   sum over tokens t and experts e of w[t, e] * x[t, h] * y[e, slot of t at e, h]
//
// so the derivative of each consists of the other two. The experts are a dimension like any other:
// cut over ranks, it gives expert parallelism.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_EXPERT_OPS_TD
#define WEFT_EXPERT_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

/// Type of masks, weights and scores of a routing.
def Weft_RoutingTensor : RankedTensorOf<[F32, F64]>;

/// Additive ops that count along a dimension, whose padding is at its end.
def Weft_PaddedAdditive : TraitList<[Weft_Additive, Weft_Cost,
    Weft_Padding<["mayBePadded", "isNothingBeyond"]>]>;

def Weft_TopKOp : Weft_Op<"top_k", [Pure, Weft_Differentiable,
    Weft_Shardable, Weft_Cost, Weft_UnpaddedSizes,
    Weft_Padding<["mayBePadded", "isNothingBeyond"]>]> {
  let summary = "1 at the greatest elements along the last dimension, 0 elsewhere";
  let description = [{
    Picks the `count` elements of each row with the greatest input + bias; of equal ones the one of
    lower index. With `groups`, a row is cut into that many equal groups of neighbours, and only
    elements of `kept_groups` groups are picked: of those with the greatest sums of their two
    greatest elements; of equal groups the lower ones. The result is piecewise constant and has no
    gradient.

    `columns` is the unpadded number of elements of a padded row: the groups consist of these, and
    padding is never picked.

    **Constraints:**
    - top_k_c1: input and output have the same shape, of at least one dimension, and element type;
      the bias is as long as the last dimension and has that type.
    - top_k_c2: `groups` divides the elements of a row, and `kept_groups` lies in [1, groups].
    - top_k_c3: `count` is at least 1 and at most the elements of the groups that are kept.
    - top_k_c4: `columns` is one number, from 1 to the last dimension.
  }];
  let arguments = (ins Weft_RoutingTensor:$input, Optional<Weft_RoutingTensor>:$bias,
                       I64Attr:$count, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$kept_groups,
                       OptionalAttr<DenseI64ArrayAttr>:$columns);
  let results = (outs Weft_RoutingTensor:$output);
  let assemblyFormat = [{
    $count `of` $input (`columns` $columns^)? (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_CumulativeSumOp : Weft_Op<"cumulative_sum", [Pure, Weft_Differentiable, Weft_PaddedAdditive]> {
  let summary = "for each element, the sum of all before it along one dimension";
  let description = [{
    The first element of the result is zero. `reverse` sums the elements after each instead, which
    is the derivative.

    **Constraints:**
    - cumulative_sum_c1: input and output have the same shape and element type.
    - cumulative_sum_c2: `dimension` is one of the input's.
  }];
  let arguments = (ins Weft_RoutingTensor:$input, I64Attr:$dimension, UnitAttr:$reverse);
  let results = (outs Weft_RoutingTensor:$output);
  let assemblyFormat = [{
    (`reverse` $reverse^)? $input `along` $dimension attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_DispatchOp : Weft_Op<"dispatch", [Pure, Weft_Differentiable, Weft_PaddedAdditive]> {
  let summary = "puts tokens into the slots of experts";
  let description = [{
    `output[e, g, c, h] = weights[g, t, e] * input[g, t, h]`, where t is the token in slot c of
    expert e; zero in empty slots. The output's shape gives the number of slots.

    **Constraints:**
    - dispatch_c1: the input is [group, token, hidden], weights and mask are [group, token, expert],
      the output is [expert, group, slot, hidden].
    - dispatch_c2: input and output have one element type, weights and mask its wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, Weft_RoutingTensor:$weights,
                       Weft_RoutingTensor:$mask);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $input `by` $weights `at` $mask attr-dict
    `:` type($input) `,` type($weights) `,` type($mask) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_CombineOp : Weft_Op<"combine", [Pure, Weft_Differentiable, Weft_PaddedAdditive]> {
  let summary = "for each token, the weighted sum of its experts' results";
  let description = [{
    `output[g, t, h]` is the sum over experts e, in their order, of `weights[g, t, e] *
    input[e, g, c, h]`, where c is the slot of token t at e; experts without a slot of the token add
    nothing.

    **Constraints:**
    - combine_c1: the input is [expert, group, slot, hidden], weights and mask are
      [group, token, expert], the output is [group, token, hidden].
    - combine_c2: weights, mask and output have the wide type of the input's element type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, Weft_RoutingTensor:$weights,
                       Weft_RoutingTensor:$mask);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $input `by` $weights `at` $mask attr-dict
    `:` type($input) `,` type($weights) `,` type($mask) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_SlotProductsOp : Weft_Op<"slot_products", [Pure, Weft_Differentiable, Weft_PaddedAdditive]> {
  let summary = "inner products of tokens with the contents of their slots";
  let description = [{
    `output[g, t, e]` is the sum over h of `tokens[g, t, h] * slots[e, g, c, h]`, where c is the
    slot of token t at expert e; zero if it has none.

    **Constraints:**
    - slot_products_c1: tokens are [group, token, hidden], slots [expert, group, slot, hidden], mask
      and output [group, token, expert].
    - slot_products_c2: tokens and slots have one element type, mask and output its wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$tokens, Weft_FloatTensor:$slots,
                       Weft_RoutingTensor:$mask);
  let results = (outs Weft_RoutingTensor:$output);
  let assemblyFormat = [{
    $tokens `,` $slots `at` $mask attr-dict
    `:` type($tokens) `,` type($slots) `,` type($mask) `->` type($output)
  }];
  let hasVerifier = 1;
}

#endif // WEFT_EXPERT_OPS_TD
