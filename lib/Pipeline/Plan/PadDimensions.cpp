//===- PadDimensions.cpp - makes dimensions divide ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulRows.h"
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

/// The requirements on the sizes of a class of dimensions.
struct Enlarged {
  /// The name that variables give the class.
  std::string name;
  int64_t size = 0, padded = 0;
  /// The least common multiple of all numbers of shards of the plan.
  int64_t shards = 1;
  /// A shard has a multiple of this many elements.
  int64_t unit = 1;

  bool isUneven() const { return size % shards != 0; }
};

/// Returns the size to which alignment of rows pads a dimension.
int64_t alignedSize(const Enlarged &padding) {
  // Rows of 128 bytes are what NVIDIA's "Matrix Multiplication Background User's Guide", section
  // 2.2, calls most efficient on A100. Whole rows suffice: a size is then the same for all small
  // numbers of shards, whether the plan or the search chooses them.
  constexpr int64_t kUnitsOfLine = 128 / cost::kRowBytes;
  uint64_t narrow = uint64_t(padding.unit) * uint64_t(padding.shards);
  auto size = uint64_t(padding.size);
  uint64_t wide = llvm::alignTo(size, std::lcm(narrow, uint64_t(padding.unit * kUnitsOfLine)));
  return int64_t(100 * (wide - size) <= size ? wide : llvm::alignTo(size, narrow));
}

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
  Padder(ModuleOp module, const desc::PlanSpec &plan, bool alignsRows)
      : module(module), dimensions(module) {
    module.walk([&](VariableOp variable) {
      for (auto [dim, name] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
        Enlarged &padding = paddings[dimensions.classOf(variable, int64_t(dim))];
        padding.size = variable.getTensorType().getDimSize(int64_t(dim));
        std::vector<int64_t> all = shardsOf(plan, variable, name.getValue());
        padding.name = padding.name.empty() || !all.empty() ? name.str() : padding.name;
        for (int64_t shards : all) {
          padding.shards = std::lcm(padding.shards, shards);
        }
      }
    });
    if (alignsRows) {
      alignRows();
    }
    std::erase_if(paddings, [](const auto &entry) {
      return !entry.second.isUneven() && entry.second.unit == 1;
    });
    // What is padded anyway is padded for homes too.
    for (auto &[number, padding] : paddings) {
      for (int64_t shards : shardsOf(plan, plan.homes, padding.name)) {
        padding.shards = std::lcm(padding.shards, shards);
      }
      padding.padded = sizeOf(padding);
    }
    if (alignsRows) {
      dropUnpaddable();
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
  static int64_t sizeOf(const Enlarged &padding) {
    return padding.unit > 1 ? alignedSize(padding)
                            : int64_t(llvm::alignTo(uint64_t(padding.size), padding.shards));
  }

  /// Gives units to the classes that are worth padding for aligned rows.
  void alignRows() {
    auto shards = [&](uint32_t dimension) {
      auto found = paddings.find(dimension);
      return found == paddings.end() ? 1 : found->second.shards;
    };
    for (auto &[dimension, unaligned] : findUnalignedClasses(module, dimensions, shards)) {
      auto found = paddings.find(dimension);
      if (found == paddings.end()) {
        continue; // Of no variable.
      }
      Enlarged aligned = found->second;
      aligned.unit = unaligned.unit;
      double growth = double(sizeOf(aligned) - sizeOf(found->second)) / double(aligned.size);
      if (growth * unaligned.flops < unaligned.unalignedFlops) {
        found->second = aligned;
      }
    }
  }

  /// Leaves dimensions as they are that would only be padded for aligned rows, but cannot be. One
  /// may forbid another, as a permuted dimension and its partner have one length.
  void dropUnpaddable() {
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      module.walk([&](ShardableOpInterface op) {
        (void)forEachUnpaddable(op, [&](Enlarged &padding) {
          isChanged |= padding.unit > 1;
          padding.unit = 1;
          padding.padded = sizeOf(padding);
          return success();
        });
      });
      std::erase_if(paddings, [](const auto &entry) {
        return !entry.second.isUneven() && entry.second.unit == 1;
      });
    }
  }

  Enlarged *find(Value value, int64_t dim) {
    auto found = paddings.find(dimensions.classOf(value, dim));
    return found == paddings.end() ? nullptr : &found->second;
  }

  /// Calls `visit` with each factor to pad.
  template <typename Visit> LogicalResult forEachFactor(ShardableOpInterface op, Visit visit) {
    FactorRule rule = op.getFactorRule();
    auto over = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> dims) {
      for (auto [value, factors] : llvm::zip(values, dims)) {
        for (auto [dim, factor] : llvm::enumerate(factors)) {
          Enlarged *padding = find(value, int64_t(dim));
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

  /// Calls `visit` with each class to pad that `op` does not allow to pad.
  template <typename Visit> LogicalResult forEachUnpaddable(ShardableOpInterface op, Visit visit) {
    FactorRule rule = op.getFactorRule();
    bool keeps = keepsPartners(op);
    return forEachFactor(op, [&](unsigned factor, Enlarged &padding) -> LogicalResult {
      // A factor of another size contains groups, as of samples that share a mean.
      bool mayPad = mayBePadded(op, factor) && keeps && rule.factors[factor].size == padding.size;
      return mayPad ? success() : visit(padding);
    });
  }

  LogicalResult check(ShardableOpInterface op) {
    return forEachUnpaddable(op, [&](const Enlarged &padding) -> LogicalResult {
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
    if (!spec->mayPad || !(alignRows || needsPadding(module, *spec))) {
      return;
    }
    Padder padder(module, *spec, alignRows);
    if (failed(padder.run())) {
      return signalPassFailure();
    }
    numPadded += padder.count();
  }
};

} // namespace
} // namespace weft
