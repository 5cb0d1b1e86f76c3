//===- SearchShardings.cpp - the sharding of every value, by cost ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Planner/Solve.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEARCHSHARDINGSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// Writes a choice into types, and a reshard wherever a value is needed in another sharding.
class Application {
public:
  Application(ShardingProblem &shardings, const planner::Choice &choice)
      : shardings(shardings), choice(choice) {}

  void run(ModuleOp module) {
    for (auto &[value, route] : shardings.routes) {
      value.setType(withSharding(cast<RankedTensorType>(value.getType()), route.from.of(choice)));
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      function.setFunctionType(
          FunctionType::get(module.getContext(), function.getBody().getArgumentTypes(),
                            sharded(function.getResultTypes(), shardings.results[function])));
    }
    for (auto &[value, route] : shardings.routes) {
      Value shared = value;
      if (route.shared) {
        shared = reshard(value, route.shared->of(choice));
      }
      for (auto &[operand, end] : route.uses) {
        operand->set(moved(value, shared, end.of(choice)));
      }
    }
  }

  unsigned reshards = 0;

private:
  SmallVector<Type> sharded(TypeRange types, ArrayRef<ShardingEnd> ends) {
    SmallVector<Type> result(types);
    for (auto [type, end] : llvm::zip(result, ends)) {
      if (auto tensor = dyn_cast<RankedTensorType>(type)) {
        type = withSharding(tensor, end.of(choice));
      }
    }
    return result;
  }

  /// One use's value: as it was defined if that fits, else from what the uses share.
  Value moved(Value value, Value shared, ShardingAttr wanted) {
    return getSharding(value.getType()) == wanted ? value : reshard(shared, wanted);
  }

  Value reshard(Value value, ShardingAttr sharding) {
    if (getSharding(value.getType()) == sharding) {
      return value;
    }
    Value &known = done[{value, sharding}];
    if (!known) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      auto type = withSharding(cast<RankedTensorType>(value.getType()), sharding);
      known = ReshardOp::create(builder, value.getLoc(), type, value);
      ++reshards;
    }
    return known;
  }

  ShardingProblem &shardings;
  const planner::Choice &choice;
  DenseMap<std::pair<Value, Attribute>, Value> done;
};

struct SearchShardingsPass : impl::SearchShardingsPassBase<SearchShardingsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshAttr mesh = getMesh(module);
    auto predictor = makePredictor(getOperation(), getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    ShardingProblem shardings(module, mesh, predictor->get());
    if (failed(shardings.build())) {
      return signalPassFailure();
    }
    planner::Solution solution = planner::solve(shardings.problem);
    if (!solution.found()) {
      module.emitError("search-shardings: no choice of shardings keeps all rules");
      return signalPassFailure();
    }
    Application application(shardings, solution.choice);
    application.run(module);
    numReshards += application.reshards;
    numNodes += shardings.problem.nodes.size();
    numOptionsLeft += solution.optionsLeft;
    width.updateMax(solution.width);
  }
};

} // namespace
} // namespace weft
