//===- WeftShapeOps.td - ops on the shapes of tensors ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imported graphs need these ops; of models that Weft builds only those whose variables are padded
// (pad-variables). A transposition is a contraction
// of one operand, `weft.contract "abc->acb"`. None of these ops moves data between ranks:
// `weft.extract` takes the same part on every rank, `weft.slice` takes each rank's own shard.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SHAPE_OPS_TD
#define WEFT_SHAPE_OPS_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_ReshapeOp : Weft_Op<"reshape", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "dimensions merged into one, or one split into several";
  let description = [{
    `groups` lists, for each dimension of the tensor with fewer dimensions, the dimensions of the
    other tensor that it merges, the first major. Elements keep their row-major order: nothing is
    moved, and the result takes the input's storage.

    ```mlir
    %heads = weft.reshape %x [[0], [1], [2, 3]] : tensor<?x197x768xf32> -> tensor<?x197x12x64xf32>
    ```

    A merged dimension is cut as the first of its group that is longer than 1; the others of the
    group are whole. A cut of `768` over four ranks is one of `12`: each rank has three heads. Other
    cuts are not possible.

    **Constraints:**
    - reshape_c1: the groups list the dimensions of the tensor with more of them in order, each
      once, and there is one group for each dimension of the other.
    - reshape_c2: a dimension's size is the product of its group's sizes; a dimension of unknown
      size is a group by itself.
    - reshape_c3: input and output have one element type.
  }];
  let arguments = (ins Weft_Tensor:$input, IndexListArrayAttr:$groups);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$input $groups attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// For each dimension of the tensor with fewer of them, those of the other.
    ::llvm::SmallVector<::llvm::SmallVector<int64_t>> getGroupLists();
  }];
}

def Weft_ConcatOp : Weft_Op<"concat", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "tensors joined along a dimension";
  let description = [{
    The operands follow one another along `dim`, which is whole on every rank.

    **Constraints:**
    - concat_c1: there is at least one operand, and `dim` is a dimension of the output.
    - concat_c2: along `dim` the operands' sizes are known and add up to the output's.
    - concat_c3: all element types agree.
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs) `->` type($output)";
  let hasVerifier = 1;
}

def Weft_SplitOp : Weft_Op<"split", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable]> {
  let summary = "a tensor split along a dimension";
  let description = [{
    The reverse of `weft.concat`, and its derivative. The results follow one another along `dim`,
    which is whole on every rank.

    **Constraints:**
    - split_c1: there is at least one result, and `dim` is a dimension of the input.
    - split_c2: along `dim` the results' sizes are known and add up to the input's.
    - split_c3: all element types agree.
  }];
  let arguments = (ins Weft_Tensor:$input, I64Attr:$dim);
  let results = (outs Variadic<Weft_Tensor>:$outputs);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` type($input) `->` type($outputs)";
  let hasVerifier = 1;
}

def Weft_ExtractOp : Weft_Op<"extract", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable,
    Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "a part of a tensor, by offsets and strides";
  let description = [{
    `output[i…] = input[offsets + i * strides…]`. Only dimensions that are extracted as a whole may
    be cut.

    **Constraints:**
    - extract_c1: there are one offset, not negative, and one stride, at least 1, for each
      dimension.
    - extract_c2: all extracted elements lie inside of the input; a dimension of unknown size is
      extracted as a whole.
    - extract_c3: input and output have one element type.
  }];
  let arguments = (ins Weft_Tensor:$input, DenseI64ArrayAttr:$offsets,
                       DenseI64ArrayAttr:$strides);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = [{
    $input `from` $offsets `by` $strides attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns true if all of dimension `dim` is extracted.
    bool isWhole(int64_t dim);
  }];
}

def Weft_PadOp : Weft_Op<"pad", [Pure, Weft_Additive, Weft_Cost, Weft_Differentiable,
    Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "a tensor with a constant around and between its elements";
  let description = [{
    Adds `low` and `high` elements of `value` before and after a dimension, and `interior` between
    two neighbours. With `value` 0 this is the derivative of `weft.extract`. Only dimensions without
    padding may be cut.

    **Constraints:**
    - pad_c1: there are one `low`, one `high` and one `interior` for each dimension, not negative.
    - pad_c2: a dimension of the output is as long as that of the input with its padding; a
      dimension of unknown size has no padding.
    - pad_c3: input and output have one element type.
  }];
  let arguments = (ins Weft_FloatTensor:$input, F64Attr:$value, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior);
  let results = (outs Weft_FloatTensor:$output);
  let assemblyFormat = [{
    $input `with` $value `low` $low `high` $high `interior` $interior attr-dict
    `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns true if dimension `dim` has no padding.
    bool isWhole(int64_t dim);
  }];
}

def Weft_SelectOp : Weft_Op<"select", [Pure, Weft_Additive, Weft_Cost]> {
  let summary = "the element of a tensor at one index of the first dimension";
  let description = [{
    `output[i…] = input[index, i…]`. The first dimension is whole on every rank. The op takes a
    micro-batch from the input of all micro-batches.

    ```mlir
    %part = weft.select %tokens[%number] : tensor<4x2x128xi32> -> tensor<2x128xi32>
    ```

    **Constraints:**
    - select_c1: the output has the input's dimensions without the first.
    - select_c2: input and output have one element type.
  }];
  let arguments = (ins Weft_Tensor:$input, Index:$index);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$input `[` $index `]` attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

#endif // WEFT_SHAPE_OPS_TD
