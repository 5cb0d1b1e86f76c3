//===- SearchShardings.cpp - the sharding of every value, by cost ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"
#include "ShardingReasons.h"
#include "ValueExplainer.h"

#include "weft/Description/Machine.h"
#include "weft/Description/Validate.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Planner/ProblemText.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEARCHSHARDINGSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// Writes a choice into types, and inserts a reshard wherever an op needs another sharding.
class Application {
public:
  Application(ShardingProblem &shardings, const planner::Choice &choice)
      : shardings(shardings), choice(choice) {}

  void run() {
    for (auto &[op, end] : shardings.variables) {
      auto variable = cast<VariableOp>(op);
      variable.setType(cast<RankedTensorType>(sharded(variable.getTensorType(), end)));
    }
    for (auto &[value, route] : shardings.routes) {
      Value(value).setType(sharded(value.getType(), route.from));
    }
    for (auto &[op, ends] : shardings.results) {
      auto function = cast<func::FuncOp>(op);
      SmallVector<Type> results;
      for (auto [type, end] : llvm::zip(function.getResultTypes(), ends)) {
        results.push_back(end ? sharded(type, end) : type);
      }
      function.setFunctionType(
          FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
    }
    for (auto &[value, route] : shardings.routes) {
      move(value, route.early);
      move(value, route.late);
    }
  }

  unsigned reshards = 0;

private:
  Type sharded(Type type, const ShardingEnd *end) const {
    return withSharding(cast<RankedTensorType>(type), shardings.shardingOf(type, *end, choice));
  }

  /// Each use gets the value in its original sharding if that fits, else from the reshard that the
  /// uses share.
  void move(Value value, const SharedUses &group) {
    DenseMap<Type, Value> done;
    Value shared = value;
    if (group.shared) {
      shared = reshard(value, sharded(value.getType(), group.shared), group, done);
    }
    for (auto &[operand, end] : group.uses) {
      Type wanted = sharded(value.getType(), end);
      operand->set(value.getType() == wanted ? value : reshard(shared, wanted, group, done));
    }
  }

  /// Inserts before the first user, so that gathered values do not occupy memory earlier.
  Value reshard(Value value, Type type, const SharedUses &group, DenseMap<Type, Value> &done) {
    if (value.getType() == type) {
      return value;
    }
    Value &known = done[type];
    if (!known) {
      Operation *first = group.uses.front().first->getOwner();
      for (auto &[operand, end] : group.uses) {
        Operation *user = operand->getOwner();
        first = user->isBeforeInBlock(first) ? user : first;
      }
      OpBuilder builder(first);
      known = ReshardOp::create(builder, value.getLoc(), type, value);
      ++reshards;
    }
    return known;
  }

  ShardingProblem &shardings;
  const planner::Choice &choice;
};

struct SearchShardingsPass : impl::SearchShardingsPassBase<SearchShardingsPass> {
  using Base::Base;
  SearchShardingsPass(const SearchShardingsPassOptions &options, const ValueQuestion *question)
      : Base(options), question(question) {}

  std::shared_ptr<const SearchResult> getResult() const { return result; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshAttr mesh = getMesh(module);
    if (!mesh) {
      module.emitError("search-shardings: expected a module with a mesh, see apply-plan");
      return signalPassFailure();
    }
    if (mesh.getSizes().size() > desc::mostParts) {
      module.emitError("search-shardings: expected a mesh of at most ")
          << desc::mostParts << " parts, got " << mesh.getSizes().size();
      return signalPassFailure();
    }
    auto predictor = makePredictor(module, getArgument(), machine);
    if (failed(predictor) || failed(checkSizes(module))) {
      return signalPassFailure();
    }
    module.walk([&](Operation *op) {
      if (auto given = llvm::cast_or_null<ArrayAttr>(op->removeAttr(kPinnedByAttrName))) {
        origins[op] = given;
      }
    });
    LayoutSpaces spaces(mesh);
    ReshardTables tables(spaces, predictor->get());
    // The step decides the shardings of variables; other functions follow.
    SmallVector<func::FuncOp> roots;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.isPrivate()) {
        roots.insert(function.getSymName() == "step" ? roots.begin() : roots.end(), function);
      }
    }
    decider = roots.empty() ? nullptr : roots.front();
    for (func::FuncOp root : roots) {
      if (failed(decide(root, tables))) {
        return signalPassFailure();
      }
      if (root == decider) {
        holdCopiesAlike(module);
      }
    }
    for (auto variable : module.getOps<VariableOp>()) {
      settleUnused(variable, mesh);
    }
    module.walk([](Operation *op) { op->removeAttr(kPinsAttrName); });
    stateHeldCopies(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      forgetBorders(function);
    }
  }

  static LogicalResult checkSizes(ModuleOp module) {
    WalkResult walk = module.walk([](Operation *op) {
      for (Type type : op->getResultTypes()) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        if (tensor && !tensor.hasStaticShape()) {
          op->emitOpError("search-shardings: expected sizes that are known, got ")
              << type << "; see substitute-batch";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  /// Pins the copies of parameters in all other functions to the layout that the step chose, as the
  /// plan has one home for both.
  static void holdCopiesAlike(ModuleOp module) {
    WeightCopies copies(module);
    for (auto variable : module.getOps<VariableOp>()) {
      SmallVector<Value> held = llvm::map_to_vector(
          copies.of(variable), [](Value copy) { return WeightCopies::heldIn(copy); });
      auto decided =
          llvm::find_if(held, [](Value value) { return value && getSharding(value.getType()); });
      for (Value value : decided == held.end() ? ArrayRef<Value>() : ArrayRef<Value>(held)) {
        if (value && !getSharding(value.getType())) {
          SmallVector<Attribute> pins(getSharding(decided->getType()).getDims());
          pins.push_back(DictionaryAttr::get(module.getContext())); // Nothing is pending.
          value.getDefiningOp()->setAttr(kPinsAttrName, ArrayAttr::get(module.getContext(), pins));
        }
      }
    }
  }

  /// Writes the layouts of held copies into their constraints, as a plan that has them as homes
  /// does: the module is the same whether they were found or read.
  static void stateHeldCopies(ModuleOp module) {
    for (Operation *op : WeightCopies(module).constraints()) {
      auto constrain = cast<ConstrainOp>(op);
      if (ShardingAttr sharding = getSharding(constrain.getOutput().getType())) {
        SmallVector<Attribute> dims(sharding.getDims());
        constrain.setDimsAttr(ArrayAttr::get(module.getContext(), dims));
      }
    }
  }

  static void forgetBorders(func::FuncOp function) {
    for (StringRef text : {kMayPendAttrName, kPinsAttrName}) {
      auto name = StringAttr::get(function.getContext(), text);
      for (unsigned number = 0; number < function.getNumArguments(); ++number) {
        function.removeArgAttr(number, name);
      }
      for (unsigned number = 0; number < function.getNumResults(); ++number) {
        function.removeResultAttr(number, name);
      }
    }
  }

  LogicalResult decide(func::FuncOp root, ReshardTables &tables) {
    // Built again for each root, as earlier roots changed the uses of values.
    std::unique_ptr<ByteSeconds> byteSeconds =
        ByteSeconds::make(fp8Matmuls, getOperation(), tables.machine);
    ShardingProblem shardings(getOperation(), tables, byteSeconds.get());
    if (failed(shardings.build(root))) {
      return failure();
    }
    // The problem is that of all stages together.
    const auto stages = double(countStages(getOperation()));
    if (tables.machine) {
      shardings.problem.bytesLimit =
          stages * std::max(tables.machine->memoryBytes() - double(reserve), 0.0);
    }
    if (shardings.problem.nodes.empty()) {
      return success();
    }
    if (root == decider && !problem.empty() && failed(writeProblem(root, shardings.problem))) {
      return failure();
    }
    std::optional<ValueExplainer> explainer;
    if (question && root == decider) {
      explainer.emplace(getOperation(), shardings, *question);
      LogicalResult isThere = explainer->find();
      result->answer = explainer->getAnswer();
      if (failed(isThere)) {
        return failure();
      }
    }
    ShardingChoice found = chooseShardings(shardings);
    // Schedule computes the program's exact memory, and rejects it there if needed.
    const planner::Choice &choice = found.choice;
    const planner::Solution &solution = found.solution;
    if (choice.empty()) {
      return root.emitError("search-shardings: no choice of shardings keeps all rules");
    }
    if (root == decider) {
      planner::Evaluation evaluation = planner::evaluate(shardings.problem, choice);
      double seconds = evaluation.seconds - sparedSeconds(shardings, choice, tables.prices);
      result->report = {seconds / stages,
                        evaluation.bytes / stages,
                        shardings.leastSeconds / stages,
                        seconds / std::max(std::min(solution.lowerBound, seconds), 1e-12) - 1,
                        solution.found(),
                        shardings.problem.nodes.size(),
                        tables.spaces.areAllSearched()};
    }
    if (explainer) {
      explainer->explain(found, tables, origins);
      result->answer = explainer->getAnswer();
    }
    if (why) {
      writeReasons(getOperation(), shardings, choice, origins, tables.machine != nullptr);
    }
    Application application(shardings, choice);
    application.run();
    numReshards += application.reshards;
    numNodes += shardings.problem.nodes.size();
    numOptionsLeft += solution.optionsLeft;
    width.updateMax(solution.width);
    return success();
  }

  LogicalResult writeProblem(func::FuncOp root, const planner::Problem &found) {
    llvm::Error error = llvm::writeToOutput(problem, [&](llvm::raw_ostream &stream) {
      stream << planner::printProblem(found);
      return llvm::Error::success();
    });
    return error ? root.emitError("search-shardings: cannot write '")
                       << problem << "': " << llvm::toString(std::move(error))
                 : success();
  }

  /// Variables that no function reads or assigns are whole, unless they are pinned.
  void settleUnused(VariableOp variable, MeshAttr mesh) {
    RankedTensorType type = variable.getTensorType();
    if (getSharding(type)) {
      return;
    }
    ShardingAttr sharding = ShardingAttr::getReplicated(mesh, type.getRank());
    if (auto pins = variable->getAttrOfType<ArrayAttr>(kPinsAttrName)) {
      for (auto [dim, pin] : llvm::enumerate(pins)) {
        if (auto axes = dyn_cast<ArrayAttr>(pin)) {
          sharding = withDim(sharding, int64_t(dim), axes);
        }
      }
    }
    variable.setType(withSharding(type, sharding));
  }

private:
  /// Null for none.
  const ValueQuestion *question = nullptr;
  std::shared_ptr<SearchResult> result = std::make_shared<SearchResult>();
  PinOrigins origins;
  /// The function that decides the shardings of variables.
  func::FuncOp decider;
};

} // namespace

PassWithResult<SearchResult> makeShardingSearch(const SearchShardingsPassOptions &options,
                                                const ValueQuestion *question) {
  auto pass = std::make_unique<SearchShardingsPass>(options, question);
  std::shared_ptr<const SearchResult> result = pass->getResult();
  return {std::move(pass), std::move(result)};
}

} // namespace weft
