//===- OpOptions.cpp - every way in which an op can be sharded ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpOptions.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace {

bool canPend(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType()) && !tensor.getElementType().isBF16();
}

class Enumeration {
public:
  Enumeration(ShardableOpInterface op, MeshAttr mesh)
      : op(op), mesh(mesh), rule(op.getFactorRule()), axesOf(rule.factors.size()) {
    findAdditiveOperands();
  }

  SmallVector<OpOption> run() {
    assign(0);
    return std::move(options);
  }

private:
  /// The sets of operands that may be pending together: each by itself, and all.
  void findAdditiveOperands() {
    bool joinsBySum = llvm::all_of(rule.reductions,
                                   [](ReductionKind kind) { return kind == ReductionKind::Sum; });
    if (!joinsBySum || !llvm::all_of(op->getResultTypes(), canPend)) {
      return;
    }
    SmallVector<unsigned> all;
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      if (canPend(type)) {
        all.push_back(number);
        if (op.isAdditiveIn({unsigned(number)})) {
          additive.push_back({unsigned(number)});
        }
      }
    }
    if (all.size() > 1 && op.isAdditiveIn(all)) {
      additive.push_back(all);
    }
  }

  void assign(size_t axis) {
    if (axis == mesh.getNames().size()) {
      return finish();
    }
    StringAttr name = mesh.getNames()[axis];
    assign(axis + 1);
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind != FactorKind::MustReplicate && factor.kind != FactorKind::Permutation) {
        cut(number, name, [&] {
          assign(axis + 1);
          cutPermutation(number, name, axis);
        });
      }
    }
    for (const SmallVector<unsigned> &operands : additive) {
      pending.push_back({name, operands});
      assign(axis + 1);
      pending.pop_back();
    }
  }

  /// A permutation is cut only where its partner is.
  void cutPermutation(unsigned partner, StringAttr name, size_t axis) {
    std::optional<unsigned> permuted = findPermutation(rule);
    if (permuted && rule.factors[*permuted].partner == partner) {
      cut(*permuted, name, [&] { assign(axis + 1); });
    }
  }

  /// Does the rest with factor `number` cut over one more axis, if it divides.
  void cut(unsigned number, StringAttr name, function_ref<void()> rest) {
    axesOf[number].push_back(name);
    if (rule.factors[number].size % pieces(axesOf[number]) == 0) {
      rest();
    }
    axesOf[number].pop_back();
  }

  int64_t pieces(ArrayRef<Attribute> axes) {
    return mesh.getSize(ArrayAttr::get(mesh.getContext(), axes));
  }

  void finish() {
    OpOption option;
    SmallVector<ArrayAttr> axes;
    for (auto [factor, ofFactor] : llvm::zip(rule.factors, axesOf)) {
      axes.push_back(ArrayAttr::get(mesh.getContext(), ofFactor));
      // The axes of a permutation are its partner's.
      option.parts *= factor.kind == FactorKind::Permutation ? 1 : mesh.getSize(axes.back());
    }
    static_cast<OpShardings &>(option) = makeShardings(op, mesh, rule, axes, pending);
    for (auto [type, sharding] : llvm::zip(op->getResultTypes(), option.results)) {
      if (!sharding.isReduced() && !canPend(type)) {
        return;
      }
    }
    option.name = describe();
    options.push_back(std::move(option));
  }

  std::string describe() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (StringAttr axis : mesh.getNames()) {
      stream << (text.empty() ? "" : " ") << axis.getValue() << ":";
      std::string cuts;
      for (auto [number, axes] : llvm::enumerate(axesOf)) {
        if (llvm::is_contained(axes, axis)) {
          cuts.push_back(static_cast<char>('a' + number));
        }
      }
      auto carried = llvm::find_if(pending, [&](auto &entry) { return entry.axis == axis; });
      if (!cuts.empty()) {
        stream << cuts;
      } else if (carried != pending.end()) {
        stream << "pending";
        llvm::interleave(
            carried->operands, [&](unsigned operand) { stream << '#' << operand; }, [] {});
      } else {
        stream << '-';
      }
    }
    return text;
  }

  ShardableOpInterface op;
  MeshAttr mesh;
  FactorRule rule;
  SmallVector<SmallVector<unsigned>> additive;
  SmallVector<SmallVector<Attribute>> axesOf;
  SmallVector<PendingAxis> pending;
  SmallVector<OpOption> options;
};

} // namespace

SmallVector<OpOption> enumerateOptions(ShardableOpInterface op, MeshAttr mesh) {
  return Enumeration(op, mesh).run();
}

SmallVector<ShardingAttr> enumerateLayouts(RankedTensorType type, MeshAttr mesh, bool pending) {
  SmallVector<ShardingAttr> layouts = {ShardingAttr::getReplicated(mesh, type.getRank())};
  for (StringAttr axis : mesh.getNames()) {
    for (ShardingAttr layout : SmallVector<ShardingAttr>(layouts)) {
      ArrayAttr alone = ArrayAttr::get(mesh.getContext(), {Attribute(axis)});
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        ArrayAttr axes = appendAxes(layout.getDims()[dim], alone);
        if (type.getDimSize(dim) % mesh.getSize(axes) == 0) {
          layouts.push_back(withDim(layout, dim, axes));
        }
      }
      if (pending && canPend(type)) {
        SmallVector<Attribute> unreduced(layout.getUnreduced().begin(),
                                         layout.getUnreduced().end());
        unreduced.push_back(axis);
        layouts.push_back(withUnreduced(layout, unreduced, ReductionKind::Sum));
      }
    }
  }
  return layouts;
}

} // namespace weft
