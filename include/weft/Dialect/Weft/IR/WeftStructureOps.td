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
    A value that outlives a step. `dimensions` names the dimensions by their meaning
    (batch, sequence, vocab, hidden, kv_heads, group, head, ffn, positions), which is how a
    plan speaks of them. Only a parameter with `decay` takes part in weight decay. A statistic
    belongs to the model as parameters do, but has no gradient: the loss itself assigns it, as
    batch norm does with its running means.

    `matrix [b, r]` says that an optimizer may see a parameter as matrices: its first b dimensions
    number them, the next r are together the rows, the others the columns.

    ```mlir
    weft.variable parameter @head.weight ["vocab", "hidden"] decay : tensor<256x128xf32>
    ```

    **Constraints:**
    - variable_c1: one name for each dimension, no name twice.
    - variable_c2: only a parameter may decay.
    - variable_c3: its element type is not narrow: what outlives a step is held in full.
    - variable_c4: only a parameter has a matrix, of at least one dimension for rows and for columns.
    - variable_c5: `unpadded` has one size for each dimension, from 1 to that of the type, and
      differs from the type's shape.

    `unpadded` is the shape that the outside knows, where the type is larger so that it can be
    cut: see pad-dimensions. What lies beyond it is zero, but of inputs.
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
    - read_c1: the symbol is a variable of the result's type, or, once tensors are local, the
      result has the shape of a rank's shard of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Weft_Tensor:$output);
  let assemblyFormat = "$variable attr-dict `:` type($output)";
}

def Weft_AssignOp : Weft_Op<"assign", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a variable from the end of the step on";
  let description = [{
    Reads of the same step do not see it.

    **Constraints:**
    - assign_c1: the symbol is a variable other than an input of the value's type, or, once
      tensors are local, the value has the shape of a rank's shard of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Weft_Tensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def Weft_ObserveOp : Weft_Op<"observe"> {
  let summary = "a value that the outside may look at, at this place in the step";
  let description = [{
    See `weft::rt::Observation` for the names that the runtime knows. Once tensors are local,
    `layout` is the type, with its sharding, of the whole value.

    **Constraints:**
    - observe_c1: `layout` is a tensor type; where it has a sharding, the value is a rank's shard
      of it.
    - observe_c2: `unpadded` has one size for each dimension, from 1 to that of the whole, and
      differs from the shape of the whole.
    - observe_c3: `limit` and `mean` are finite and above 0, and of what has a dimension.

    `unpadded` is the shape of what is looked at, where the value is padded: see pad-dimensions.
    An element above `limit` stops the run; `mean` is what the limit was said to be a multiple of.
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

def Weft_CallOp : Weft_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one use of a layer";
  let description = [{
    `label` says which ("layers.3"); reports and dumps use it.

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
    Weft_Differentiable, Weft_Additive]> {
  let summary = "a value that shall be cut in a certain way where it stands";
  let description = [{
    The same value. `dims` has for each dimension the axes that cut it, major to minor, or `unit`
    where that is left open; nothing is pending. Its gradient is constrained alike. Of constraints
    that do not agree on one value, that with the lower `priority` holds, from 0 on: see
    resolve-constraints. What stands around it is chosen by cost, as if a plan had pinned it.
    Partition takes it away, and nothing is left of it.

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

def Weft_OptimizerOp : Weft_Op<"optimizer"> {
  let summary = "how parameters follow their gradients";
  let description = [{
    At most one in a module; Differentiate replaces it by update functions. The formulas are
    those of `docs/Numerics.md`. `clip` is the global gradient norm to clip to, 0 for none. Muon
    updates the parameters that are matrices by `momentum`, `nesterov`, `iterations` and `scale`, and
    the others as AdamW does, at `other_rate` times the learning rate. `loss_scale` is what the loss
    is multiplied by in the first step, 0 for nothing; after `scale_interval` steps, 0 for never, that
    were not skipped it is multiplied by `scale_factor`, and divided by that where one is skipped.

    **Constraints:**
    - optimizer_c1: rates and decays are not negative, beta1, beta2 and momentum lie in [0, 1).
    - optimizer_c2: warm-up and total number of steps are not negative.
    - optimizer_c3: Muon has 1 to 100 iterations.
    - optimizer_c4: a loss scale is 0, or 1 to 2^24; its interval is not negative, its factor at least 1.
  }];
  let arguments = (ins Weft_OptimizerKindAttr:$kind, F64Attr:$learning_rate,
      DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2,
      DefaultValuedAttr<F64Attr, "1e-8">:$epsilon, DefaultValuedAttr<F64Attr, "0.0">:$momentum,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "0.0">:$clip,
      UnitAttr:$nesterov, DefaultValuedAttr<I64Attr, "5">:$iterations,
      DefaultValuedAttr<Weft_MuonScaleAttr, "MuonScale::RMS">:$scale,
      DefaultValuedAttr<F64Attr, "1.0">:$other_rate,
      Weft_DecayKindAttr:$decay, I64Attr:$warmup_steps, I64Attr:$total_steps,
      F64Attr:$final_fraction, DefaultValuedAttr<F64Attr, "0.0">:$loss_scale,
      DefaultValuedAttr<I64Attr, "0">:$scale_interval,
      DefaultValuedAttr<F64Attr, "2.0">:$scale_factor);
  let assemblyFormat = [{
    `` $kind `learning_rate` $learning_rate `decay` `` $decay `warmup` $warmup_steps
    `steps` $total_steps `final` $final_fraction attr-dict
  }];
  let hasVerifier = 1;
}

#endif // WEFT_STRUCTURE_OPS_TD
