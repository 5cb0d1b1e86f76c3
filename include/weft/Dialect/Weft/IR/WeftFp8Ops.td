//===- WeftFp8Ops.td - FP8 encoding and matmuls ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedule makes these for devices; nothing before it knows FP8 elements.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_FP8_OPS_TD
#define WEFT_FP8_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

/// A scale of FP8 numbers, or its inverse.
def Weft_ScalarTensor
    : Type<CPred<"$_self == ::weft::scalarType($_self.getContext())">, "tensor<f32>">,
      BuildableType<"::weft::scalarType($_builder.getContext())">;

def Weft_EncodeOp : Weft_Op<"encode", [Pure, AttrSizedResultSegments]> {
  let summary = "rounding to FP8 bytes, the operands of matmuls on devices";
  let description = [{
    Gives the bytes of `round(input * scale)`, with scale and rounding as in `weft.quantize`, and
    the factor 1 / scale: bytes times factor is the result of `weft.quantize`. Numbers that the same
    `amax` and `format` quantized before do not change. Numbers that are not finite become NaN.
    `rows` have the input's order of dimensions; in `turned` the first `lead` dimensions come last.

    ```mlir
    %b, %t, %f = weft.encode e5m2 %d by %m lead 2 : tensor<4x8x64xf32>
        -> rows tensor<4x8x64xf8E5M2> turned tensor<64x4x8xf8E5M2>
    ```

    **Constraints:**
    - encode_c1: the input is of f32 or of a narrow type.
    - encode_c2: there is a result of bytes; each has the format's type and the shape said above.
    - encode_c3: there is a result `turned` if and only if some, but not all, dimensions lead.
  }];
  let arguments = (ins Weft_Float8Attr:$format, Weft_FloatTensor:$input, Weft_ScalarTensor:$amax,
                       I64Attr:$lead);
  let results = (outs Optional<Weft_Fp8Tensor>:$rows, Optional<Weft_Fp8Tensor>:$turned,
                      Weft_ScalarTensor:$factor);
  let assemblyFormat = [{
    `` $format $input `by` $amax `lead` $lead attr-dict `:` type($input) `->`
    (`rows` type($rows)^)? (`turned` type($turned)^)?
  }];
  let hasVerifier = 1;
}

def Weft_Fp8MatmulOp : Weft_Op<"fp8_matmul", [Pure, AttrSizedOperandSegments]> {
  let summary = "a library's FP8 matmul";
  let description = [{
    A `weft.contract` of `lhs` times `lhs_factor` and `rhs` times `rhs_factor`, summed in f32.
    Before the library rounds the result, once, it adds `plus`, then `bias`, which all rows share.
    The contracted dimensions are the last of both operands.

    ```mlir
    %y = weft.fp8_matmul "bk,nk->bn"(%x, %w) factors(%f, %g) plus %r : tensor<16x32xbf16>
        : tensor<16x64xf8E4M3FN>, tensor<32x64xf8E4M3FN> -> tensor<16x32xbf16>
    ```

    **Constraints:**
    - fp8_matmul_c1: the equation has two operand terms and a result term; each has one lower-case
      letter for each dimension.
    - fp8_matmul_c2: not both operands are of f8E5M2; the result is of f32 or bf16.
    - fp8_matmul_c3: `plus` has the result's type; the bias has the last dimensions of the result,
      and its element type, bf16.
  }];
  let arguments = (ins StrAttr:$equation, Weft_Fp8Tensor:$lhs, Weft_Fp8Tensor:$rhs,
                       Optional<Weft_FloatTensor>:$addend, Optional<Weft_FloatTensor>:$bias,
                       Weft_ScalarTensor:$lhs_factor, Weft_ScalarTensor:$rhs_factor);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $equation `(` $lhs `,` $rhs `)` `factors` `(` $lhs_factor `,` $rhs_factor `)`
    (`plus` $addend^ `:` type($addend))? (`bias` $bias^ `:` type($bias))? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($output)
  }];
  let hasVerifier = 1;
}

#endif // WEFT_FP8_OPS_TD
