//===- PricePlan.cpp - the cost of a planned module -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"
#include "PlannedSeconds.h"
#include "PricePipeline.h"

#include "weft/Description/Machine.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PRICEPLANPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// The peak point of a function, and the bytes of its values there, with those of called functions.
struct Instant {
  Operation *op = nullptr;
  double bytes = -1;
};

class Pricing {
public:
  /// Both may be null.
  Pricing(ModuleOp module, const cost::Predictor *machine, ByteSeconds *byteSeconds)
      : symbols(module), planned(module, machine, byteSeconds) {}

  PlanPrice run(func::FuncOp root, ModuleOp module) {
    countCalls(root, 1);
    for (auto &[function, times] : calls) {
      add(cast<func::FuncOp>(function), times);
    }
    for (auto &[kind, seconds] : price.computing) {
      price.seconds += seconds;
    }
    for (auto &[axes, seconds] : price.sending) {
      price.seconds += seconds;
    }
    llvm::StringSet<> used = usedSymbols();
    for (auto variable : module.getOps<VariableOp>()) {
      price.variables[stringifyEnum(variable.getRole()).str()] +=
          used.contains(variable.getSymName()) ? localBytes(variable.getTensorType()) : 0;
    }
    price.saved = savedBytes(root);
    takeMean(double(countStages(module)));
    price.pipeline = pricePipeline(root, planned);
    return std::move(price);
  }

private:
  /// Makes the price of all stages that of one, in the mean.
  void takeMean(double stages) {
    for (auto *parts : {&price.computing, &price.sending, &price.variables}) {
      for (auto &[name, number] : *parts) {
        number /= stages;
      }
    }
    price.seconds /= stages;
    price.saved /= stages;
  }

  /// The variables that functions of a step use.
  llvm::StringSet<> usedSymbols() {
    llvm::StringSet<> used;
    for (auto &[function, times] : calls) {
      std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(function);
      for (const SymbolTable::SymbolUse &use : *uses) {
        used.insert(use.getSymbolRef().getRootReference().getValue());
      }
    }
    return used;
  }

  void countCalls(func::FuncOp function, double times) {
    calls[function] += times;
    for (auto call : function.getOps<CallOp>()) {
      countCalls(symbols.lookup<func::FuncOp>(call.getCallee()), times);
    }
  }

  void add(func::FuncOp function, double times) {
    for (Operation &op : function.getOps()) {
      PlannedOp one = planned.of(&op);
      if (isa<ShardableOpInterface>(op)) {
        price.computing[op.getName().stripDialect().str()] += times * one.computing;
      }
      for (const auto &[axes, seconds] : one.sending) {
        price.sending[axes] += times * seconds;
      }
    }
  }

  /// Returns the value before all reshards.
  static Value originOf(Value value) {
    while (auto reshard = value.getDefiningOp<ReshardOp>()) {
      value = reshard.getInput();
    }
    return value;
  }

  /// Returns the values that take memory, each with its last user that is no reshard.
  static llvm::MapVector<Value, Operation *> lastUses(Block &block) {
    llvm::MapVector<Value, Operation *> last;
    for (Operation &op : block) {
      for (Value operand : op.getOperands()) {
        Value origin = originOf(operand);
        if (!isa<ReshardOp>(op) && !isa_and_nonnull<ReadOp>(origin.getDefiningOp())) {
          last[origin] = &op;
        }
      }
    }
    return last;
  }

  /// Returns the function that `op` calls if it has calls itself, as the peak point may lie inside;
  /// or null.
  func::FuncOp insideOf(Operation *op) {
    auto call = dyn_cast_or_null<CallOp>(op);
    auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    return callee && !callee.getOps<CallOp>().empty() ? callee : func::FuncOp();
  }

  /// Returns the instant at which whole values take most bytes, not counting copies by reshards.
  const Instant &fullest(func::FuncOp function) {
    auto [known, isNew] = instants.try_emplace(function);
    if (!isNew) {
      return known->second;
    }
    Block &block = function.getBody().front();
    DenseMap<Operation *, double> made, dying;
    double live = 0;
    for (auto &[value, op] : lastUses(block)) {
      double bytes = wholeBytes(value.getType());
      dying[op] += bytes;
      (value.getDefiningOp() ? made[value.getDefiningOp()] : live) += bytes;
    }
    Instant most;
    for (Operation &op : block) {
      live += made.lookup(&op) - dying.lookup(&op);
      func::FuncOp inside = insideOf(&op);
      double bytes = live + (inside ? fullest(inside).bytes : 0);
      if (!isa<ReshardOp>(op) && bytes > most.bytes) {
        most = {&op, bytes};
      }
    }
    return known->second = most;
  }

  /// Returns the bytes of values that are computed before the fullest instant and used after it.
  /// Held arguments of `call`, which calls the function or is null, count for the caller.
  double savedBytes(func::FuncOp function, CallOp call = {}) {
    Operation *instant = fullest(function).op;
    double saved = 0;
    for (auto &[value, op] : lastUses(function.getBody().front())) {
      Operation *definition = value.getDefiningOp();
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && call && isHeldArgument(call->getOpOperand(argument.getArgNumber()))) {
        continue;
      }
      bool isBefore = !definition || !instant->isBeforeInBlock(definition);
      saved += isBefore && instant->isBeforeInBlock(op) ? localBytes(value.getType()) : 0;
    }
    func::FuncOp inside = insideOf(instant);
    return saved + (inside ? savedBytes(inside, cast<CallOp>(instant)) : 0);
  }

  SymbolTable symbols;
  PlannedSeconds planned;
  /// The number of calls of each function.
  llvm::MapVector<Operation *, double> calls;
  /// The fullest instants of functions. A std::map, as references to its values stay valid.
  std::map<Operation *, Instant> instants;
  PlanPrice price;
};

} // namespace

double PlanPrice::bytes() const {
  double sum = saved;
  for (auto &[role, bytes] : variables) {
    sum += bytes;
  }
  return sum;
}

/// Prices `@step` or, if there is none, the first public function. Both pointers may be null.
static PlanPrice pricePlan(ModuleOp module, const cost::Predictor *machine,
                           ByteSeconds *byteSeconds) {
  auto root = module.lookupSymbol<func::FuncOp>("step");
  for (auto function : module.getOps<func::FuncOp>()) {
    root = root || function.isPrivate() ? root : function;
  }
  return root ? Pricing(module, machine, byteSeconds).run(root, module) : PlanPrice();
}

namespace {

struct PricePlanPass : impl::PricePlanPassBase<PricePlanPass> {
  using Base::Base;
  PricePlanPass(const PricePlanPassOptions &options, std::shared_ptr<const SearchResult> search)
      : Base(options), search(std::move(search)) {}

  std::shared_ptr<const PlanPrice> getResult() const { return result; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto predictor = makePredictor(module, getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
    std::unique_ptr<ByteSeconds> byteSeconds =
        ByteSeconds::make(fp8Matmuls, module, predictor->get());
    PlanPrice price = pricePlan(module, predictor->get(), byteSeconds.get());
    *result = price;
    if (search) {
      seconds = search->report.seconds;
      bytes = search->report.bytes;
    }
    if (seconds < 0 && bytes < 0) {
      return print(module, price);
    }
    bool agrees = isNear(price.seconds, seconds) && isNear(price.bytes(), bytes);
    if (!agrees) {
      module.emitError() << llvm::formatv(
          "price-plan: internal error: the search says {0:E6} seconds and {1:F0} bytes, but its "
          "module takes {2:E6} seconds and {3:F0} bytes",
          double(seconds), double(bytes), price.seconds, price.bytes());
      signalPassFailure();
    }
  }

private:
  /// Compares but for rounding.
  static bool isNear(double a, double b) {
    return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
  }

  static void print(ModuleOp module, const PlanPrice &price) {
    InFlightDiagnostic remark = module.emitRemark("price-plan: ");
    remark << llvm::formatv("{0:E6} seconds", price.seconds);
    auto list = [&](const std::map<std::string, double> &parts, const char *format) {
      for (const auto &[name, number] : parts) {
        remark << "; " << name << " " << llvm::formatv(format, number).str();
      }
    };
    list(price.computing, "{0:E6}");
    list(price.sending, "{0:E6}");
    list(price.variables, "{0:F0} bytes");
    remark << llvm::formatv("; saved {0:F0} bytes", price.saved);
    print(remark, price.pipeline);
  }

  static void print(InFlightDiagnostic &remark, const PipelinePrice &pipeline) {
    for (auto [number, chunk] : llvm::enumerate(pipeline.chunks)) {
      remark << llvm::formatv("; chunk {0} of stage {1} keeps {2:F0} bytes", number, chunk.stage,
                              chunk.keptBytes);
      for (auto [name, action] :
           {std::pair("forward", chunk.forward), std::pair("backward", chunk.backward)}) {
        remark << llvm::formatv(", {0} {1:E6} seconds {2:F0} bytes", name, action.seconds,
                                action.scratchBytes);
      }
      remark << llvm::formatv(
          ", inputs {0:E6} seconds, weights {1:E6} seconds, for which {2:F0} bytes are kept",
          chunk.inputGradients.seconds, chunk.weightGradients.seconds, chunk.keptForWeightsBytes);
    }
    for (auto [number, stage] : llvm::enumerate(pipeline.stages)) {
      remark << llvm::formatv("; stage {0} once {1:E6} seconds, holds {2:F0} bytes", number,
                              stage.onceSeconds, stage.heldBytes);
    }
  }

  /// Null where the options say what to expect, or nothing is expected.
  std::shared_ptr<const SearchResult> search;
  std::shared_ptr<PlanPrice> result = std::make_shared<PlanPrice>();
};

} // namespace

PassWithResult<PlanPrice> makePlanPricing(const PricePlanPassOptions &options,
                                          std::shared_ptr<const SearchResult> search) {
  auto pass = std::make_unique<PricePlanPass>(options, std::move(search));
  std::shared_ptr<const PlanPrice> result = pass->getResult();
  return {std::move(pass), std::move(result)};
}

} // namespace weft
