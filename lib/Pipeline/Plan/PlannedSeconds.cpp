//===- PlannedSeconds.cpp - what ops of a planned module take -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlannedSeconds.h"

#include "MatmulRows.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

double weft::wholeBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? double(countBytes(tensor)) : 0;
}

double weft::localBytes(Type type) {
  double bytes = wholeBytes(type);
  if (ShardingAttr sharding = getSharding(type)) {
    for (ArrayAttr axes : sharding.getDims()) {
      bytes /= double(sharding.getMesh().getSize(axes));
    }
  }
  return bytes;
}

double PlannedOp::seconds() const {
  double sum = computing;
  for (const auto &[axes, seconds] : sending) {
    sum += seconds;
  }
  return sum;
}

PlannedSeconds::PlannedSeconds(ModuleOp module, const cost::Predictor *machine,
                               ByteSeconds *byteSeconds)
    : mesh(getMesh(module)), machine(machine), byteSeconds(byteSeconds),
      prices(mesh.getSizes(), machine) {}

PlannedOp PlannedSeconds::of(Operation *op) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    return ofReshard(cast<RankedTensorType>(reshard.getInput().getType()),
                     cast<RankedTensorType>(reshard.getOutput().getType()));
  }
  PlannedOp price;
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    FactorRule rule = shardable.getFactorRule();
    SmallVector<ArrayAttr> axesOf = axesOfFactors(shardable, rule);
    price.computing = computing(shardable, rule, axesOf);
    addRounds(shardable, rule, axesOf, price);
  }
  return price;
}

void PlannedSeconds::send(const planner::Axes &axes, double seconds, PlannedOp &price) const {
  std::string name;
  for (uint32_t axis : axes) {
    name += (name.empty() ? "" : ",") + mesh.getNames()[axis].str();
  }
  price.sending.emplace_back(std::move(name), seconds);
}

const PlannedOp &PlannedSeconds::ofReshard(RankedTensorType type, RankedTensorType to) {
  auto [known, isNew] = reshards.try_emplace({type, to});
  if (isNew) {
    planner::ReshardProblem problem = makeReshardProblem(type, getSharding(type), getSharding(to));
    for (const planner::Step &step : planner::cheapestPath(problem, std::ref(prices)).steps) {
      send(step.axes, step.cost, known->second);
    }
  }
  return known->second;
}

/// Adds the cost of passing shards of a permuted factor around, operands once less than results.
void PlannedSeconds::addRounds(ShardableOpInterface op, const FactorRule &rule,
                               ArrayRef<ArrayAttr> axesOf, PlannedOp &price) {
  std::optional<unsigned> permuted = findPermutation(rule);
  if (!permuted || axesOf[*permuted].empty()) {
    return;
  }
  auto parts = double(mesh.getSize(axesOf[*permuted]));
  planner::Axes numbers = toAxes(mesh, axesOf[*permuted]);
  llvm::SmallDenseSet<Value> sent;
  auto addRound = [&](Value value, ArrayRef<unsigned> dims, double rounds) {
    if (llvm::is_contained(dims, *permuted) && sent.insert(value).second) {
      double one = prices(planner::StepKind::Permute, numbers, localBytes(value.getType()));
      send(numbers, rounds * one, price);
    }
  };
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    addRound(value, dims, parts - 1);
  }
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
    addRound(value, dims, parts);
  }
}

double PlannedSeconds::computing(ShardableOpInterface op, const FactorRule &rule,
                                 ArrayRef<ArrayAttr> axesOf) {
  OpCost cost = costOf(op);
  double whole = 0, local = 0, parts = 1;
  // What is an operand twice is read once.
  llvm::SmallSetVector<Value, 8> values(op->operand_begin(), op->operand_end());
  values.insert(op->result_begin(), op->result_end());
  for (Value value : values) {
    whole += wholeBytes(value.getType());
    local += localBytes(value.getType());
  }
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, axesOf)) {
    bool isPartner = factor.kind == FactorKind::Permutation;
    parts *= isPartner ? 1 : double(mesh.getSize(axes));
  }
  double bytes = cost.bytes.constant / std::max(whole, 1.0) * local;
  double flops = cost.flops.constant / parts;
  if (!machine) {
    return 1e-9 * (flops + bytes);
  }
  if (std::optional<Matmul> matmul = asMatmul(op, rule, axesOf)) {
    auto sizes = llvm::map_to_vector(llvm::zip_equal(rule.factors, axesOf), [&](auto pair) {
      return std::get<0>(pair).size / mesh.getSize(std::get<1>(pair));
    });
    if (auto seconds = byteSeconds ? byteSeconds->of(op, rule, sizes) : std::nullopt) {
      return *seconds;
    }
    auto [batch, m, n, k] = *matmul;
    return machine->matmul(precisionOf(op), m, n, k, batch, bytes, rowsOf(op, rule, sizes));
  }
  auto shape = shapeOf(cost.rateFactors, rule,
                       [&](unsigned factor) { return mesh.getSize(axesOf[factor]); });
  return machine->kernel(op->getName().stripDialect(), precisionOf(op), flops, bytes, shape);
}

/// Recognizes a matmul: two tensors to one, each factor in two of the three or in all, some
/// summed.
std::optional<PlannedSeconds::Matmul> PlannedSeconds::asMatmul(ShardableOpInterface op,
                                                               const FactorRule &rule,
                                                               ArrayRef<ArrayAttr> axesOf) const {
  if (op->getNumOperands() != 2 || op->getNumResults() != 1 ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>)) {
    return std::nullopt;
  }
  Matmul matmul;
  bool sums = false;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
    bool inLeft = llvm::is_contained(rule.operands[0], factor);
    bool inRight = llvm::is_contained(rule.operands[1], factor);
    bool inResult = llvm::is_contained(rule.results[0], factor);
    if (int(inLeft) + int(inRight) + int(inResult) < 2) {
      return std::nullopt;
    }
    int64_t size = rule.factors[factor].size / mesh.getSize(axesOf[factor]);
    int64_t &side = !inResult ? matmul.k : !inRight ? matmul.m : !inLeft ? matmul.n : matmul.batch;
    side *= size;
    sums |= !inResult;
  }
  return sums ? std::optional(matmul) : std::nullopt;
}
