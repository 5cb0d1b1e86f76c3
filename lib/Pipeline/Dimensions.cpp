//===- Dimensions.cpp - classes of equal dimensions of values -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Dimensions.h"

using namespace mlir;

namespace weft {

Dimensions::Dimensions(ModuleOp module) : symbols(module) {
  module.walk([&](Operation *op) {
    if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
      joinFactors(shardable);
    } else if (auto reshard = dyn_cast<ReshardOp>(op)) {
      join(reshard.getInput(), reshard.getOutput());
    } else if (auto read = dyn_cast<ReadOp>(op)) {
      joinVariable(symbols.lookup<VariableOp>(read.getVariable()), read.getOutput());
    } else if (auto assign = dyn_cast<AssignOp>(op)) {
      joinVariable(symbols.lookup<VariableOp>(assign.getVariable()), assign.getValue());
    } else if (auto call = dyn_cast<CallOp>(op)) {
      calls.follow(call, symbols.lookup<func::FuncOp>(call.getCallee()),
                   [&](Value outside, Value inside) { join(outside, inside); });
    }
  });
  for (auto variable : module.getOps<VariableOp>()) {
    for (auto [dim, name] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
      auto &known = names[classOf(variable, int64_t(dim))];
      if (!llvm::is_contained(known, name.getValue())) {
        known.push_back(name.getValue());
      }
    }
  }
  nameWithoutPadding(module);
}

/// A dimension that variables store with padding has its names without padding too.
void Dimensions::nameWithoutPadding(ModuleOp module) {
  DenseMap<uint32_t, int64_t> unpadded;
  for (auto variable : module.getOps<VariableOp>()) {
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    for (auto [dim, size] : llvm::enumerate(variable.getUnpadded().value_or(shape))) {
      if (size != shape[dim]) {
        unpadded[classOf(variable, int64_t(dim))] = size;
      }
    }
  }
  auto take = [&](Value padded, Value other) {
    auto type = cast<RankedTensorType>(other.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      uint32_t from = classOf(padded, dim), to = classOf(other, dim);
      auto size = unpadded.find(from);
      if (from == to || size == unpadded.end() || size->second != type.getDimSize(dim)) {
        continue;
      }
      paddedAlone.insert(from);
      SmallVector<StringRef, 2> given = names.lookup(from);
      for (StringRef name : given) {
        if (!llvm::is_contained(names[to], name)) {
          names[to].push_back(name);
        }
      }
    }
  };
  module.walk([&](Operation *op) {
    if (auto extract = dyn_cast<ExtractOp>(op)) {
      take(extract.getInput(), extract.getOutput());
    } else if (auto pad = dyn_cast<PadOp>(op)) {
      take(pad.getOutput(), pad.getInput());
    }
  });
}

uint32_t Dimensions::numberOf(const void *owner, RankedTensorType type) {
  auto [entry, isNew] = numbers.try_emplace(owner, uint32_t(parents.size()));
  for (int64_t dim = 0; isNew && dim < type.getRank(); ++dim) {
    parents.push_back(uint32_t(parents.size()));
  }
  return entry->second;
}

uint32_t Dimensions::classOf(uint32_t number) {
  while (parents[number] != number) {
    number = parents[number] = parents[parents[number]];
  }
  return number;
}

void Dimensions::join(uint32_t a, uint32_t b) { parents[classOf(a)] = classOf(b); }

void Dimensions::join(Value a, Value b) {
  if (auto type = dyn_cast<RankedTensorType>(a.getType())) {
    uint32_t first = numberOf(a), other = numberOf(b);
    for (uint32_t dim = 0; dim < type.getRank(); ++dim) {
      join(first + dim, other + dim);
    }
  }
}

void Dimensions::joinVariable(VariableOp variable, Value value) {
  uint32_t first = numberOf(variable), other = numberOf(value);
  for (uint32_t dim = 0; dim < variable.getTensorType().getRank(); ++dim) {
    join(first + dim, other + dim);
  }
}

void Dimensions::joinFactors(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  DenseMap<unsigned, uint32_t> first;
  auto joinDims = [&](Value value, ArrayRef<unsigned> dims) {
    for (auto [dim, factor] : llvm::enumerate(dims)) {
      // The operand and result of a reshape may have different meanings.
      if (rule.factors[factor].hasOneLength) {
        uint32_t number = numberOf(value) + uint32_t(dim);
        join(number, first.try_emplace(factor, number).first->second);
      }
    }
  };
  for (auto [value, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    joinDims(value, dims);
  }
  for (auto [value, dims] : llvm::zip(op->getResults(), rule.results)) {
    joinDims(value, dims);
  }
}

StringRef Dimensions::nameOf(Value value, int64_t dim) {
  auto known = names.find(classOf(value, dim));
  return known == names.end() ? "" : known->second.front();
}

SmallVector<StringRef> Dimensions::namesOf(ShardableOpInterface op, const FactorRule &rule,
                                           unsigned factor) {
  return collectNames(op, rule, factor, /*withPaddedAlone=*/false);
}

SmallVector<StringRef> Dimensions::namesOfOne(ShardableOpInterface op, const FactorRule &rule,
                                              unsigned factor) {
  return collectNames(op, rule, factor, /*withPaddedAlone=*/true);
}

SmallVector<StringRef> Dimensions::collectNames(ShardableOpInterface op, const FactorRule &rule,
                                                unsigned factor, bool withPaddedAlone) {
  SmallVector<StringRef> found;
  for (auto [value, dim] : carriersOf(op, rule, factor)) {
    uint32_t number = classOf(value, dim);
    auto known = names.find(number);
    if (known == names.end() || (!withPaddedAlone && paddedAlone.contains(number))) {
      continue;
    }
    for (StringRef name : known->second) {
      if (!llvm::is_contained(found, name)) {
        found.push_back(name);
      }
    }
  }
  return found;
}

} // namespace weft
