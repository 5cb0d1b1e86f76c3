//===- Padding.cpp - zeros in padding -------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Padding.h"

using namespace mlir;

namespace weft {

Padding::Padding(ModuleOp module, const MaskedDims &masked)
    : module(module), masked(masked), symbols(module), dimensions(module) {
  for (auto variable : module.getOps<VariableOp>()) {
    if (!variable.getUnpadded()) {
      continue;
    }
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    for (auto [dim, size] : llvm::enumerate(*variable.getUnpadded())) {
      if (size != shape[dim]) {
        ends[dimensions.classOf(variable, int64_t(dim))] = size;
      }
    }
  }
  module.walk([&](CallOp call) { callers[symbols.lookup(call.getCallee())].push_back(call); });
  assumeZeros();
  while (refute()) {
  }
}

/// Assumes zeros in the padding of all values; refute() removes those that do not follow.
void Padding::assumeZeros() {
  auto assume = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      uint32_t dimension = dimensions.classOf(value, dim);
      if (ends.contains(dimension) && zeros.insert({value, dimension}).second) {
        padded.emplace_back(value, dimension);
      }
    }
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), assume);
    for (Region &region : op->getRegions()) {
      llvm::for_each(region.getArguments(), assume);
    }
  });
}

/// Returns true if an assumption was refuted.
bool Padding::refute() {
  size_t before = zeros.size();
  for (auto [value, dimension] : padded) {
    if (isZero(value, dimension) && !stays(value, dimension)) {
      zeros.erase({value, dimension});
    }
  }
  return zeros.size() < before;
}

/// Returns true if `value` is zero, given the assumptions that remain.
bool Padding::stays(Value value, uint32_t dimension) {
  if (llvm::all_of(dimsOf(value, dimension),
                   [&](int64_t dim) { return masked.contains({value, dim}); })) {
    return true;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    return staysInArgument(argument, dimension);
  }
  Operation *op = value.getDefiningOp();
  if (auto read = dyn_cast<ReadOp>(op)) {
    return symbols.lookup<VariableOp>(read.getVariable()).getRole() != VariableRole::Input;
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    Operation *done = callee.getBody().front().getTerminator();
    return isZero(done->getOperand(cast<OpResult>(value).getResultNumber()), dimension);
  }
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  return shardable && staysInResult(shardable, value, dimension);
}

bool Padding::staysInResult(ShardableOpInterface op, Value result, uint32_t dimension) {
  return llvm::all_of(factorsOf(op, result, dimension), [&](unsigned factor) {
    return isNothingBeyond(op, factor, zerosOf(op, factor, dimension),
                           cast<OpResult>(result).getResultNumber());
  });
}

/// The operands of all calls must be zero.
bool Padding::staysInArgument(BlockArgument argument, uint32_t dimension) {
  auto found = callers.find(argument.getOwner()->getParentOp());
  return found != callers.end() && llvm::all_of(found->second, [&](CallOp call) {
           return isZero(call->getOperand(argument.getArgNumber()), dimension);
         });
}

SmallVector<int64_t> Padding::dimsOf(Value value, uint32_t dimension) {
  SmallVector<int64_t> dims;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
    if (dimensions.classOf(value, dim) == dimension) {
      dims.push_back(dim);
    }
  }
  return dims;
}

SmallVector<unsigned> Padding::factorsOf(ShardableOpInterface op, Value result,
                                         uint32_t dimension) {
  FactorRule rule = op.getFactorRule();
  ArrayRef<unsigned> factors = rule.results[cast<OpResult>(result).getResultNumber()];
  return llvm::map_to_vector(dimsOf(result, dimension), [&](int64_t dim) { return factors[dim]; });
}

SmallVector<unsigned> Padding::operandsWith(ShardableOpInterface op, unsigned factor) {
  FactorRule rule = op.getFactorRule();
  bool isPermutation = rule.factors[factor].kind == FactorKind::Permutation;
  SmallVector<unsigned> operands;
  for (auto [number, dims] : llvm::enumerate(rule.operands)) {
    if (llvm::is_contained(dims, factor) ||
        (isPermutation && llvm::is_contained(dims, rule.factors[factor].partner))) {
      operands.push_back(unsigned(number));
    }
  }
  return operands;
}

SmallVector<unsigned> Padding::zerosOf(ShardableOpInterface op, unsigned factor,
                                       uint32_t dimension) {
  SmallVector<unsigned> operands = operandsWith(op, factor);
  llvm::erase_if(operands,
                 [&](unsigned operand) { return !isZero(op->getOperand(operand), dimension); });
  return operands;
}

std::optional<PaddingFault> Padding::findFault() {
  std::optional<PaddingFault> fault;
  for (bool isCalled : {false, true}) {
    for (auto function : module.getOps<func::FuncOp>()) {
      function.walk<WalkOrder::PreOrder>([&](Operation *op) {
        fault = callers.contains(function) == isCalled ? findFault(op) : std::nullopt;
        return fault ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (fault) {
        return fault;
      }
    }
  }
  return std::nullopt;
}

std::optional<PaddingFault> Padding::findFault(Operation *op) {
  if (auto assign = dyn_cast<AssignOp>(op)) {
    Value value = assign.getValue();
    for (auto [dimension, end] : ends) {
      if (!dimsOf(value, dimension).empty() && !isZero(value, dimension)) {
        return PaddingFault{op, dimension, value};
      }
    }
  }
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  return shardable ? findFault(shardable) : std::nullopt;
}

/// A factor that a result lacks is summed over, or joined in another way. For a permuted factor,
/// its partner decides which elements the result depends on.
std::optional<PaddingFault> Padding::findFault(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    for (auto [dim, factor] : llvm::enumerate(dims)) {
      uint32_t dimension = dimensions.classOf(operand, int64_t(dim));
      if (!ends.contains(dimension) || rule.factors[factor].kind == FactorKind::Permutation) {
        continue;
      }
      SmallVector<unsigned> zeros = zerosOf(op, factor, dimension);
      for (auto [result, kept] : llvm::enumerate(rule.results)) {
        if (!llvm::is_contained(kept, factor) &&
            !isNothingBeyond(op, factor, zeros, unsigned(result))) {
          return PaddingFault{op, dimension, Value(), factor, unsigned(result)};
        }
      }
    }
  }
  return std::nullopt;
}

} // namespace weft
