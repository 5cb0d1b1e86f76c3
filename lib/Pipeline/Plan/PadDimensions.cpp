//===- PadDimensions.cpp - makes dimensions divide ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Padding.h"
#include "ReadPlan.h"

#include "weft/Description/Plan.h"
#include "weft/Pipeline/Dimensions.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PADDIMENSIONSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// The requirements of a plan on the sizes of a class of dimensions.
struct Enlarged {
  /// The name that variables give the class.
  std::string name;
  int64_t size = 0, padded = 0;
  /// The least common multiple of all numbers of shards.
  int64_t shards = 1;
};

/// Returns the numbers of shards that these entries of `plan` cut dimensions of this name into.
std::vector<int64_t> shardsOf(const desc::PlanSpec &plan,
                              const std::vector<desc::ShardingSpec> &entries, StringRef name) {
  std::vector<int64_t> all;
  for (const desc::ShardingSpec &entry : entries) {
    // Keys have the length of the sequence of queries.
    StringRef dimension = entry.dimension == "keys" ? "sequence" : StringRef(entry.dimension);
    int64_t shards = 1;
    for (const std::string &axis : entry.axes) {
      shards *= plan.axis(axis)->size;
    }
    if (dimension == name && shards > 1) {
      all.push_back(shards);
    }
  }
  return all;
}

/// Returns the numbers of shards that `plan` cuts this dimension of a variable into, and others of
/// its name: by ops, and if the variable is an input by homes.
std::vector<int64_t> shardsOf(const desc::PlanSpec &plan, VariableOp variable, StringRef name) {
  std::vector<int64_t> all = shardsOf(plan, plan.shardings, name);
  if (variable.getRole() == VariableRole::Input) {
    llvm::append_range(all, shardsOf(plan, plan.homes, name));
  }
  return all;
}

} // namespace

bool needsPadding(ModuleOp module, const desc::PlanSpec &plan) {
  return llvm::any_of(module.getOps<VariableOp>(), [&](VariableOp variable) {
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    return llvm::any_of(
        llvm::zip_equal(variable.getDimensions().getAsRange<StringAttr>(), shape), [&](auto dim) {
          auto [name, size] = dim;
          return llvm::any_of(shardsOf(plan, variable, name.getValue()),
                              [size = size](int64_t shards) { return size % shards != 0; });
        });
  });
}

namespace {

class Padder {
public:
  Padder(ModuleOp module, const desc::PlanSpec &plan) : module(module), dimensions(module) {
    module.walk([&](VariableOp variable) {
      for (auto [dim, name] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
        for (int64_t shards : shardsOf(plan, variable, name.getValue())) {
          Enlarged &padding = paddings[dimensions.classOf(variable, int64_t(dim))];
          padding.name = name.str();
          padding.size = variable.getTensorType().getDimSize(int64_t(dim));
          padding.shards = std::lcm(padding.shards, shards);
        }
      }
    });
    std::erase_if(paddings,
                  [](const auto &entry) { return entry.second.size % entry.second.shards == 0; });
    // What is padded anyway is padded for homes too.
    for (auto &[number, padding] : paddings) {
      for (int64_t shards : shardsOf(plan, plan.homes, padding.name)) {
        padding.shards = std::lcm(padding.shards, shards);
      }
      padding.padded = static_cast<int64_t>(llvm::alignTo(padding.size, padding.shards));
    }
  }

  LogicalResult run() {
    WalkResult walk = module.walk([&](ShardableOpInterface op) {
      return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted()) {
      return failure();
    }
    module.walk([&](UnpaddedSizesOpInterface op) { tellSizes(op); });
    module.walk([&](Operation *op) { pad(op); });
    return success();
  }

  size_t count() const { return paddings.size(); }

private:
  const Enlarged *find(Value value, int64_t dim) {
    auto found = paddings.find(dimensions.classOf(value, dim));
    return found == paddings.end() ? nullptr : &found->second;
  }

  /// Calls `visit` with each factor to pad.
  template <typename Visit> LogicalResult forEachFactor(ShardableOpInterface op, Visit visit) {
    FactorRule rule = op.getFactorRule();
    auto over = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> dims) {
      for (auto [value, factors] : llvm::zip(values, dims)) {
        for (auto [dim, factor] : llvm::enumerate(factors)) {
          const Enlarged *padding = find(value, int64_t(dim));
          if (padding && failed(visit(factor, *padding))) {
            return failure();
          }
        }
      }
      return success();
    };
    return failure(failed(over(op->getOperands(), rule.operands)) ||
                   failed(over(op->getResults(), rule.results)));
  }

  /// Returns true if a permuted factor and its partner, where both may be padded, keep equal
  /// lengths.
  bool keepsPartners(ShardableOpInterface op) {
    FactorRule rule = op.getFactorRule();
    std::optional<unsigned> permuted = findPermutation(rule);
    if (!permuted || !mayBePadded(op, *permuted)) {
      return true;
    }
    llvm::SmallDenseMap<unsigned, int64_t> padded;
    (void)forEachFactor(op, [&](unsigned factor, const Enlarged &padding) {
      padded[factor] = padding.padded;
      return success();
    });
    return padded.lookup(*permuted) == padded.lookup(rule.factors[*permuted].partner);
  }

  LogicalResult check(ShardableOpInterface op) {
    FactorRule rule = op.getFactorRule();
    bool keeps = keepsPartners(op);
    return forEachFactor(op, [&](unsigned factor, const Enlarged &padding) -> LogicalResult {
      // A factor of another size contains groups, as of samples that share a mean.
      if (mayBePadded(op, factor) && keeps && rule.factors[factor].size == padding.size) {
        return success();
      }
      return op->emitError("pad-dimensions: ")
             << padding.name << "=" << padding.size << " does not divide into " << padding.shards
             << " shards and cannot be padded: " << op->getName() << " depends on how long it is";
    });
  }

  /// Gives the sizes without padding to an op whose result depends on them, unless accumulation did
  /// so.
  void tellSizes(UnpaddedSizesOpInterface op) {
    auto shardable = cast<ShardableOpInterface>(op.getOperation());
    FactorRule rule = shardable.getFactorRule();
    llvm::SmallDenseMap<unsigned, int64_t> padded;
    (void)forEachFactor(shardable, [&](unsigned factor, const Enlarged &padding) {
      padded[factor] = padding.size;
      return success();
    });
    SmallVector<unsigned> factors = op.getSizedFactors();
    if (op.getUnpaddedSizes().empty() &&
        llvm::any_of(factors, [&](unsigned factor) { return padded.contains(factor); })) {
      op.setUnpaddedSizes(
          llvm::map_to_vector(factors, [&](unsigned factor) { return rule.factors[factor].size; }));
    }
  }

  /// Returns `type`, whose dimensions are those of `owner`, padded.
  template <typename Owner> RankedTensorType pad(RankedTensorType type, Owner owner) {
    SmallVector<int64_t> shape(type.getShape());
    for (auto [dim, size] : llvm::enumerate(shape)) {
      auto found = paddings.find(dimensions.classOf(owner, int64_t(dim)));
      size = found == paddings.end() ? size : found->second.padded;
    }
    return type.clone(shape);
  }

  void pad(Value value) {
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      value.setType(pad(type, value));
    }
  }

  void pad(Operation *op) {
    Builder builder(op->getContext());
    if (auto variable = dyn_cast<VariableOp>(op)) {
      RankedTensorType type = variable.getTensorType(), padded = pad(type, variable);
      if (padded != type) {
        variable.setUnpaddedAttr(builder.getDenseI64ArrayAttr(type.getShape()));
        variable.setType(padded);
      }
    } else if (auto observe = dyn_cast<ObserveOp>(op)) {
      // The value stands earlier, and has been padded.
      auto type = cast<RankedTensorType>(observe.getValue().getType());
      SmallVector<int64_t> shape(type.getShape());
      for (auto [dim, size] : llvm::enumerate(shape)) {
        const Enlarged *padding = find(observe.getValue(), int64_t(dim));
        size = padding ? padding->size : size;
      }
      if (ArrayRef(shape) != type.getShape()) {
        observe.setUnpadded(shape);
      }
    }
    for (Value result : op->getResults()) {
      pad(result);
    }
    for (Region &region : op->getRegions()) {
      for (BlockArgument argument : region.getArguments()) {
        pad(argument);
      }
    }
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal()) {
      pad(function);
    }
  }

  /// Results have their final types.
  void pad(func::FuncOp function) {
    Operation *done = function.getBody().front().getTerminator();
    auto results = llvm::map_to_vector(done->getOperands(), [&](Value value) -> Type {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return type ? pad(type, value) : value.getType();
    });
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getBody().front().getArgumentTypes(), results));
  }

  ModuleOp module;
  Dimensions dimensions;
  /// The padding of each class.
  std::map<uint32_t, Enlarged> paddings;
};

struct PadDimensionsPass : impl::PadDimensionsPassBase<PadDimensionsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "pad-dimensions", plan, {pins.begin(), pins.end()});
    if (failed(spec)) {
      return signalPassFailure();
    }
    if (!spec->mayPad || !needsPadding(module, *spec)) {
      return;
    }
    Padder padder(module, *spec);
    if (failed(padder.run())) {
      return signalPassFailure();
    }
    numPadded += padder.count();
  }
};

} // namespace
} // namespace weft
