//===- WeftComputeOps.td - maps, contractions and values without operands ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COMPUTE_OPS_TD
#define WEFT_COMPUTE_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_MapOp : Weft_Op<"map", [Pure, Weft_Additive, Weft_Cost, Weft_Padding<["isNothingBeyond"]>,
    Weft_Differentiable,
    SingleBlockImplicitTerminator<"YieldOp">, IsolatedFromAbove]> {
  let summary = "elementwise function of tensors";
  let description = [{
    Computes every result element from one element of each operand by the scalar code
    in its region (ops of `arith` and `math`). All results have one shape, that of the iteration
    space. `maps` lists for each operand its dimensions of the iteration space, in rising order, so
    that a bias or a scalar is broadcast.

    ```mlir
    %y = weft.map ins(%x, %b : tensor<8x16xf32>, tensor<16xf32>)
        maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x16xf32> {
    ^bb0(%0: f32, %1: f32):
      %2 = arith.addf %0, %1 : f32
      weft.yield %2 : f32
    }
    ```

    The sum of pending sums is a pending sum, and so is a pending sum times a value that is not
    pending. The product of two pending sums, a function like `exp` of one, or a constant added to
    one is not. An analysis of the region decides (`isAdditiveIn`).

    **Constraints:**
    - map_c1: there is one map for each operand, from the iteration space to distinct dimensions of
      it in rising order.
    - map_c2: all results have the same shape, and an operand's dimensions have the sizes of its
      map's results.
    - map_c3: the region takes one scalar for each operand and yields one for each result,
      of their element types.
    - map_c4: the region holds only scalar ops (see ScalarOpInterface).
    - map_c5: a narrow scalar is only converted, selected or constant: arithmetic is in its wide
      type.
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$inputs, AffineMapArrayAttr:$maps);
  let results = (outs Variadic<Weft_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`ins` `(` $inputs^ `:` type($inputs) `)`)? `maps` $maps attr-dict `->` type($outputs)
    $body
  }];
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$outputs, "::mlir::ValueRange":$inputs,
        "::mlir::ArrayRef<::mlir::AffineMap>":$maps,
        "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, "
        "::mlir::Location, ::mlir::ValueRange)>":$body)>,
  ];
  let extraClassDeclaration = [{
    /// Dimensions of the iteration space that operand `number` has.
    ::llvm::SmallVector<unsigned> getInputDims(unsigned number);
    ::mlir::RankedTensorType getOutputType(unsigned number = 0);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Weft_YieldOp : Weft_Op<"yield", [Pure, Terminator, ParentOneOf<["MapOp", "MapSumOp"]>]> {
  let summary = "ends the region of a map with the values of one element";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{}]>];
}

def Weft_MapSumOp : Weft_Op<"map_sum", [Pure,
    SingleBlockImplicitTerminator<"YieldOp">, IsolatedFromAbove]> {
  let summary = "sums of elementwise functions of tensors";
  let description = [{
    Computes a `weft.map` over the iteration space `space`, and sums each scalar that the region
    yields over all dimensions but those of `kept`. Schedule makes it from contractions, so that the
    summands need not be in memory; the op does not occur before.

    ```mlir
    %s = weft.map_sum ins(%x, %m : tensor<8x4x9xf32>, tensor<4xf32>)
        maps [affine_map<(n, c, p) -> (n, c, p)>, affine_map<(n, c, p) -> (c)>]
        over [8, 4, 9] to [1] -> tensor<4xf32> {
    ^bb0(%0: f32, %1: f32):
      %2 = arith.subf %0, %1 : f32
      weft.yield %2 : f32
    }
    ```

    **Constraints:**
    - map_sum_c1: there is one map for each operand, from the iteration space to distinct dimensions
      of it in rising order, and an operand's dimensions have the sizes of its map's results.
    - map_sum_c2: `kept` are dimensions in rising order, not the last; all results have their sizes.
    - map_sum_c3: the region takes one scalar for each operand and yields one for each result, of
      their element types.
    - map_sum_c4: the region fulfils the constraints of a map's region, and results are not narrow.
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$inputs, AffineMapArrayAttr:$maps,
                       DenseI64ArrayAttr:$space, DenseI64ArrayAttr:$kept);
  let results = (outs Variadic<Weft_FloatTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `ins` `(` $inputs `:` type($inputs) `)` `maps` $maps `over` $space `to` $kept attr-dict
    `->` type($outputs) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Weft_ContractOp : Weft_Op<"contract", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "einsum of one or two tensors: a sum of products";
  let description = [{
    `weft.contract "bsk,nk->bsn" (%x, %w)` multiplies elements that agree in the shared letters and
    sums over the letters that the result lacks. With one operand it is a plain sum: `"bsn->n"`.
    Sums are computed in the wide type; a narrow result is rounded once. With `gradient e5m2`, the
    gradient of the result is quantized to that format (see `weft.quantize`) before the operands'
    gradients are computed from it, with the scale of `gradient_history`, if given. With `tf32`,
    operands are rounded to 10 bits of fraction for the multiplication, as are those of the matmuls
    of its gradients.

    **Constraints:**
    - contract_c1: the equation has a term for each operand (one or two) and one for the result;
      each term has one lower-case letter for each dimension.
    - contract_c2: no letter occurs twice in a term, and every letter of the result
      occurs in an operand.
    - contract_c3: dimensions with the same letter have the same size.
    - contract_c4: all operands have one element type, the result has it or its wide type.
    - contract_c5: only a contraction of two operands quantizes its gradient.
    - contract_c6: only a contraction of two operands of f32 rounds them to tf32.
    - contract_c7: only a quantized gradient has a history.
  }];
  let arguments = (ins StrAttr:$equation, Variadic<Weft_FloatTensor>:$inputs,
                       OptionalAttr<Weft_Float8Attr>:$gradient_format, UnitAttr:$tf32,
                       OptionalAttr<Weft_HistoryAttr>:$gradient_history);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $equation `(` $inputs `)` (`gradient` $gradient_format^)? (`tf32` $tf32^)? attr-dict
    `:` functional-type($inputs, $output)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$output, "::llvm::StringRef":$equation,
        "::mlir::ValueRange":$inputs), [{
      build($_builder, $_state, output, equation, inputs, /*gradient_format=*/{}, /*tf32=*/false,
            /*gradient_history=*/{});
    }]>,
  ];
  let extraClassDeclaration = [{
    /// The terms of the equation: one for each operand, then the result's.
    ::llvm::SmallVector<::llvm::StringRef> getTerms();
  }];
  let hasVerifier = 1;
}

def Weft_MatmulOp : Weft_Op<"matmul", [Pure, AttrSizedOperandSegments,
                                         AttrSizedResultSegments]> {
  let summary = "a library's matmul with its epilogue";
  let description = [{
    A `weft.contract` of two operands. Before the library rounds the result, once, it adds `plus`,
    then `bias`, which all rows share, and then applies GELU (the approximation by tanh), or
    multiplies by the derivative of GELU at the operand of `gelu_gradient`. The op may also keep the
    operand of GELU, and sum `lhs` over the contracted dimensions. `tf32` means the same as in
    `weft.contract`. Schedule makes the op from contractions and maps, for devices whose library has
    such matmuls; it does not occur before.

    ```mlir
    %y, %x = weft.matmul "bk,nk->bn"(%a, %w) bias %c : tensor<16xbf16> gelu
        : tensor<8x32xbf16>, tensor<16x32xbf16> -> tensor<8x16xbf16> keeps tensor<8x16xbf16>
    ```

    **Constraints:**
    - matmul_c1: the equation has two operand terms and a result term; each has one lower-case
      letter for each dimension.
    - matmul_c2: `plus`, the operand of `gelu_gradient` and the kept value have the result's type.
    - matmul_c3: the bias has the last dimensions of the result, and its element type.
    - matmul_c4: the op applies GELU or its derivative, not both, and keeps a value only with GELU.
    - matmul_c5: sums have the dimensions of `lhs` that are not contracted, and the result's
      element type.
  }];
  let arguments = (ins StrAttr:$equation, Weft_FloatTensor:$lhs, Weft_FloatTensor:$rhs,
                       Optional<Weft_FloatTensor>:$addend, Optional<Weft_FloatTensor>:$bias,
                       Optional<Weft_FloatTensor>:$preactivation, UnitAttr:$gelu, UnitAttr:$tf32);
  let results = (outs Weft_FloatTensor:$output, Optional<Weft_FloatTensor>:$kept,
                      Optional<Weft_FloatTensor>:$sums);
  let assemblyFormat = [{
    $equation `(` $lhs `,` $rhs `)` (`plus` $addend^ `:` type($addend))?
    (`bias` $bias^ `:` type($bias))? (`gelu` $gelu^)?
    (`gelu_gradient` $preactivation^ `:` type($preactivation))? (`tf32` $tf32^)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($output) (`keeps` type($kept)^)?
    (`sums` type($sums)^)?
  }];
  let hasVerifier = 1;
}

def Weft_IotaOp : Weft_Op<"iota", [Pure, Weft_Shardable, Weft_Cost, Weft_Position]> {
  let summary = "the numbers 0, 1, 2, …";
  let arguments = (ins Optional<Index>:$offset);
  let results = (outs 1DTensorOf<[I32]>:$output);
  let assemblyFormat = "(`offset` $offset^)? attr-dict `:` type($output)";
}

def Weft_FillOp : Weft_Op<"fill", [Pure, AttrSizedOperandSegments,
    Weft_Shardable, Weft_Cost, Weft_Position, Weft_UnpaddedSizes, Weft_KernelNumbers,
    Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "initial values of a variable";
  let description = [{
    `constant`: every element is `value`. `normal`: element i (row-major index in the
    whole tensor) is drawn from a normal distribution of standard deviation `value` by
    the counter-based generator that `docs/Numerics.md` defines, from `seed` and `stream`; so an
    element does not depend on the sharding. In kernels the deviation is the number of type float64
    whose bits are `deviation`, and `value` is 1.

    **Constraints:**
    - fill_c1: `normal` has a seed and a stream, `constant` has neither.
    - fill_c2: a normal distribution has a positive standard deviation.
    - fill_c3: offsets are given together with the shape of the whole, one for each dimension, and
      only for a normal distribution; a shape without offsets is the unpadded shape of a padded
      whole.
    - fill_c4: only a normal distribution of value 1 has a deviation as an operand.
  }];
  let arguments = (ins Weft_DistributionAttr:$distribution, F64Attr:$value,
                       Optional<Weft_CounterTensor>:$seed, Optional<Index>:$stream,
                       Optional<Index>:$deviation,
                       Variadic<Index>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    `` $distribution $value (`seed` `(` $seed^ `:` type($seed) `)`)? (`stream` `(` $stream^ `)`)?
    (`deviation` `(` $deviation^ `)`)? (`offsets` `(` $offsets^ `)`)? (`of` $global_shape^)? attr-dict `:` type($output)
  }];
  let builders = [
    // A constant.
    OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$value)>,
    // A normal distribution.
    OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$deviation, "::mlir::Value":$seed,
                   "::mlir::Value":$stream)>,
  ];
  let hasVerifier = 1;
}

#endif // WEFT_COMPUTE_OPS_TD
