//===- FactorRule.cpp - builds and verifies factor rules ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/FactorRule.h"

#include "weft/Dialect/Weft/IR/RuleMutation.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace weft {

std::string letters(int64_t rank, char first) {
  std::string result;
  for (int64_t i = 0; i < rank; ++i) {
    result.push_back(static_cast<char>(first + i));
  }
  return result;
}

namespace {
/// Collects factors letter by letter, in the order in which they first occur.
class RuleBuilder {
public:
  RuleBuilder(StringRef mustReplicate, StringRef ofDifferentLengths)
      : mustReplicate(mustReplicate), ofDifferentLengths(ofDifferentLengths) {}

  SmallVector<unsigned> add(StringRef dims, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    SmallVector<unsigned> numbers;
    for (auto [dim, letter] : llvm::enumerate(dims)) {
      auto [it, isNew] = numberOf.try_emplace(letter, rule.factors.size());
      if (isNew) {
        bool known = tensor && static_cast<int64_t>(dim) < tensor.getRank();
        rule.factors.push_back(
            {known ? tensor.getDimSize(dim) : 1,
             mustReplicate.contains(letter) ? FactorKind::MustReplicate : FactorKind::PassThrough,
             !ofDifferentLengths.contains(letter)});
      } else if (ofDifferentLengths.contains(letter) && tensor &&
                 static_cast<int64_t>(dim) < tensor.getRank()) {
        int64_t &size = rule.factors[it->second].size;
        size = std::min(size, tensor.getDimSize(dim));
      }
      numbers.push_back(it->second);
    }
    return numbers;
  }

  FactorRule rule;

private:
  StringRef mustReplicate, ofDifferentLengths;
  llvm::SmallDenseMap<char, unsigned> numberOf;
};

FactorRule buildRule(Operation *op, RuleBuilder builder, ArrayRef<std::string> operands,
                     ArrayRef<std::string> results, ArrayRef<ReductionKind> reductions) {
  for (auto [dims, type] : llvm::zip(operands, op->getOperandTypes())) {
    builder.rule.operands.push_back(builder.add(dims, type));
  }
  for (auto [dims, type] : llvm::zip(results, op->getResultTypes())) {
    builder.rule.results.push_back(builder.add(dims, type));
  }
  FactorRule rule = std::move(builder.rule);
  rule.operands.resize(op->getNumOperands());
  rule.results.resize(op->getNumResults());
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    bool inAll = llvm::all_of(rule.results, [&, number = number](ArrayRef<unsigned> dims) {
      return llvm::is_contained(dims, number);
    });
    if (!inAll && factor.kind == FactorKind::PassThrough) {
      factor.kind = FactorKind::Reduction;
    }
  }
  rule.reductions.assign(reductions.begin(), reductions.end());
  rule.reductions.resize(op->getNumResults(), ReductionKind::Sum);
  mutateRule(op, rule);
  return rule;
}
} // namespace

FactorRule makeFactorRule(Operation *op, ArrayRef<std::string> operands,
                          ArrayRef<std::string> results, StringRef mustReplicate,
                          ArrayRef<ReductionKind> reductions) {
  return buildRule(op, RuleBuilder(mustReplicate, ""), operands, results, reductions);
}

FactorRule makeFactorRuleOfLengths(Operation *op, ArrayRef<std::string> operands,
                                   ArrayRef<std::string> results, StringRef ofDifferentLengths,
                                   StringRef mustReplicate) {
  return buildRule(op, RuleBuilder(mustReplicate, ofDifferentLengths), operands, results, {});
}

SmallVector<std::pair<Value, int64_t>> carriersOf(Operation *op, const FactorRule &rule,
                                                  unsigned factor) {
  SmallVector<std::pair<Value, int64_t>> carriers;
  auto add = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> tensors) {
    for (auto [value, dims] : llvm::zip(values, tensors)) {
      for (auto [dim, carried] : llvm::enumerate(dims)) {
        if (carried == factor) {
          carriers.emplace_back(value, int64_t(dim));
        }
      }
    }
  };
  add(op->getOperands(), rule.operands);
  add(op->getResults(), rule.results);
  return carriers;
}

SmallVector<ArrayAttr> axesOfFactors(Operation *op, const FactorRule &rule) {
  SmallVector<ArrayAttr> axesOf(rule.factors.size(), ArrayAttr::get(op->getContext(), {}));
  auto collect = [&](TypeRange types, ArrayRef<SmallVector<unsigned>> tensors) {
    for (auto [type, factors] : llvm::zip_equal(types, tensors)) {
      if (ShardingAttr sharding = getSharding(type)) {
        for (auto [factor, axes] : llvm::zip_equal(factors, sharding.getDims())) {
          axesOf[factor] = axes;
        }
      }
    }
  };
  collect(op->getOperandTypes(), rule.operands);
  collect(op->getResultTypes(), rule.results);
  return axesOf;
}

std::optional<unsigned> findPermutation(const FactorRule &rule) {
  const auto *it = llvm::find_if(
      rule.factors, [](const Factor &factor) { return factor.kind == FactorKind::Permutation; });
  return it == rule.factors.end() ? std::nullopt
                                  : std::optional<unsigned>(it - rule.factors.begin());
}

bool isPermuted(const FactorRule &rule, ArrayRef<ArrayAttr> axesOf, Attribute axis) {
  std::optional<unsigned> permuted = findPermutation(rule);
  return permuted && axesOf[*permuted] && llvm::is_contained(axesOf[*permuted], axis);
}

bool isAdditiveInSome(Operation *op, ArrayRef<unsigned> operands) {
  auto shardable = cast<ShardableOpInterface>(op);
  return !operands.empty() &&
         (shardable.isAdditiveIn(operands) || llvm::any_of(operands, [&](unsigned operand) {
            return shardable.isAdditiveIn(operand);
          }));
}

bool mayBePadded(Operation *op, unsigned factor) {
  auto padding = dyn_cast<PaddingOpInterface>(op);
  return padding ? padding.mayBePadded(factor) : mayBePaddedByRule(op, factor);
}

bool mayBePaddedByRule(Operation *op, unsigned factor) {
  const FactorRule rule = cast<ShardableOpInterface>(op).getFactorRule();
  const Factor &one = rule.factors[factor];
  return one.hasOneLength &&
         (one.kind == FactorKind::PassThrough || one.kind == FactorKind::Reduction);
}

bool isNothingBeyond(Operation *op, unsigned factor, ArrayRef<unsigned> zeros, unsigned result) {
  auto padding = dyn_cast<PaddingOpInterface>(op);
  return padding ? padding.isNothingBeyond(factor, zeros, result) : isAdditiveInSome(op, zeros);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {
/// One tensor of an op: an operand or a result.
struct OpTensor {
  bool isResult;
  unsigned number;
  RankedTensorType type;
  ArrayRef<unsigned> dims;
};

InFlightDiagnostic &operator<<(InFlightDiagnostic &diagnostic, const OpTensor &tensor) {
  return diagnostic << (tensor.isResult ? "result #" : "operand #") << tensor.number;
}

/// Checks one op's shapes and shardings against its rule.
///   rule_c1: dimensions that carry one factor have one size, unless the rule says otherwise
///   rule_c2: all tensors have a sharding on one mesh, or none has
///   rule_c3: dimensions that carry one factor are cut over the same axes, into as many shards as
///            its size allows
///   rule_c4: a must-replicate factor is not cut
///   rule_c5: an axis cuts one factor at most, or a permutation and its partner, and none while an
///            operand is pending on it
///   rule_c6: pending operands are sums, and the op is additive in them
///   rule_c7: a result is pending on the axes of the factors that it lacks, by its operator,
///            and on those of pending operands, and on no others; axes that cut a permutation
///            leave nothing pending
///   rule_c8: an axis that cuts a permutation cuts its partner
class RuleVerifier {
public:
  RuleVerifier(Operation *op, const FactorRule &rule) : op(op), rule(rule) {
    for (OpOperand &operand : op->getOpOperands()) {
      collect(false, operand.getOperandNumber(), operand.get().getType(),
              rule.operands[operand.getOperandNumber()]);
    }
    for (OpResult result : op->getResults()) {
      collect(true, result.getResultNumber(), result.getType(),
              rule.results[result.getResultNumber()]);
    }
  }

  LogicalResult verify() {
    if (failed(verifySizes())) {
      return failure();
    }
    auto isSharded = [](const OpTensor &tensor) { return bool(getSharding(tensor.type)); };
    if (llvm::none_of(tensors, isSharded)) {
      return success();
    }
    return failure(failed(verifyMesh()) || failed(verifyFactors()) || failed(verifyPending()) ||
                   failed(verifyResults()));
  }

private:
  void collect(bool isResult, unsigned number, Type type, ArrayRef<unsigned> dims) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      tensors.push_back({isResult, number, tensor, dims});
    }
  }

  LogicalResult verifySizes() {
    SmallVector<std::pair<const OpTensor *, int64_t>> first(rule.factors.size());
    for (const OpTensor &tensor : tensors) {
      if (tensor.type.getRank() != static_cast<int64_t>(tensor.dims.size())) {
        InFlightDiagnostic diagnostic = op->emitOpError();
        return diagnostic << tensor << " must have " << tensor.dims.size() << " dimensions, got "
                          << tensor.type.getRank();
      }
      for (auto [dim, factor] : llvm::enumerate(tensor.dims)) {
        auto &[seen, seenDim] = first[factor];
        if (!seen) {
          seen = &tensor;
          seenDim = dim;
        } else if (rule.factors[factor].hasOneLength &&
                   seen->type.getDimSize(seenDim) != tensor.type.getDimSize(dim)) {
          InFlightDiagnostic diagnostic = op->emitOpError();
          diagnostic << tensor << " dimension " << dim << " has size "
                     << sizeText(tensor.type.getDimSize(dim)) << ", expected "
                     << sizeText(seen->type.getDimSize(seenDim)) << " as ";
          return diagnostic << *seen << " dimension " << seenDim;
        }
      }
    }
    return success();
  }

  static std::string sizeText(int64_t size) {
    return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  }

  LogicalResult verifyMesh() {
    for (const OpTensor &tensor : tensors) {
      ShardingAttr sharding = getSharding(tensor.type);
      if (!sharding) {
        InFlightDiagnostic diagnostic = op->emitOpError();
        return diagnostic << tensor << " has no sharding, but another tensor of the op has one";
      }
      if (!mesh) {
        mesh = sharding.getMesh();
      } else if (mesh != sharding.getMesh()) {
        InFlightDiagnostic diagnostic = op->emitOpError();
        return diagnostic << tensor << " lies on mesh " << sharding.getMesh()
                          << ", expected that of the op's first tensor: " << mesh;
      }
    }
    return success();
  }

  LogicalResult verifyFactors() {
    axesOf.resize(rule.factors.size());
    for (const OpTensor &tensor : tensors) {
      for (auto [dim, factor] : llvm::enumerate(tensor.dims)) {
        ArrayAttr axes = getSharding(tensor.type).getDims()[dim];
        if (!axesOf[factor]) {
          axesOf[factor] = axes;
        } else if (axesOf[factor] != axes) {
          InFlightDiagnostic diagnostic = op->emitOpError();
          return diagnostic << tensor << " dimension " << dim << " is cut over " << axes
                            << ", expected " << axesOf[factor]
                            << " as the same factor in another tensor of the op";
        }
      }
    }
    return failure(failed(verifyShards()) || failed(verifyPermutation()) || failed(verifyUsers()));
  }

  LogicalResult verifyShards() {
    for (auto [number, axes] : llvm::enumerate(axesOf)) {
      int64_t shards = axes ? mesh.getSize(axes) : 1, size = rule.factors[number].size;
      if (!ShapedType::isDynamic(size) && size % shards != 0) {
        return op->emitOpError() << "cannot be cut over " << axes << " along factor " << number
                                 << ", whose size " << size << " is no multiple of " << shards;
      }
      if (axes && !axes.empty() && rule.factors[number].kind == FactorKind::MustReplicate) {
        return op->emitOpError() << "cannot be cut over " << axes << " along factor " << number
                                 << ", which must be replicated";
      }
    }
    return success();
  }

  ArrayAttr getAxes(unsigned factor) {
    return axesOf[factor] ? axesOf[factor] : ArrayAttr::get(op->getContext(), {});
  }

  LogicalResult verifyPermutation() {
    std::optional<unsigned> permuted = findPermutation(rule);
    if (!permuted) {
      return success();
    }
    unsigned partner = rule.factors[*permuted].partner;
    for (Attribute axis : getAxes(*permuted)) {
      if (!llvm::is_contained(getAxes(partner), axis)) {
        return op->emitOpError() << "cannot be cut over " << axis << " along factor " << *permuted
                                 << " without factor " << partner << ", which is cut over "
                                 << getAxes(partner);
      }
    }
    return success();
  }

  LogicalResult verifyUsers() {
    llvm::SmallDenseMap<Attribute, unsigned> user;
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind == FactorKind::Permutation) {
        continue; // Its axes are its partner's.
      }
      for (Attribute axis : getAxes(number)) {
        if (!user.try_emplace(axis, number).second) {
          return op->emitOpError() << "axis " << axis << " cuts two factors";
        }
      }
    }
    return success();
  }

  LogicalResult verifyPending() {
    for (StringAttr axis : mesh.getNames()) {
      SmallVector<unsigned> pending;
      for (const OpTensor &tensor : tensors) {
        ShardingAttr sharding = getSharding(tensor.type);
        if (tensor.isResult || !llvm::is_contained(sharding.getUnreduced(), axis)) {
          continue;
        }
        if (sharding.getReduction() != ReductionKind::Sum) {
          InFlightDiagnostic diagnostic = op->emitOpError();
          return diagnostic << tensor << " is pending by "
                            << stringifyReductionKind(sharding.getReduction())
                            << ", but only a reshard may have such an operand";
        }
        pending.push_back(tensor.number);
      }
      if (pending.empty()) {
        continue;
      }
      if (!isAdditive(cast<ShardableOpInterface>(op), pending)) {
        InFlightDiagnostic diagnostic = op->emitOpError("is not additive in operand");
        diagnostic << (pending.size() == 1 ? " #" : "s #");
        llvm::interleave(
            pending, [&](unsigned n) { diagnostic << n; }, [&] { diagnostic << ", #"; });
        return diagnostic << ", pending over " << axis << "; reduce it first by a weft.reshard";
      }
      if (llvm::any_of(axesOf,
                       [&](ArrayAttr axes) { return axes && llvm::is_contained(axes, axis); })) {
        return op->emitOpError() << "axis " << axis
                                 << " cuts a factor while an operand is pending over it";
      }
      pendingAxes.push_back(axis);
    }
    return success();
  }

  LogicalResult verifyResults() {
    for (const OpTensor &tensor : tensors) {
      if (!tensor.isResult) {
        continue;
      }
      SmallVector<Attribute> expected(pendingAxes.begin(), pendingAxes.end());
      ReductionKind reduction = ReductionKind::Sum;
      for (auto [number, axes] : llvm::enumerate(axesOf)) {
        if (axes && !axes.empty() && !llvm::is_contained(tensor.dims, number)) {
          for (Attribute axis : axes) {
            if (!isPermuted(rule, axesOf, axis)) {
              expected.push_back(axis);
              reduction = rule.reductions[tensor.number];
            }
          }
        }
      }
      if (reduction != ReductionKind::Sum && !pendingAxes.empty()) {
        return op->emitOpError() << "joins partial results by " << stringifyReductionKind(reduction)
                                 << ", so no operand may be a pending sum";
      }
      ShardingAttr sharding = getSharding(tensor.type);
      ShardingAttr wanted =
          withUnreduced(sharding, expected, expected.empty() ? ReductionKind::Sum : reduction);
      if (sharding != wanted) {
        InFlightDiagnostic diagnostic = op->emitOpError();
        return diagnostic << tensor << " must have the sharding " << wanted << ", got " << sharding;
      }
    }
    return success();
  }

  Operation *op;
  const FactorRule &rule;
  SmallVector<OpTensor> tensors;
  MeshAttr mesh;
  /// Axes that cut each factor; null for a factor that no tensor carries.
  SmallVector<ArrayAttr> axesOf;
  SmallVector<StringAttr> pendingAxes;
};
} // namespace

LogicalResult verifyFactorRule(Operation *op) {
  FactorRule rule = cast<ShardableOpInterface>(op).getFactorRule();
  // A malformed op has no rule, and getFactorRule has emitted an error.
  if (rule.operands.size() != op->getNumOperands() || rule.results.size() != op->getNumResults()) {
    return failure();
  }
  return RuleVerifier(op, rule).verify();
}

} // namespace weft
