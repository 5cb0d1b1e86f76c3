//===- OpOptions.cpp - every way in which an op can be sharded ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpOptions.h"

#include "weft/Dialect/Weft/IR/RuleMutation.h"
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
        if (isAdditive(op, {unsigned(number)})) {
          additive.push_back({unsigned(number)});
        }
      }
    }
    if (all.size() > 1 && isAdditive(op, all)) {
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
      if (factor.kind == FactorKind::MustReplicate) {
        continue;
      }
      axesOf[number].push_back(name);
      if (factor.size % pieces(axesOf[number]) == 0) {
        assign(axis + 1);
      }
      axesOf[number].pop_back();
    }
    for (const SmallVector<unsigned> &operands : additive) {
      pending.push_back({name, operands});
      assign(axis + 1);
      pending.pop_back();
    }
  }

  int64_t pieces(ArrayRef<Attribute> axes) {
    return mesh.getSize(ArrayAttr::get(mesh.getContext(), axes));
  }

  void finish() {
    OpOption option;
    SmallVector<ArrayAttr> axes;
    for (ArrayRef<Attribute> ofFactor : axesOf) {
      axes.push_back(ArrayAttr::get(mesh.getContext(), ofFactor));
      option.parts *= mesh.getSize(axes.back());
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
      auto cut = llvm::find_if(
          axesOf, [&](ArrayRef<Attribute> axes) { return llvm::is_contained(axes, axis); });
      auto carried = llvm::find_if(pending, [&](auto &entry) { return entry.axis == axis; });
      if (cut != axesOf.end()) {
        stream << char('a' + (cut - axesOf.begin()));
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
