//===- WeftStructureOps.td - variables, layer calls, observations -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_STRUCTURE_OPS_TD
#define WEFT_STRUCTURE_OPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_VariableOp : Weft_Op<"variable", [Symbol]> {
  let summary = "a parameter, a statistic, an optimizer state or an input of the step";
  let description = [{
    A value that outlives a step. `dimensions` names the dimensions by their meaning (batch,
    sequence, vocab, hidden, kv_heads, group, head, ffn, positions), as plans do. Only a parameter
    with `decay` takes part in weight decay. A statistic belongs to the model like a parameter, but
    has no gradient: the loss function assigns it, as batch norm does its running means.

    With `matrix [b, r]` an optimizer may treat a parameter as matrices: its first b dimensions
    number the matrices, the next r are together their rows, the others their columns.

    ```mlir
    weft.variable parameter @head.weight ["vocab", "hidden"] decay : tensor<256x128xf32>
    ```

    **Constraints:**
    - variable_c1: there is one name for each dimension, no name twice.
    - variable_c2: only a parameter may decay.
    - variable_c3: its element type is not narrow: values that outlive a step have full precision.
    - variable_c4: only a parameter has a matrix, of at least one dimension for rows and for columns.
    - variable_c5: `unpadded` has one size for each dimension, from 1 to that of the type, and
      differs from the type's shape.

    `unpadded` is the shape in files and reports, if the type is padded so that it can be cut: see
    pad-dimensions. The padding is zero, except in inputs.
  }];
  let arguments = (ins Weft_VariableRoleAttr:$role, SymbolNameAttr:$sym_name,
                       StrArrayAttr:$dimensions, UnitAttr:$decay,
                       OptionalAttr<DenseI64ArrayAttr>:$matrix,
                       TypeAttrOf<Weft_Tensor>:$type,
                       OptionalAttr<DenseI64ArrayAttr>:$unpadded);
  let assemblyFormat = [{
    `` $role $sym_name $dimensions (`decay` $decay^)? (`matrix` $matrix^)?
    (`unpadded` $unpadded^)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::weft::VariableRole":$role, "::llvm::StringRef":$name,
                   "::mlir::ArrayAttr":$dimensions, "bool":$decay,
                   "::mlir::DenseI64ArrayAttr":$matrix, "::mlir::RankedTensorType":$type), [{
      build($_builder, $_state, role, name, dimensions, decay, matrix, type,
            ::mlir::DenseI64ArrayAttr());
    }]>,
  ];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def Weft_ReadOp : Weft_Op<"read", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a variable at the start of the step";
  let description = [{
    **Constraints:**
    - read_c1: the symbol is a variable of the result's type, or, once tensors are local, the result
      has the shape of a rank's shard of the variable.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$variable attr-dict `:` type($output)";
}

def Weft_AssignOp : Weft_Op<"assign", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a variable's new value, from the end of the step on";
  let description = [{
    Reads of the same step return the old value.

    **Constraints:**
    - assign_c1: the symbol is a variable, not an input, of the value's type, or, once tensors are
      local, the value has the shape of a rank's shard of the variable.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Weft_Tensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def Weft_ObserveOp : Weft_Op<"observe"> {
  let summary = "a value that the runtime may report or dump, at this point of the step";
  let description = [{
    `weft::rt::Observation` lists the names that the runtime knows. Once tensors are local, `layout`
    is the type of the whole value, with its sharding.

    **Constraints:**
    - observe_c1: `layout` is a tensor type; if it has a sharding, the value is a rank's shard of
      it.
    - observe_c2: `unpadded` has one size for each dimension, from 1 to that of the whole, and
      differs from the shape of the whole.
    - observe_c3: `limit` and `mean` are finite and above 0, and the value has a dimension.

    `unpadded` is the shape to report, if the value is padded: see pad-dimensions. An element above
    `limit` stops the run; the limit was given as a multiple of `mean`.
  }];
  let arguments = (ins StrAttr:$name, Weft_FloatTensor:$value, OptionalAttr<TypeAttr>:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$unpadded, OptionalAttr<F64Attr>:$limit,
                       OptionalAttr<F64Attr>:$mean);
  let assemblyFormat = [{
    $name `,` $value (`layout` $layout^)? (`unpadded` $unpadded^)? (`limit` $limit^ `mean` $mean)?
    attr-dict `:` type($value)
  }];
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::Value":$value), [{
      build($_builder, $_state, name, value, ::mlir::TypeAttr(), ::mlir::DenseI64ArrayAttr(),
            ::mlir::FloatAttr(), ::mlir::FloatAttr());
    }]>,
  ];
  let hasVerifier = 1;
}

def Weft_AgreeOp : Weft_Op<"agree"> {
  let summary = "all ranks decide together whether the run goes on";
  let description = [{
    It ends if on any rank a loss or norm that was observed before is not finite, or an observed
    value is above its limit. The section has assigned no variable by then.
  }];
  let assemblyFormat = "attr-dict";
}

def Weft_CallOp : Weft_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one use of a layer";
  let description = [{
    `label` names the use ("layers.3") in reports and dumps.

    **Constraints:**
    - call_c1: the callee is a function of this module with the types of operands and
      results.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, StrAttr:$label,
                       Variadic<AnyType>:$operands);
  let results = (outs Variadic<Weft_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $operands `)` `label` $label attr-dict `:` functional-type($operands, $outputs)
  }];
}

def Weft_ConstrainOp : Weft_Op<"constrain", [Pure, AllTypesMatch<["input", "output"]>,
    Weft_Differentiable, Weft_Additive, Weft_Cost]> {
  let summary = "a pinned sharding of a value";
  let description = [{
    Returns its operand. `dims` has for each dimension the axes that cut it, major to minor, or
    `unit` to leave it open; no axis is pending. The gradient is constrained alike. Of constraints
    that contradict each other on one value, the one with the lower `priority`, from 0 on, holds:
    see resolve-constraints. As with pins of a plan, the search chooses all other shardings by cost.
    Partition removes the op.

    ```mlir
    %1 = weft.constrain %0 [["dp"], unit, []] priority 1 : tensor<8x4x16xf32>
    ```

    **Constraints:**
    - constrain_c1: `dims` has axes by name, or unit, for each dimension; no axis twice.
    - constrain_c2: `priority` is not negative.
    - constrain_c3: once the value has a sharding, its dimensions are cut as `dims` says.
  }];
  let arguments = (ins Weft_Tensor:$input, ArrayAttr:$dims,
                       DefaultValuedAttr<I64Attr, "0">:$priority);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = [{
    $input $dims (`priority` $priority^)? attr-dict `:` type($output)
  }];
  let hasVerifier = 1;
}

def Weft_TransferOp : Weft_Op<"transfer", [Pure, AllTypesMatch<["input", "output"]>, Weft_Shardable,
    Weft_Cost, Weft_Padding<["isNothingBeyond"]>]> {
  let summary = "a value of one pipeline stage, for the ops of another";
  let description = [{
    Returns its operand. The ranks of stage `from` hold the operand, those of stage `to` the result,
    in the same sharding. See split-stages.

    ```mlir
    %1 = weft.transfer %0 from 0 to 1 : tensor<?x128x64xf32>
    ```

    **Constraints:**
    - transfer_c1: `from` and `to` differ and are not negative.
    - transfer_c2: the operand is not pending: sums are reduced before they leave a stage.
  }];
  let arguments = (ins Weft_Tensor:$input, I64Attr:$from, I64Attr:$to);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Weft_SendOp : Weft_Op<"send"> {
  let summary = "sends a tensor to another pipeline stage";
  let description = [{
    One half of a `weft.transfer`, in the module of stage `from`: the rank sends the tensor to the
    rank at the same place of stage `to`, whose module receives it by the same number. The numbers
    of a program's transfers are positive; all micro-batches use the same. See take-stage.

    ```mlir
    weft.send %0 to 1 number 3 : tensor<2x128x64xf32>
    ```

    **Constraints:**
    - send_c1: `to` is not negative, and `number` is positive.
  }];
  let arguments = (ins Weft_Tensor:$input, I64Attr:$to, I64Attr:$number);
  let assemblyFormat = "$input `to` $to `number` $number attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Weft_ReceiveOp : Weft_Op<"receive"> {
  let summary = "receives a tensor from another pipeline stage";
  let description = [{
    The other half of a `weft.transfer`, in the module of stage `to`. See `weft.send`.

    ```mlir
    %0 = weft.receive from 0 number 3 : tensor<2x128x64xf32>
    ```

    **Constraints:**
    - receive_c1: `from` is not negative, and `number` is positive.
  }];
  let arguments = (ins I64Attr:$from, I64Attr:$number);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "`from` $from `number` $number attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Weft_LaunchOp : Weft_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one run of a kernel";
  let description = [{
    Operands and results are those of the kernel function. `tied[i]` is the operand whose
    storage result i takes over, or -1: the kernel then works in place.

    **Constraints:**
    - launch_c1: the kernel is a function of this module with the types of operands and
      results.
    - launch_c2: `tied` has one entry for each result, -1 or the number of an operand of the
      same type, none twice.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands,
                       DenseI64ArrayAttr:$tied);
  let results = (outs Variadic<Weft_KernelTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $operands `)` `tied` $tied attr-dict `:` functional-type($operands, $outputs)
  }];
}

#endif // WEFT_STRUCTURE_OPS_TD
