//===- WeftVisionOps.td - ops of image models --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Images are [sample, channel, place…] with one to three dimensions of places, which are always
// whole: cut, ranks would have to exchange their borders. Batch norm is not an op:
// `lib/Pipeline/Import/BuildBatchNorm.h` builds it from sums over groups of samples and maps.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VISION_OPS_TD
#define WEFT_VISION_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

/// Tensors that image models are computed in.
def Weft_ImageTensor : RankedTensorOf<[F32, F64, BF16, F16]>;
/// Statistics and exponentials.
def Weft_WideTensor : RankedTensorOf<[F32, F64]>;

/// An op whose window slides over the places. In dimension d, at k in the window, output p sees
/// input place p * strides[d] + k * dilations[d] - low[d]. The window may extend beyond the image
/// by `low` places before it and `high` after it.
class Weft_WindowOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, [Pure, Weft_Additive, Weft_Cost] # traits> {
  dag window = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                    DenseI64ArrayAttr:$dilations);
  let hasVerifier = 1;
}

def Weft_ConvolutionOp : Weft_WindowOp<"convolution", [Weft_Differentiable]> {
  let summary = "convolution, with groups, strides, padding and dilations";
  let description = [{
    input is [sample, channel, place…], kernel [output channel, channel in the group, place…].
    `output[n, o, p…]` is the sum over c and k of `kernel[o, c, k…]` times the input at channel c of
    o's group and the place that output p sees at k, or zero outside of the image. The number of
    groups is the input's channels over the kernel's; all groups have the same number of output
    channels.

    Samples and output channels may be cut; cut input channels give a pending sum. With several
    groups, channels of the input and of the output are cut together, by whole groups.

    **Constraints:**
    - convolution_c1: input, kernel and output have the same number of dimensions, three to five, of
      which only the first of input and output may have an unknown size.
    - convolution_c2: strides, low, high and dilations have an entry for each dimension of places,
      strides and dilations at least 1, the others not negative.
    - convolution_c3: the output has one place for each position of the window, at least one.
    - convolution_c4: the input's channels are a multiple of the kernel's, and the output's of the
      number of groups.
    - convolution_c5: both operands have one element type; the result has this type or its wide
      type.
    - convolution_c6: only a convolution of f32 has `tf32`, for the matmuls that Schedule makes from
      it (see `weft.contract`); Import sets it on convolutions with one group.
  }];
  let arguments = !con((ins Weft_ImageTensor:$input, Weft_ImageTensor:$kernel), window,
                       (ins UnitAttr:$tf32));
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    $input `by` $kernel `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`tf32` $tf32^)? attr-dict `:` type($input) `,` type($kernel) `->` type($output)
  }];
}

def Weft_ConvolutionInputGradOp : Weft_WindowOp<"convolution_input_grad"> {
  let summary = "gradient of a convolution's input";
  let description = [{
    Computed from the gradient of the output; a sum over output channels. The constraints are those
    of the convolution.
  }];
  let arguments = !con((ins Weft_ImageTensor:$gradient, Weft_ImageTensor:$kernel), window,
                       (ins UnitAttr:$tf32));
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    $gradient `by` $kernel `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`tf32` $tf32^)? attr-dict `:` type($gradient) `,` type($kernel) `->` type($output)
  }];
}

def Weft_ConvolutionKernelGradOp : Weft_WindowOp<"convolution_kernel_grad"> {
  let summary = "gradient of a convolution's kernel";
  let description = [{
    Computed from the gradient of the output; a sum over samples. The constraints are those of the
    convolution.
  }];
  let arguments = !con((ins Weft_ImageTensor:$input, Weft_ImageTensor:$gradient), window,
                       (ins UnitAttr:$tf32));
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    $input `by` $gradient `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`tf32` $tf32^)? attr-dict `:` type($input) `,` type($gradient) `->` type($output)
  }];
}

def Weft_PoolKind : Weft_Enum<"PoolKind", "the reduction of a window", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"Sum", 1, "sum">,
]>;
def Weft_PoolKindAttr : EnumAttr<Weft_Dialect, Weft_PoolKind, "pool_kind">;

def Weft_PoolOp : Weft_WindowOp<"pool", [Weft_Differentiable]> {
  let summary = "the greatest element of a window, or the sum of its elements";
  let description = [{
    For each sample and channel, over windows of `sizes` places; places outside of the image are
    ignored. A mean is a sum and a map that divides it.

    **Constraints:**
    - pool_c1: input and output have the same number of dimensions, three to five, of which only the
      first may have an unknown size.
    - pool_c2: sizes, strides, low, high and dilations have an entry for each dimension of places;
      sizes, strides and dilations at least 1, the others not negative.
    - pool_c3: the output has one place for each position of the window, at least one.
    - pool_c4: every window holds a place of the image.
    - pool_c5: all element types agree.
  }];
  let arguments = !con((ins Weft_PoolKindAttr:$kind, Weft_ImageTensor:$input,
                            DenseI64ArrayAttr:$sizes), window);
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    `` $kind $input `sizes` $sizes `strides` $strides `low` $low `high` $high
    `dilations` $dilations attr-dict `:` type($input) `->` type($output)
  }];
}

def Weft_PoolGradOp : Weft_WindowOp<"pool_grad"> {
  let summary = "gradient of a pool's input";
  let description = [{
    If a window has several greatest elements, the first in row-major order gets the gradient.

    **Constraints:**
    - pool_grad_c1: the input is given for `max` and not for `sum`.
    - pool_grad_c2: gradient and output fulfil the constraints of the pool, but the output, a sum,
      may have the wide type.
  }];
  let arguments = !con((ins Weft_PoolKindAttr:$kind, Weft_ImageTensor:$gradient,
                            Optional<Weft_ImageTensor>:$input, DenseI64ArrayAttr:$sizes), window);
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    `` $kind $gradient (`input` `(` $input^ `:` type($input) `)`)? `sizes` $sizes
    `strides` $strides `low` $low `high` $high `dilations` $dilations attr-dict
    `:` type($gradient) `->` type($output)
  }];
}

def Weft_GroupMeanOp : Weft_Op<"group_mean",
    [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "means over groups of neighbouring samples";
  let description = [{
    The first dimension is the sample. `count` neighbours are a group, and each of them gets the
    mean of the group. The derivative is the same function. If samples are cut, each rank has whole
    groups.

    **Constraints:**
    - group_mean_c1: input and output have the same shape, of at least one dimension, and element
      type.
    - group_mean_c2: `count` is at least 1, and the samples of every rank are a multiple of it.
  }];
  let arguments = (ins Weft_WideTensor:$input, I64Attr:$count);
  let results = (outs Weft_WideTensor:$output);
  let assemblyFormat = "$input `of` $count attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

def Weft_SoftmaxOp : Weft_Op<"softmax", [Pure, Weft_Differentiable,
    Weft_Shardable, Weft_Cost, Weft_UnpaddedSizes,
    Weft_Padding<["mayBePadded", "isNothingBeyond"]>]> {
  let summary = "exponentials along the last dimension, divided by their sum";
  let description = [{
    The greatest element is subtracted first, so that no exponential overflows.

    `columns` is the number of elements of a row without its padding, in which the output is zero.

    **Constraints:**
    - softmax_c1: input and output have the same shape, of at least one dimension, and element
      type.
    - softmax_c2: `columns` is one number, from 1 to the last dimension.
  }];
  let arguments = (ins Weft_WideTensor:$input, OptionalAttr<DenseI64ArrayAttr>:$columns);
  let results = (outs Weft_WideTensor:$output);
  let assemblyFormat = [{
    $input (`columns` $columns^)? attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

class Weft_ColumnsOp<string mnemonic> : Weft_Op<mnemonic, [Pure]> {
  let arguments = (ins Weft_ImageTensor:$input, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$dilations);
  let results = (outs Weft_ImageTensor:$output);
  let assemblyFormat = [{
    $input `sizes` $sizes `strides` $strides `low` $low `high` $high `dilations` $dilations
    attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_UnfoldOp : Weft_ColumnsOp<"unfold"> {
  let summary = "the places that a window sees, as one column for each output";
  let description = [{
    From [sample, channel, place…] to [sample, channel and place of the window, output place]; zero
    outside of the image. Schedule makes a convolution into this op and a matmul; the op does not
    occur before.

    **Constraints:**
    - unfold_c1: the input is an image, the attributes are those of a pool.
    - unfold_c2: the output has three dimensions, of the sizes said above.
    - unfold_c3: input and output have one element type.
  }];
}

def Weft_FoldOp : Weft_ColumnsOp<"fold"> {
  let summary = "sums of columns at the places that they come from";
  let description = [{
    The derivative of `weft.unfold`: from its result's shape to that of its input.

    **Constraints:**
    - fold_c1: output and input fulfil the constraints of unfold's input and output.
  }];
}

#endif // WEFT_VISION_OPS_TD
