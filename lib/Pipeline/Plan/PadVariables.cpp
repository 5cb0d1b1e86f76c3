//===- PadVariables.cpp - shards of variables of any length ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/PadVariables.h"

#include "HomeEntries.h"
#include "StoredValues.h"
#include "UnmatchedEntries.h"
#include "weft/Pipeline/ReadPlan.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <set>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PADVARIABLESPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// Returns `type` with each of `dims` of size `size`.
RankedTensorType withSize(Type type, ArrayRef<int64_t> dims, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  for (int64_t dim : dims) {
    shape[dim] = size;
  }
  return tensor.clone(shape);
}

/// An operand whose length its user does not expect.
struct Conversion {
  OpOperand *operand;
  SmallVector<int64_t> dims;
  bool toStored;
};

/// Pads and cuts off the values of one class of dimensions. Reads the whole module before it
/// changes it.
class Resizer {
public:
  Resizer(ModuleOp module, Dimensions &dimensions, const StoredClass &one)
      : module(module), one(one), stored(module, dimensions, one) {}

  void run() {
    module.walk([&](Operation *op) { read(op); });
    for (auto &[value, dims] : made) {
      value.setType(withSize(value.getType(), dims, one.padded));
    }
    for (auto &[value, dims] : padded) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      Value longer = resize(builder, value.getLoc(), value, dims, /*toStored=*/true);
      value.replaceAllUsesExcept(longer, longer.getDefiningOp());
    }
    // Before the user: whole tensors live only as long as it needs them.
    for (Conversion &conversion : conversions) {
      Operation *user = conversion.operand->getOwner();
      OpBuilder builder(user);
      conversion.operand->set(resize(builder, user->getLoc(), conversion.operand->get(),
                                     conversion.dims, conversion.toStored));
    }
    for (auto &[op, sizes] : unpaddedSizes) {
      op.setUnpaddedSizes(sizes);
    }
    for (auto &[observe, shape] : observed) {
      observe.setUnpadded(shape);
    }
    for (Operation *variable : one.variables) {
      pad(cast<VariableOp>(variable));
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      retype(function);
    }
  }

private:
  void read(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      SmallVector<int64_t> dims = stored.dimsOf(operand.get());
      if (dims.empty()) {
        continue;
      }
      bool isStored = stored.isStored(operand.get());
      if (auto observe = dyn_cast<ObserveOp>(op)) {
        if (isStored) {
          observed.push_back({observe, shapeOf(observe)});
        }
      } else if (bool needs = stored.needsStored(operand); needs != isStored) {
        conversions.push_back({&operand, dims, needs});
      }
    }
    for (Value result : op->getResults()) {
      if (stored.isStored(result)) {
        (stored.makesStored(op) ? made : padded).push_back({result, stored.dimsOf(result)});
      }
    }
    for (Region &region : op->getRegions()) {
      for (BlockArgument argument : region.getArguments()) {
        if (stored.isStored(argument)) {
          made.push_back({argument, stored.dimsOf(argument)});
        }
      }
    }
    if (auto sized = dyn_cast<UnpaddedSizesOpInterface>(op); sized && stored.makesStored(op)) {
      readSizes(sized);
    }
  }

  /// An op whose result depends on the sizes of the whole, as random numbers do, gets those without
  /// padding.
  void readSizes(UnpaddedSizesOpInterface op) {
    FactorRule rule = cast<ShardableOpInterface>(op.getOperation()).getFactorRule();
    SmallVector<unsigned> factors = op.getSizedFactors();
    bool hasPadded = llvm::any_of(factors, [&](unsigned factor) {
      return llvm::any_of(carriersOf(op, rule, factor), [&](auto carrier) {
        return llvm::is_contained(stored.dimsOf(carrier.first), carrier.second);
      });
    });
    if (hasPadded && op.getUnpaddedSizes().empty()) {
      unpaddedSizes.push_back({op, llvm::map_to_vector(factors, [&](unsigned factor) {
                                 return rule.factors[factor].size;
                               })});
    }
  }

  static SmallVector<int64_t> shapeOf(ObserveOp observe) {
    return SmallVector<int64_t>(observe.getUnpadded().value_or(
        cast<RankedTensorType>(observe.getValue().getType()).getShape()));
  }

  Value resize(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> dims,
               bool toStored) const {
    SmallVector<int64_t> none(cast<RankedTensorType>(value.getType()).getRank(), 0);
    RankedTensorType type = withSize(value.getType(), dims, toStored ? one.padded : one.size);
    SmallVector<int64_t> high(none);
    for (int64_t dim : dims) {
      high[dim] = one.padded - one.size;
    }
    Operation *resized =
        toStored ? PadOp::create(builder, loc, type, value, llvm::APFloat(0.0), none, high, none)
                       .getOperation()
                 : ExtractOp::create(builder, loc, type, value, none,
                                     SmallVector<int64_t>(none.size(), 1));
    resized->setAttr(kOfPaddingAttrName, builder.getUnitAttr());
    return resized->getResult(0);
  }

  void pad(VariableOp variable) {
    RankedTensorType type = variable.getTensorType();
    if (!variable.getUnpadded()) {
      variable.setUnpaddedAttr(Builder(module.getContext()).getDenseI64ArrayAttr(type.getShape()));
    }
    variable.setType(withSize(type, stored.dimsOf(variable), one.padded));
  }

  static void retype(func::FuncOp function) {
    if (!function.isExternal()) {
      Block &body = function.getBody().front();
      function.setFunctionType(FunctionType::get(function.getContext(), body.getArgumentTypes(),
                                                 body.getTerminator()->getOperandTypes()));
    }
  }

  ModuleOp module;
  const StoredClass &one;
  StoredValues stored;
  std::vector<Conversion> conversions;
  /// Stored values, with their padded dimensions: those that are computed so, and those that a pad
  /// follows.
  std::vector<std::pair<Value, SmallVector<int64_t>>> made, padded;
  std::vector<std::pair<UnpaddedSizesOpInterface, SmallVector<int64_t>>> unpaddedSizes;
  std::vector<std::pair<ObserveOp, SmallVector<int64_t>>> observed;
};

/// Returns for each dimension of a variable a number of elements that each of its homes cuts into
/// equal shards. Dimensions that a `sharding` cuts divide already.
SmallVector<int64_t> unitsOf(const desc::PlanSpec &plan, VariableOp variable,
                             const HomeNames &homes) {
  SmallVector<int64_t> units(variable.getDimensions().size(), 1);
  for (const std::string &name : homes.allOf(variable)) {
    for (auto [dim, home] : llvm::enumerate(entriesOfHome(variable, name, plan).dims)) {
      units[dim] = std::lcm(units[dim], home.isHome ? shardsOf(plan, home.entry) : 1);
    }
  }
  return units;
}

/// A dimension to pad, of a variable that the plan leaves open.
struct OpenCut {
  int64_t dim, shards;
};

/// Returns true if each of `axes` can cut one of `sizes` evenly.
bool canCut(SmallVector<int64_t> sizes, ArrayRef<int64_t> axes) {
  return axes.empty() || llvm::any_of(llvm::seq(sizes.size()), [&](size_t dim) {
           SmallVector<int64_t> left(sizes);
           left[dim] /= axes.front();
           return sizes[dim] % axes.front() == 0 && canCut(left, axes.drop_front());
         });
}

/// Returns true if dimension `dim` of the variable has padding.
bool isPadded(VariableOp variable, size_t dim) {
  ArrayRef<int64_t> shape = variable.getTensorType().getShape();
  return variable.getUnpadded().value_or(shape)[dim] != shape[dim];
}

/// Returns the dimension along which padding lets all free axes of `plan` cut the variable. Returns
/// nothing if the axes divide its open dimensions, if the least padding would be as long as the
/// dimension, and for vectors, which are too small to matter. A dimension that ops have padded is
/// not padded again.
std::optional<OpenCut> openCut(const desc::PlanSpec &plan, VariableOp variable,
                               const HomeNames &homes) {
  ArrayRef<int64_t> shape = variable.getTensorType().getShape();
  if (variable.getRole() == VariableRole::Input || shape.size() < 2) {
    return std::nullopt;
  }
  std::string name = homes.of(variable), planName = getPlanName(variable).str();
  SmallVector<int64_t> open, sizes, axes;
  std::set<std::string> taken;
  for (auto [dim, dimension] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
    const desc::ShardingSpec *entry = desc::entryFor(plan.homes, name, dimension.str());
    entry = entry ? entry : desc::entryFor(plan.shardings, planName, dimension.str());
    if (entry) {
      taken.insert(entry->axes.begin(), entry->axes.end());
    } else {
      open.push_back(int64_t(dim));
      sizes.push_back(shape[dim]);
    }
  }
  int64_t shards = 1;
  for (const desc::AxisSpec &axis : plan.mesh) {
    if (!taken.count(axis.name)) {
      axes.push_back(axis.size);
      shards *= axis.size;
    }
  }
  if (open.empty() || canCut(sizes, axes)) {
    return std::nullopt;
  }
  auto growth = [&](int64_t dim) {
    return double(llvm::alignTo(uint64_t(shape[dim]), uint64_t(shards))) / double(shape[dim]);
  };
  llvm::erase_if(open, [&](int64_t dim) { return isPadded(variable, size_t(dim)); });
  if (open.empty()) {
    return std::nullopt;
  }
  int64_t best =
      *llvm::min_element(open, [&](int64_t a, int64_t b) { return growth(a) < growth(b); });
  return growth(best) < 2 ? std::optional(OpenCut{best, shards}) : std::nullopt;
}

/// Returns the first class of dimensions that homes, or with `open` all ranks, do not cut into
/// equal shards.
std::optional<StoredClass> findClass(ModuleOp module, const desc::PlanSpec &plan, bool open,
                                     Dimensions &dimensions) {
  std::optional<StoredClass> found;
  HomeNames homes(module);
  int64_t unit = 1;
  for (auto variable : module.getOps<VariableOp>()) {
    if (variable.getRole() == VariableRole::Input) {
      continue;
    }
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    std::optional<OpenCut> cut = open ? openCut(plan, variable, homes) : std::nullopt;
    SmallVector<int64_t> units = unitsOf(plan, variable, homes);
    for (auto [dim, shards] : llvm::enumerate(units)) {
      bool isOpen = cut && cut->dim == int64_t(dim);
      shards = isOpen ? std::lcm(shards, cut->shards) : shards;
      uint32_t dimension = dimensions.classOf(variable, int64_t(dim));
      if (shape[dim] % shards != 0 && (!found || found->dimension == dimension)) {
        found = found ? found : StoredClass{dimension, shape[dim], 0, {}};
        found->variables.insert(variable);
        unit = std::lcm(unit, shards);
      }
    }
  }
  if (found) {
    found->padded = static_cast<int64_t>(llvm::alignTo(uint64_t(found->size), uint64_t(unit)));
  }
  return found;
}

struct PadVariablesPass : impl::PadVariablesPassBase<PadVariablesPass> {
  using Base::Base;
  PadVariablesPass(const PadVariablesPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "pad-variables", plan, {pins.begin(), pins.end()}, written);
    if (failed(spec)) {
      return signalPassFailure();
    }
    while (spec->mayPad) {
      Dimensions dimensions(module);
      std::optional<StoredClass> found = findClass(module, *spec, open, dimensions);
      if (!found) {
        return;
      }
      Resizer(module, dimensions, *found).run();
      numPadded += found->variables.size();
    }
  }

private:
  /// The plan to apply in place of the options'; may be null.
  const desc::PlanSpec *written = nullptr;
};

} // namespace

std::unique_ptr<Pass> createPadVariablesPass(const PadVariablesPassOptions &options,
                                             const desc::PlanSpec *plan) {
  return std::make_unique<PadVariablesPass>(options, plan);
}

bool hasOpenUnevenVariables(ModuleOp module, const desc::PlanSpec &plan) {
  HomeNames homes(module);
  return plan.mayPad && llvm::any_of(module.getOps<VariableOp>(), [&](VariableOp variable) {
           return openCut(plan, variable, homes).has_value();
         });
}

} // namespace weft
