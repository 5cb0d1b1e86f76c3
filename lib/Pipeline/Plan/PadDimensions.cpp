//===- PadDimensions.cpp - makes dimensions divide ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomeEntries.h"
#include "MatmulRows.h"
#include "Padding.h"
#include "StoredValues.h"
#include "weft/Pipeline/ReadPlan.h"

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
  /// The first entry that asks for shards that do not divide the size; null without one.
  const desc::ShardingSpec *cause = nullptr;

  void cutBy(const desc::ShardingSpec &entry, int64_t ways, StringRef dimension) {
    if (ways == 1) {
      return;
    }
    if (!cause && size % ways != 0) {
      cause = &entry;
      name = dimension.str();
    }
    shards = std::lcm(shards, ways);
  }
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

class Padder {
public:
  Padder(ModuleOp module, const desc::PlanSpec &plan, bool alignsRows)
      : module(module), plan(plan), dimensions(module) {
    for (auto variable : module.getOps<VariableOp>()) {
      for (auto [dim, name] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
        Enlarged &padding = paddings[dimensions.classOf(variable, int64_t(dim))];
        padding.size = variable.getTensorType().getDimSize(int64_t(dim));
        padding.name = padding.name.empty() ? name.str() : padding.name;
      }
    }
    cutByOps();
    cutByHomes(/*ofPadded=*/false);
    if (alignsRows) {
      alignRows();
    }
    std::erase_if(paddings, [](const auto &entry) {
      return !entry.second.isUneven() && entry.second.unit == 1;
    });
    findSizes();
    if (alignsRows) {
      dropUnpaddable();
    }
    cutByHomes(/*ofPadded=*/true);
    findSizes();
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

  /// Collects the shards of the entries that ops on samples follow, as far as these entries name
  /// dimensions. Other ops compute with variables as these are stored, see pad-variables.
  void cutByOps() {
    OpNames names(module);
    SampleClasses samples(module, dimensions);
    module.walk([&](ShardableOpInterface op) {
      if (!samples.dependsOnSamples(op)) {
        return;
      }
      FactorRule rule = op.getFactorRule();
      FactorEntries held = entriesOfFactors(op, rule, names, dimensions, plan, /*evenOnly=*/false);
      for (auto [factor, entry] : llvm::enumerate(held.entries)) {
        if (!entry || StringRef(entry->dimension).starts_with("factor")) {
          continue;
        }
        for (auto [value, dim] : carriersOf(op, rule, unsigned(factor))) {
          if (Enlarged *padding = find(value, dim)) {
            padding->cutBy(*entry, shardsOf(plan, entry), padding->name);
          }
        }
      }
    });
  }

  /// Collects the shards of variables: of inputs and of variables that have no home of their own;
  /// or, with `ofPadded`, of all homes, as what is padded anyway is padded for them too.
  void cutByHomes(bool ofPadded) {
    HomeNames homes(module);
    for (auto variable : module.getOps<VariableOp>()) {
      bool isInput = variable.getRole() == VariableRole::Input;
      for (const std::string &name : homes.allOf(variable)) {
        for (auto [dim, home] : llvm::enumerate(entriesOfHome(variable, name, plan).dims)) {
          auto found = paddings.find(dimensions.classOf(variable, int64_t(dim)));
          if (found != paddings.end() && home.entry && (ofPadded || isInput || !home.isHome)) {
            auto dimension = cast<StringAttr>(variable.getDimensions()[dim]);
            found->second.cutBy(*home.entry, shardsOf(plan, home.entry), dimension.getValue());
          }
        }
      }
    }
  }

  void findSizes() {
    for (auto &[number, padding] : paddings) {
      padding.padded = sizeOf(padding);
    }
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
      InFlightDiagnostic error =
          emitError(placeOf(op->getContext(), padding.cause->location))
          << "axes: " << plan.parts().sized(padding.cause->axes, " * ") << " does not divide "
          << padding.name << "=" << padding.size << " and it cannot be padded: " << op->getName()
          << " depends on how long it is, expected a divisor of " << padding.size;
      error.attachNote(op->getLoc()) << "it is cut here";
      return error;
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
  const desc::PlanSpec &plan;
  Dimensions dimensions;
  /// The padding of each class.
  std::map<uint32_t, Enlarged> paddings;
};

struct PadDimensionsPass : impl::PadDimensionsPassBase<PadDimensionsPass> {
  using Base::Base;
  PadDimensionsPass(const PadDimensionsPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "pad-dimensions", plan, {pins.begin(), pins.end()}, written);
    if (failed(spec)) {
      return signalPassFailure();
    }
    if (!spec->mayPad) {
      return;
    }
    Padder padder(module, *spec, alignRows);
    if (failed(padder.run())) {
      return signalPassFailure();
    }
    numPadded += padder.count();
  }

private:
  /// The plan to apply in place of the options'; may be null.
  const desc::PlanSpec *written = nullptr;
};

} // namespace

std::unique_ptr<Pass> createPadDimensionsPass(const PadDimensionsPassOptions &options,
                                              const desc::PlanSpec *plan) {
  return std::make_unique<PadDimensionsPass>(options, plan);
}

} // namespace weft
