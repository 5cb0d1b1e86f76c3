//===- MergeMaps.cpp - one map for two that read the same tensor ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "Placement.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MERGEMAPSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

int64_t bytesOf(Type type) { return countBytes(cast<RankedTensorType>(type)); }

AffineMap mapOf(MapOp map, unsigned number) {
  return cast<AffineMapAttr>(map.getMaps()[number]).getValue();
}

/// Returns true if both maps read one tensor at the element that they compute.
bool readTheSame(MapOp a, MapOp b) {
  for (auto [number, input] : llvm::enumerate(a.getInputs())) {
    for (auto [other, otherInput] : llvm::enumerate(b.getInputs())) {
      if (input == otherInput && mapOf(a, number).isIdentity() && mapOf(b, other).isIdentity()) {
        return true;
      }
    }
  }
  return false;
}

/// Returns true if an op between `first` and `second` reads `value`, or it could by a reshape.
bool isReadBetween(Value value, Operation *first, Operation *second) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    bool isBetween = first->isBeforeInBlock(user) && user->isBeforeInBlock(second);
    return user != first && user != second && (isBetween || isa<ReshapeOp>(user));
  });
}

/// Bytes of a map's operands that are not read again, and of its results.
struct MapBytes {
  int64_t ended, begun;
};

/// Counts them in all uses of maps, with all calls inlined.
class UsesOfMaps {
public:
  explicit UsesOfMaps(ArrayRef<FlatSection> sections) {
    for (const FlatSection &section : sections) {
      for (auto [time, op] : llvm::enumerate(section.ops)) {
        if (isa<MapOp>(op.op)) {
          count(section, op, static_cast<int32_t>(time));
        }
      }
    }
  }

  /// Returns true if the results of `map` find room in its operands wherever it is used.
  bool fitsInOperands(MapOp map) const { return fits.lookup(map); }

private:
  void count(const FlatSection &section, const FlatOp &op, int32_t time) {
    MapBytes bytes = {0, 0};
    for (uint32_t operand : section.operandsOf(op)) {
      const FlatValue &value = section.values[operand];
      bytes.ended += value.lastRead == time && value.variable < 0 ? bytesOf(value.type) : 0;
    }
    for (uint32_t result : section.resultsOf(op)) {
      bytes.begun += bytesOf(section.values[result].type);
    }
    auto known = fits.try_emplace(op.op, true).first;
    known->second &= bytes.begun <= bytes.ended;
  }

  llvm::DenseMap<Operation *, bool> fits;
};

/// Builds a map with the results of `first` and then those of `second`, in the place of `first`.
MapOp merge(MapOp first, MapOp second) {
  SmallVector<Value> inputs(first.getInputs());
  SmallVector<AffineMap> maps(first.getMaps().getAsValueRange<AffineMapAttr>());
  SmallVector<unsigned> positions;
  for (auto [number, input] : llvm::enumerate(second.getInputs())) {
    unsigned position = 0;
    while (position < inputs.size() &&
           (inputs[position] != input || maps[position] != mapOf(second, number))) {
      ++position;
    }
    if (position == inputs.size()) {
      inputs.push_back(input);
      maps.push_back(mapOf(second, number));
    }
    positions.push_back(position);
  }
  SmallVector<Type> types(first->getResultTypes());
  llvm::append_range(types, second->getResultTypes());
  OpBuilder builder(first);
  auto merged =
      MapOp::create(builder, builder.getFusedLoc({first.getLoc(), second.getLoc()}), types, inputs,
                    maps, [&](OpBuilder &inside, Location, ValueRange arguments) {
                      SmallVector<Value> results;
                      auto copy = [&](MapOp map, ValueRange own) {
                        Block &body = map.getBody().front();
                        IRMapping mapping;
                        mapping.map(body.getArguments(), own);
                        for (Operation &op : body.without_terminator()) {
                          inside.clone(op, mapping);
                        }
                        for (Value value : body.getTerminator()->getOperands()) {
                          results.push_back(mapping.lookupOrDefault(value));
                        }
                      };
                      copy(first, arguments.take_front(first.getNumOperands()));
                      copy(second, llvm::map_to_vector(positions, [&](unsigned position) -> Value {
                             return arguments[position];
                           }));
                      return results;
                    });
  first->replaceAllUsesWith(merged->getResults().take_front(first->getNumResults()));
  second->replaceAllUsesWith(merged->getResults().drop_front(first->getNumResults()));
  first.erase();
  second.erase();
  return merged;
}

struct MergeMapsPass : impl::MergeMapsPassBase<MergeMapsPass> {
  void runOnOperation() override {
    ModuleSymbols symbols(getOperation());
    FailureOr<SmallVector<FlatSection, 3>> sections = linearizeSections(getOperation(), symbols);
    if (failed(sections)) {
      return signalPassFailure();
    }
    UsesOfMaps uses(*sections);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (Block &block : function.getBody()) {
        mergeIn(block, uses);
      }
    }
  }

  void mergeIn(Block &block, const UsesOfMaps &uses) {
    SmallVector<MapOp> maps(block.getOps<MapOp>());
    for (unsigned number = 0; number < maps.size(); ++number) {
      for (unsigned later = number + 1; later < maps.size(); ++later) {
        if (mayMerge(maps[number], maps[later]) && uses.fitsInOperands(maps[later])) {
          merge(maps[number], maps[later]);
          maps.erase(maps.begin() + later); // Each map merges once.
          ++merged;
          break;
        }
      }
    }
  }

  /// Returns true if `second` can move to the place of `first`, and saves a read there.
  static bool mayMerge(MapOp first, MapOp second) {
    auto isReady = [&](Value input) {
      Operation *def = input.getDefiningOp();
      return (!def || def->isBeforeInBlock(first)) && !isReadBetween(input, first, second);
    };
    return first.getOutputType().getShape() == second.getOutputType().getShape() &&
           readTheSame(first, second) && llvm::all_of(second.getInputs(), isReady);
  }
};

} // namespace
} // namespace weft
