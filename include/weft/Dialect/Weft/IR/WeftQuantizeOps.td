//===- WeftQuantizeOps.td - FP8 numbers ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_QUANTIZE_OPS_TD
#define WEFT_QUANTIZE_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_AmaxOp : Weft_Op<"amax", [Pure, Weft_Shardable<["isNothingBeyond"]>]> {
  let summary = "the greatest absolute value of a tensor";
  let description = [{
    0 for a tensor without elements; not a number if an element is not. Of a tensor that is cut,
    each rank has the greatest of its shard: the result is unreduced, a maximum.

    With a `history`, Differentiate puts in its place the greatest of the steps before, and keeps
    the tensor's own for those that follow; the attribute does not occur after.

    **Constraints:**
    - amax_c1: the result has no dimensions and the input's wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, OptionalAttr<Weft_HistoryAttr>:$history);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

def Weft_QuantizeOp : Weft_Op<"quantize", [Pure, Weft_Differentiable,
    Weft_Shardable<["getCost", "isNothingBeyond"]>]> {
  let summary = "the nearest numbers that an FP8 format can hold";
  let description = [{
    `output = round(input * scale) / scale`: scale is the greatest power of two with which `amax`,
    the greatest absolute value of the whole input, is at most the greatest number of the format;
    rounding is to the nearest number of the format, at a tie to that with an even mantissa. What
    is beyond the greatest, where `amax` is of something else, becomes it; what is not finite stays
    so. The result is wide again, and exact: the format's 3 or 4 significant
    bits times a power of two.

    Its derivative is taken as 1, though the function is one of steps ("straight-through").

    ```mlir
    %m = weft.amax %x : tensor<8x16xf32> -> tensor<f32>
    %q = weft.quantize e4m3 %x by %m : tensor<8x16xf32>, tensor<f32> -> tensor<8x16xbf16>
    ```

    **Constraints:**
    - quantize_c1: `amax` has no dimensions and the input's wide type.
    - quantize_c2: the output has the input's shape, and its element type or, of a wide input, a
      type that has that as its wide type.
  }];
  let arguments = (ins Weft_Float8Attr:$format, Weft_FloatTensor:$input, Weft_FloatTensor:$amax);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    `` $format $input `by` $amax attr-dict `:` type($input) `,` type($amax) `->` type($output)
  }];
  let hasVerifier = 1;
}

#endif // WEFT_QUANTIZE_OPS_TD
