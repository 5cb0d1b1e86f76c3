//===- WeftQuantizeOps.td - rounding to FP8 numbers --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_QUANTIZE_OPS_TD
#define WEFT_QUANTIZE_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_AmaxOp : Weft_Op<"amax", [Pure, Weft_Shardable, Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "the greatest absolute value of a tensor";
  let description = [{
    0 for a tensor without elements; NaN if an element is NaN. If the tensor is cut, each rank has
    the greatest value of its shard: the result is unreduced, by maximum.

    With a `history`, Differentiate replaces the result by the greatest value of earlier steps, and
    records this step's value for later steps; the attribute does not occur after.

    **Constraints:**
    - amax_c1: the result has no dimensions, and its type is the input's wide type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, OptionalAttr<Weft_HistoryAttr>:$history);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

def Weft_QuantizeOp : Weft_Op<"quantize", [Pure, Weft_Differentiable,
    Weft_Shardable, Weft_Cost, Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "rounding to the nearest numbers of an FP8 format";
  let description = [{
    `output = round(input * scale) / scale`. The scale is the greatest power of two for which `amax
    * scale` is at most the greatest number of the format; `amax` is the greatest absolute value of
    the whole input, or of earlier steps. Rounding is to the nearest number of the format, at a tie
    to the one with an even mantissa. Greater numbers become the greatest number of the format.
    Numbers that are not finite do not change. The result is not FP8, but exact: the format's 3 or 4
    significant bits times a power of two.

    Its derivative is taken as 1, although the function is a step function ("straight-through").

    ```mlir
    %m = weft.amax %x : tensor<8x16xf32> -> tensor<f32>
    %q = weft.quantize e4m3 %x by %m : tensor<8x16xf32>, tensor<f32> -> tensor<8x16xbf16>
    ```

    **Constraints:**
    - quantize_c1: `amax` has no dimensions, and its type is the input's wide type.
    - quantize_c2: the output has the input's shape, and the input's element type or, for a wide
      input, a narrow type whose wide type it is.
  }];
  let arguments = (ins Weft_Float8Attr:$format, Weft_FloatTensor:$input, Weft_FloatTensor:$amax);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    `` $format $input `by` $amax attr-dict `:` type($input) `,` type($amax) `->` type($output)
  }];
  let hasVerifier = 1;
}

#endif // WEFT_QUANTIZE_OPS_TD
