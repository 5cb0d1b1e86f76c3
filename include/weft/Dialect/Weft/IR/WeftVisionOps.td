//===- WeftVisionOps.td - ops of image models --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Images are [sample, channel, place…] with one to three dimensions of places. These are always
// whole: to cut them, ranks would have to exchange the places at their borders. Batch norm is no
// op: it is sums over a group of samples and maps, see `lib/Pipeline/Import/BuildBatchNorm.h`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VISION_OPS_TD
#define WEFT_VISION_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

/// Tensors that image models are computed in.
def Weft_ImageTensor : RankedTensorOf<[F32, F64, BF16, F16]>;
/// Statistics and exponentials.
def Weft_WideTensor : RankedTensorOf<[F32, F64]>;

/// A window slides over the places. In dimension d, with k along the window, output p sees
/// input place p * strides[d] + k * dilations[d] - low[d]. `low` and `high` are how far the window
/// may reach out of the image.
class Weft_WindowOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, [Pure, Weft_Additive] # traits> {
  dag window = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                    DenseI64ArrayAttr:$dilations);
  let hasVerifier = 1;
}

def Weft_ConvolutionOp : Weft_WindowOp<"convolution", [Weft_Differentiable]> {
  let summary = "sum of products of a kernel with what it lies on";
  let description = [{
    input is [sample, channel, place…], kernel [output channel, channel in the group, place…].
    `output[n, o, p…]` is the sum over c and k of `kernel[o, c, k…]` times the input at channel c of
    o's group and the place that output p sees at k; zero outside of the image. There are as many
    groups as the input has times the channels of the kernel; each has as many output channels.

    Samples and output channels may be cut; cut channels give a pending sum. With several groups
    channels are cut by whole groups, those of the input and of the output together.

    **Constraints:**
    - convolution_c1: input, kernel and output have as many dimensions, three to five, of which
      only the first of input and output may have an unknown size.
    - convolution_c2: strides, low, high and dilations have an entry for each dimension of places,
      strides and dilations at least 1, the others not negative.
    - convolution_c3: the output has a place for each stride that the window fits in, at least one.
    - convolution_c4: the input's channels are a multiple of the kernel's, and the output's of the
      number of groups.
    - convolution_c5: both operands have one element type, the result has it or its wide type.
    - convolution_c6: only one of f32 rounds to tf32, in the matmuls that Schedule makes of it (see
      `weft.contract`); Import says so of those with one group.
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
    From the gradient of the output. Output channels are summed over. The constraints are those of
    the convolution.
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
    From the gradient of the output. Samples are summed over. The constraints are those of the
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

def Weft_PoolKind : Weft_Enum<"PoolKind", "what a window is made into", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"Sum", 1, "sum">,
]>;
def Weft_PoolKindAttr : EnumAttr<Weft_Dialect, Weft_PoolKind, "pool_kind">;

def Weft_PoolOp : Weft_WindowOp<"pool", [Weft_Differentiable]> {
  let summary = "the greatest element of a window, or the sum of its elements";
  let description = [{
    For each sample and channel, over windows of `sizes` places; places outside of the image count
    for nothing. A mean is a sum times a map.

    **Constraints:**
    - pool_c1: input and output have as many dimensions, three to five, of which only the first may
      have an unknown size.
    - pool_c2: sizes, strides, low, high and dilations have an entry for each dimension of places;
      sizes, strides and dilations at least 1, the others not negative.
    - pool_c3: the output has a place for each stride that the window fits in, at least one.
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
    Of a window with several greatest elements the first in row-major order gets the gradient.

    **Constraints:**
    - pool_grad_c1: the input is given for `max` and not for `sum`.
    - pool_grad_c2: what the constraints of the pool say holds for gradient and output, but that the
      output, a sum, may be of the wide type.
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

def Weft_GroupMeanOp : Weft_Op<"group_mean", [Pure, Weft_Additive, Weft_Differentiable]> {
  let summary = "means over groups of neighbouring samples";
  let description = [{
    The first dimension is the sample; `count` neighbours are a group, and each of them gets the
    mean of the group. So is the derivative. Cut, each rank has whole groups.

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
    Weft_Shardable<["isAdditiveIn", "getPositionFactors", "setPosition", "getPosition",
                    "setUnpaddedSizes", "mayBePadded", "isNothingBeyond", "getCost"]>]> {
  let summary = "exponentials along the last dimension, divided by their sum";
  let description = [{
    The greatest element is subtracted first, so that no exponential overflows.

    `columns` is how many elements a row has, where it is padded: beyond them the output is zero.

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
  let summary = "what each output of a window sees, as a column";
  let description = [{
    From [sample, channel, place…] to [sample, channel and place of the window, output place]; zero
    outside of the image. A convolution is then a matmul, which is what Schedule makes of it; the
    op does not occur before.

    **Constraints:**
    - unfold_c1: the input is an image, the attributes are those of a pool.
    - unfold_c2: the output has three dimensions, as long as said above.
    - unfold_c3: input and output have one element type.
  }];
}

def Weft_FoldOp : Weft_ColumnsOp<"fold"> {
  let summary = "sums of columns at the places that they come from";
  let description = [{
    The derivative of `weft.unfold`: from its result's shape to that of its input.

    **Constraints:**
    - fold_c1: what the constraints of unfold say holds for output and input.
  }];
}

#endif // WEFT_VISION_OPS_TD
