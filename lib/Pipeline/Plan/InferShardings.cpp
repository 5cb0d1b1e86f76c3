//===- InferShardings.cpp - the shardings of one op ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferShardings.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace {

class Inference {
public:
  Inference(ShardableOpInterface op, MeshAttr mesh)
      : op(op), mesh(mesh), rule(op.getFactorRule()),
        axesOf(rule.factors.size(), ArrayAttr::get(mesh.getContext(), {})),
        decided(rule.factors.size(), false) {}

  OpShardings run(ArrayRef<ShardingAttr> wanted) {
    for (unsigned operand : operandsBySize()) {
      decideFactors(rule.operands[operand], getSharding(op->getOperand(operand).getType()));
    }
    for (auto [dims, sharding] : llvm::zip(rule.results, wanted)) {
      if (sharding) {
        decideFactors(dims, sharding);
      }
    }
    decidePending();
    return makeShardings(op, mesh, rule, axesOf, pending);
  }

private:
  /// Numbers of the operands that are tensors, the largest first.
  SmallVector<unsigned> operandsBySize() {
    SmallVector<unsigned> numbers;
    for (unsigned number = 0; number < op->getNumOperands(); ++number) {
      if (isa<RankedTensorType>(op->getOperand(number).getType())) {
        numbers.push_back(number);
      }
    }
    auto size = [&](unsigned number) {
      return cast<RankedTensorType>(op->getOperand(number).getType()).getNumElements();
    };
    llvm::sort(numbers, [&](unsigned a, unsigned b) {
      return std::pair(-size(a), a) < std::pair(-size(b), b);
    });
    return numbers;
  }

  /// Gives the factors of `dims` that have no axes yet those of `sharding`.
  void decideFactors(ArrayRef<unsigned> dims, ShardingAttr sharding) {
    for (auto [dim, factor] : llvm::enumerate(dims)) {
      if (decided[factor]) {
        continue;
      }
      decided[factor] = true;
      ArrayAttr axes = sharding.getDims()[dim];
      bool taken =
          llvm::any_of(axes, [&](Attribute axis) { return !isFree(axis, rule.factors[factor]); });
      bool fits = rule.factors[factor].size % mesh.getSize(axes) == 0;
      if (!taken && fits && rule.factors[factor].kind != FactorKind::MustReplicate) {
        axesOf[factor] = axes;
      }
    }
  }

  /// Whether `axis` may cut `factor`: a permutation only after its partner.
  bool isFree(Attribute axis, const Factor &factor) {
    return factor.kind == FactorKind::Permutation ? llvm::is_contained(axesOf[factor.partner], axis)
                                                  : !isCutting(axis);
  }

  bool isCutting(Attribute axis) {
    return llvm::any_of(axesOf, [&](ArrayAttr axes) { return llvm::is_contained(axes, axis); });
  }

  /// Which axes stay pending, and in which operands.
  void decidePending() {
    for (StringAttr axis : mesh.getNames()) {
      SmallVector<unsigned> operands;
      for (unsigned number : operandsBySize()) {
        ShardingAttr sharding = getSharding(op->getOperand(number).getType());
        if (llvm::is_contained(sharding.getUnreduced(), axis) &&
            sharding.getReduction() == ReductionKind::Sum) {
          operands.push_back(number);
        }
      }
      llvm::sort(operands);
      if (operands.empty() || isCutting(axis) || joinsByOtherThanSum()) {
        continue;
      }
      if (!op.isAdditiveIn(operands)) {
        operands = isScalarSum() ? operandsInOrder() : SmallVector<unsigned>{};
      }
      if (!operands.empty()) {
        pending.push_back({axis, operands});
      }
    }
  }

  /// Whether some result that lacks a cut factor is not joined by a sum: then it cannot be a
  /// pending sum besides.
  bool joinsByOtherThanSum() {
    return llvm::any_of(rule.reductions,
                        [](ReductionKind kind) { return kind != ReductionKind::Sum; });
  }

  /// Whether the op is a sum of scalars, in which making an operand pending is free.
  bool isScalarSum() {
    return llvm::all_of(op->getResultTypes(),
                        [](Type type) { return cast<RankedTensorType>(type).getRank() == 0; }) &&
           op->getNumOperands() > 0 && op.isAdditiveIn(operandsInOrder());
  }

  SmallVector<unsigned> operandsInOrder() {
    SmallVector<unsigned> numbers = operandsBySize();
    llvm::sort(numbers);
    return numbers;
  }

  ShardableOpInterface op;
  MeshAttr mesh;
  FactorRule rule;
  SmallVector<ArrayAttr> axesOf;
  SmallVector<bool> decided;
  SmallVector<PendingAxis> pending;
};

/// The sharding of an operand or result with these factors as dimensions.
ShardingAttr shardingOf(MeshAttr mesh, ArrayRef<unsigned> dims, ArrayRef<ArrayAttr> axesOf,
                        ArrayRef<Attribute> unreduced, ReductionKind reduction) {
  auto axes = llvm::map_to_vector(dims, [&](unsigned factor) { return axesOf[factor]; });
  return withUnreduced(ShardingAttr::get(mesh, axes), unreduced,
                       unreduced.empty() ? ReductionKind::Sum : reduction);
}

} // namespace

OpShardings makeShardings(ShardableOpInterface op, MeshAttr mesh, const FactorRule &rule,
                          ArrayRef<ArrayAttr> axesOf, ArrayRef<PendingAxis> pending) {
  OpShardings shardings;
  for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
    SmallVector<Attribute> unreduced;
    for (const PendingAxis &carried : pending) {
      if (llvm::is_contained(carried.operands, number)) {
        unreduced.push_back(carried.axis);
      }
    }
    shardings.operands.push_back(
        isa<RankedTensorType>(type)
            ? shardingOf(mesh, rule.operands[number], axesOf, unreduced, ReductionKind::Sum)
            : ShardingAttr());
  }
  for (auto [number, dims] : llvm::enumerate(rule.results)) {
    auto unreduced = llvm::map_to_vector(
        pending, [](const PendingAxis &carried) -> Attribute { return carried.axis; });
    ReductionKind reduction = ReductionKind::Sum;
    for (auto [factor, axes] : llvm::enumerate(axesOf)) {
      for (Attribute axis : axes) {
        if (!llvm::is_contained(dims, factor) && !isPermuted(rule, axesOf, axis)) {
          unreduced.push_back(axis);
          reduction = rule.reductions[number];
        }
      }
    }
    shardings.results.push_back(shardingOf(mesh, dims, axesOf, unreduced, reduction));
  }
  return shardings;
}

OpShardings inferShardings(ShardableOpInterface op, MeshAttr mesh, ArrayRef<ShardingAttr> wanted) {
  return Inference(op, mesh).run(wanted);
}

} // namespace weft
