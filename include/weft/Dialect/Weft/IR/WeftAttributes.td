//===- WeftAttributes.td - meshes, shardings and enums ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ATTRIBUTES_TD
#define WEFT_ATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "weft/Dialect/Weft/IR/WeftDialect.td"

class Weft_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Weft_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Weft_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::weft";
  let genSpecializedAttr = 0;
}

/// How the shards of a partial value are joined into the whole.
def Weft_ReductionKind : Weft_Enum<"ReductionKind", "operator that joins partial values", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Max", 1, "max">,
  I32EnumAttrCase<"LogSumExp", 2, "logsumexp">,
]>;
def Weft_ReductionKindAttr : EnumAttr<Weft_Dialect, Weft_ReductionKind, "reduction">;

def Weft_NormKind : Weft_Enum<"NormKind", "which normalization", [
  I32EnumAttrCase<"Layer", 0, "layer">,
  I32EnumAttrCase<"RMS", 1, "rms">,
]>;
def Weft_NormKindAttr : EnumAttr<Weft_Dialect, Weft_NormKind, "norm_kind">;

def Weft_VariableRole : Weft_Enum<"VariableRole", "purpose of a variable", [
  I32EnumAttrCase<"Parameter", 0, "parameter">,
  I32EnumAttrCase<"Optimizer", 1, "optimizer">,
  I32EnumAttrCase<"Input", 2, "input">,
  I32EnumAttrCase<"Statistic", 3, "statistic">,
]>;
def Weft_VariableRoleAttr : EnumAttr<Weft_Dialect, Weft_VariableRole, "role">;

def Weft_Distribution : Weft_Enum<"Distribution", "how initial values are drawn", [
  I32EnumAttrCase<"Constant", 0, "constant">,
  I32EnumAttrCase<"Normal", 1, "normal">,
]>;
def Weft_DistributionAttr : EnumAttr<Weft_Dialect, Weft_Distribution, "distribution">;

/// The FP8 formats, named by their bits of exponent and mantissa. E4M3 is the variant without
/// infinities; its greatest number is 448, that of E5M2 is 57344.
def Weft_Float8 : Weft_Enum<"Float8", "FP8 format", [
  I32EnumAttrCase<"E4M3", 0, "e4m3">,
  I32EnumAttrCase<"E5M2", 1, "e5m2">,
]>;
def Weft_Float8Attr : EnumAttr<Weft_Dialect, Weft_Float8, "float8">;

def Weft_HistoryAttr : Weft_Attr<"History", "history"> {
  let summary = "the history of a tensor's greatest absolute values";
  let description = [{
    `#weft.history<"attention_norm" of 1024>` keeps the greatest absolute values of the last 1024
    steps. The name is the tensor's name in its function. A call's label before it makes it unique
    in the step.

    **Constraints:**
    - history_c1: the name is not empty, and there is at least one step.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$steps);
  let assemblyFormat = "`<` $name `of` $steps `>`";
  let genVerifyDecl = 1;
}

def Weft_ZigzagAttr : Weft_Attr<"Zigzag", "zigzag"> {
  let summary = "an order of positions that balances causal attention over shards";
  let description = [{
    A sequence of `chunks` times `length` positions is stored as its first chunk, its last, its
    second, its last but one, and so on. Each of `chunks / 2` shards has two chunks. In causal
    attention every shard then has the same number of keys to look at.

    `#weft.zigzag<4 x 2>` stores the positions 0 1 6 7 2 3 4 5.

    **Constraints:**
    - zigzag_c1: `chunks` is even, and both are at least 1.
  }];
  let parameters = (ins "int64_t":$chunks, "int64_t":$length);
  let assemblyFormat = "`<` $chunks `x` $length `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of positions.
    int64_t getSize() const { return getChunks() * getLength(); }
  }];
}

def Weft_DecayKind : Weft_Enum<"DecayKind", "how the learning rate falls after warm-up", [
  I32EnumAttrCase<"Constant", 0, "constant">,
  I32EnumAttrCase<"Linear", 1, "linear">,
  I32EnumAttrCase<"Cosine", 2, "cosine">,
]>;
def Weft_DecayKindAttr : EnumAttr<Weft_Dialect, Weft_DecayKind, "decay_kind">;

def Weft_MeshAttr : Weft_Attr<"Mesh", "mesh"> {
  let summary = "named axes of ranks, the last varying fastest";
  let description = [{
    `#weft.mesh<"dp"=2, "tp"=4>` is eight ranks in two rows of four. `#weft.mesh<>`
    is one rank.

    An axis may be split into sub-axes: `#weft.mesh<"dp"=2, "tp"=2x4>` has an axis "tp" of eight
    ranks with the parts "tp:(1)2" and "tp:(2)4" (`weft/Mesh/MeshParts.h`). The mesh lists parts: an
    axis that is not split is one part.

    **Constraints:**
    - mesh_c1: axis names are unique.
    - mesh_c2: every part has a size of at least 2 (a size of 1 would be a second
      spelling of no axis).
    - mesh_c3: an axis's name is not that of a sub-axis.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of ranks: the product of all sizes.
    int64_t getRankCount() const;
    /// Size of the part called `name`, or 0 if there is none.
    int64_t getSize(::mlir::StringAttr name) const;
    /// Product of the sizes of the parts `axes`, which must all exist.
    int64_t getSize(::mlir::ArrayAttr axes) const;
    /// Position of the part called `name`, or -1.
    int64_t getIndex(::mlir::StringAttr name) const;
    /// Coordinates of rank `rank`, one for each part.
    ::llvm::SmallVector<int64_t> getCoordinates(int64_t rank) const;
    /// The axes and their parts.
    MeshParts getParts() const;
    /// Returns the parts of the axes and sub-axes that `names` lists; leaves unknown names as they
    /// are.
    ::mlir::ArrayAttr splitNames(::mlir::ArrayAttr names) const;
    /// The reverse of splitNames: the fewest names for the parts that `names` lists.
    ::mlir::ArrayAttr joinNames(::mlir::ArrayAttr names) const;
  }];
}

def Weft_ShardingAttr : Weft_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "how a tensor is distributed over a mesh";
  let description = [{
    For each dimension the axes that cut it, major to minor; then the axes over which the value is
    unreduced, with the operator that joins the ranks' terms. `weft/Dialect/Weft/IR/Sharding.h`
    explains the algebra with examples.

    `tensor<8x512xf32, #weft.sharding<#mesh, [{"dp"}, {} ], unreduced = sum{"tp"}>>`

    The text names axes, or sub-axes such as "tp:(2)4" whose borders are borders of the mesh's
    parts. The attribute lists parts.

    **Constraints:**
    - sharding_c1: every axis exists in the mesh.
    - sharding_c2: no axis occurs twice, dimensions and unreduced axes together.
    - sharding_c3: there is one list of axes for each dimension of the tensor.
    - sharding_c4: the size of a dimension is a multiple of the number of shards.
    - sharding_c5: an operator is given if and only if there are unreduced axes (else it is `sum`).
    - sharding_c6: unreduced axes are in the order of the mesh.
    - sharding_c7: a tensor of a narrow type is not unreduced: its terms would be rounded before
      they are joined.
  }];
  let parameters = (ins "::weft::MeshAttr":$mesh,
                        ArrayRefParameter<"::mlir::ArrayAttr">:$dims,
                        "::mlir::ArrayAttr":$unreduced,
                        "::weft::ReductionKind":$reduction);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilderWithInferredContext<(ins "::weft::MeshAttr":$mesh,
        "::mlir::ArrayRef<::mlir::ArrayAttr>":$dims), [{
      return $_get(mesh.getContext(), mesh, dims,
                   ::mlir::ArrayAttr::get(mesh.getContext(), {}), ReductionKind::Sum);
    }]>,
    AttrBuilderWithInferredContext<(ins "::weft::MeshAttr":$mesh,
        "::mlir::ArrayRef<::mlir::ArrayAttr>":$dims, "::mlir::ArrayAttr":$unreduced,
        "::weft::ReductionKind":$reduction), [{
      return $_get(mesh.getContext(), mesh, dims, unreduced,
                   unreduced.empty() ? ReductionKind::Sum : reduction);
    }]>,
  ];
  let extraClassDeclaration = [{
    /// Returns the sharding of a tensor of `rank` dimensions that cuts nothing.
    static ShardingAttr getReplicated(MeshAttr mesh, int64_t rank);
    /// Returns this sharding without its unreduced axes.
    ShardingAttr getReduced() const;
    bool isReduced() const { return getUnreduced().empty(); }
    /// Number of shards that dimension `dim` is cut into.
    int64_t getShards(int64_t dim) const;
    /// Number of the shard of dimension `dim` that the rank at `coordinates` of the mesh holds.
    int64_t getShard(int64_t dim, ::mlir::ArrayRef<int64_t> coordinates) const;
    /// Shape of one rank's shard of a tensor of shape `shape`.
    ::llvm::SmallVector<int64_t> getLocalShape(::mlir::ArrayRef<int64_t> shape) const;
  }];
}

#endif // WEFT_ATTRIBUTES_TD
