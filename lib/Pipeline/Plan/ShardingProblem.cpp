//===- ShardingProblem.cpp - a module as a planning problem ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "PermutationPrice.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {

/// What is done once in a run, or now and then, must not decide over the step.
constexpr double kRarely = 1e-3;

static std::string placeOf(Location location) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << location;
  return text;
}

ShardingProblem::ShardingProblem(ModuleOp module, MeshAttr mesh, const cost::Predictor *machine)
    : module(module), mesh(mesh), symbols(module), machine(machine),
      prices(mesh.getSizes(), machine) {}

LogicalResult ShardingProblem::build() {
  countCalls();
  for (auto function : module.getOps<func::FuncOp>()) {
    declare(function);
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (failed(visit(function))) {
      return failure();
    }
  }
  for (auto &[value, route] : routes) {
    auto type = cast<RankedTensorType>(value.getType());
    double times = timesOf(value.getParentBlock()->getParentOp());
    if (route.uses.size() > 1) {
      std::string name = "value of " + placeOf(value.getLoc());
      route.shared = addValue(std::move(name), type, /*pending=*/true);
      connect(type, route.from, *route.shared, times);
    }
    for (auto &[operand, end] : route.uses) {
      connect(type, route.shared ? *route.shared : route.from, end, times);
    }
  }
  return success();
}

/// How often each function runs in a step.
void ShardingProblem::countCalls() {
  std::function<void(func::FuncOp, double)> count = [&](func::FuncOp function, double times) {
    calls[function] += times;
    function.walk(
        [&](CallOp call) { count(symbols.lookup<func::FuncOp>(call.getCallee()), times); });
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPrivate()) {
      count(function, function.getSymName() == "step" ? 1 : kRarely);
    }
  }
}

double ShardingProblem::timesOf(Operation *op) {
  auto function =
      isa<func::FuncOp>(op) ? cast<func::FuncOp>(op) : op->getParentOfType<func::FuncOp>();
  return calls.lookup(function);
}

void ShardingProblem::declare(func::FuncOp function) {
  auto add = [&](TypeRange types, StringRef what, SmallVector<ShardingEnd> &ends) {
    for (auto [number, type] : llvm::enumerate(types)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      std::string name = (function.getSymName() + " " + what + Twine(number)).str();
      ends.push_back(tensor ? addValue(std::move(name), tensor, /*pending=*/false) : ShardingEnd());
    }
  };
  if (function.isPrivate()) {
    add(function.getArgumentTypes(), "argument ", arguments[function]);
    add(function.getResultTypes(), "result ", results[function]);
  }
}

LogicalResult ShardingProblem::visit(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (isa<RankedTensorType>(argument.getType())) {
      routes[argument].from = arguments[function][argument.getArgNumber()];
    }
  }
  for (Operation &op : function.getOps()) {
    if (failed(visit(op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult ShardingProblem::visit(Operation &op) {
  auto given = [&](FlatSymbolRefAttr variable) {
    auto type = symbols.lookup<VariableOp>(variable.getAttr()).getTensorType();
    return ShardingEnd{-1, {getSharding(type)}};
  };
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    addOp(shardable);
  } else if (auto read = dyn_cast<ReadOp>(op)) {
    routes[read.getOutput()].from = given(read.getVariableAttr());
  } else if (auto assign = dyn_cast<AssignOp>(op)) {
    use(assign.getValueMutable(), given(assign.getVariableAttr()));
  } else if (auto observe = dyn_cast<ObserveOp>(op)) {
    // Wherever it lies, as long as nothing is pending.
    auto type = cast<RankedTensorType>(observe.getValue().getType());
    use(observe.getValueMutable(), addValue("observed " + observe.getName().str(), type, false));
  } else if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    for (OpOperand &operand : call->getOpOperands()) {
      if (isa<RankedTensorType>(operand.get().getType())) {
        use(operand, arguments[callee][operand.getOperandNumber()]);
      }
    }
    for (OpResult result : call->getResults()) {
      routes[result].from = results[callee][result.getResultNumber()];
    }
  } else if (auto done = dyn_cast<func::ReturnOp>(op)) {
    auto function = done->getParentOfType<func::FuncOp>();
    for (OpOperand &operand : done->getOpOperands()) {
      use(operand, results[function][operand.getOperandNumber()]);
    }
  } else if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)) {
    return op.emitOpError("search-shardings: says nothing of how it may be sharded");
  }
  return success();
}

/// Bytes of the tensors that an op touches, under an option or whole.
static double bytesOf(Operation *op, const OpOption *option) {
  double bytes = 0;
  auto add = [&](Type type, ShardingAttr sharding) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      auto local = option ? getLocalType(withSharding(tensor, sharding)) : tensor;
      bytes += double(local.getNumElements()) *
               double(llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
    }
  };
  for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
    add(type, option ? option->operands[number] : ShardingAttr());
  }
  for (auto [number, type] : llvm::enumerate(op->getResultTypes())) {
    add(type, option ? option->results[number] : ShardingAttr());
  }
  return bytes;
}

void ShardingProblem::addOp(ShardableOpInterface op) {
  SmallVector<OpOption> options = enumerateOptions(op, mesh);
  std::string name = op->getName().stripDialect().str() + " of " + placeOf(op->getLoc());
  uint32_t node =
      addNode(std::move(name),
              llvm::map_to_vector(options, [](const OpOption &option) { return option.name; }));
  OpCost cost = op.getCost();
  double whole = std::max(bytesOf(op, nullptr), 1.0), times = timesOf(op);
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  desc::Precision precision = result.getElementType().isF64()    ? desc::Precision::F64
                              : result.getElementType().isBF16() ? desc::Precision::BF16
                                                                 : desc::Precision::F32;
  for (auto [option, priced] : llvm::zip(options, problem.nodes[node].options)) {
    double flops = cost.flops.constant / double(option.parts);
    double bytes = cost.bytes.constant * bytesOf(op, &option) / whole;
    // Without a machine only what is sent counts, and of equal plans the one that computes less.
    priced.seconds =
        times * (machine ? machine->kernel(op->getName().stripDialect(), precision, flops, bytes)
                         : 1e-9 * (flops + bytes)) +
        times * pricePermutation(op, option, std::ref(prices));
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (isa<RankedTensorType>(operand.get().getType())) {
      unsigned number = operand.getOperandNumber();
      use(operand, {node, llvm::map_to_vector(options, [&](const OpOption &option) {
                      return option.operands[number];
                    })});
    }
  }
  for (OpResult value : op->getResults()) {
    unsigned number = value.getResultNumber();
    routes[value].from = {node, llvm::map_to_vector(options, [&](const OpOption &option) {
                            return option.results[number];
                          })};
  }
  ops[op] = {node, std::move(options)};
}

uint32_t ShardingProblem::addNode(std::string name, ArrayRef<std::string> options) {
  planner::Node node{std::move(name), {}};
  for (const std::string &option : options) {
    node.options.push_back({option, 0, 0});
  }
  problem.nodes.push_back(std::move(node));
  return uint32_t(problem.nodes.size() - 1);
}

ShardingEnd ShardingProblem::addValue(std::string name, RankedTensorType type, bool pending) {
  SmallVector<ShardingAttr> layouts = enumerateLayouts(type, mesh, pending);
  auto names = llvm::map_to_vector(layouts, [](ShardingAttr sharding) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(sharding.getDims(), stream);
    stream << (sharding.isReduced() ? "" : " pending");
    return text;
  });
  return {addNode(std::move(name), names), std::move(layouts)};
}

void ShardingProblem::use(OpOperand &operand, ShardingEnd end) {
  routes[operand.get()].uses.push_back({&operand, std::move(end)});
}

void ShardingProblem::connect(RankedTensorType type, const ShardingEnd &from, const ShardingEnd &to,
                              double times) {
  auto cost = [&](size_t a, size_t b) {
    return times * reshardCost(type, from.shardings[a], to.shardings[b]);
  };
  if (from.node >= 0 && to.node >= 0) {
    if (from.node ==
        to.node) { // A value that an op uses twice, or a layer's that goes into the next.
      for (size_t option = 0; option < from.shardings.size(); ++option) {
        problem.nodes[from.node].options[option].seconds += cost(option, option);
      }
      return;
    }
    planner::Edge edge{uint32_t(from.node), uint32_t(to.node), {}, {}};
    for (size_t a = 0; a < from.shardings.size(); ++a) {
      for (size_t b = 0; b < to.shardings.size(); ++b) {
        edge.seconds.push_back(cost(a, b));
      }
    }
    problem.edges.push_back(std::move(edge));
    return;
  }
  const ShardingEnd &free = from.node >= 0 ? from : to;
  for (size_t option = 0; free.node >= 0 && option < free.shardings.size(); ++option) {
    problem.nodes[free.node].options[option].seconds +=
        from.node >= 0 ? cost(option, 0) : cost(0, option);
  }
}

double ShardingProblem::reshardCost(RankedTensorType type, ShardingAttr from, ShardingAttr to) {
  if (from == to) {
    return 0;
  }
  bool becomesPending = llvm::any_of(to.getUnreduced(), [&](Attribute axis) {
    return !llvm::is_contained(from.getUnreduced(), axis);
  });
  bool joinsAlike = from.isReduced() || to.isReduced() || from.getReduction() == to.getReduction();
  // As reshard_c2; and a value with terms does not get others besides.
  if (joinsAlike &&
      (!becomesPending || (from.isReduced() && to.getReduction() == ReductionKind::Sum))) {
    planner::ReshardProblem ends = makeReshardProblem(type, from, to);
    std::pair<const void *, bool> key(withSharding(type, {}).getAsOpaquePointer(), ends.scatters);
    return costs.try_emplace(key, ends, std::ref(prices)).first->second.cost(ends.from, ends.to);
  }
  return planner::kInfinity;
}

} // namespace weft
