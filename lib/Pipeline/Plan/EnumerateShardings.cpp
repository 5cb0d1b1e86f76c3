//===- EnumerateShardings.cpp - every op in every sharding, to test them --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpOptions.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "llvm/ADT/StringSet.h"

#include <random>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ENUMERATESHARDINGSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

RankedTensorType tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// An op in one sharding.
struct OpVariant {
  unsigned number;
  ShardableOpInterface op;
  std::string name;
  /// Null if the operand or result is no tensor.
  SmallVector<ShardingAttr> operands, results;
};

OpVariant variantOf(unsigned number, ShardableOpInterface op, const OpOption &option,
                    LayoutSpaces &spaces) {
  auto toSharding = [&](Type type, uint32_t layout, ReductionKind reduction) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? spaces.sharding(tensor.getRank(), layout, reduction) : ShardingAttr();
  };
  OpVariant way{number, op, option.name, {}, {}};
  for (auto [type, layout] : llvm::zip(op->getOperandTypes(), option.operands)) {
    way.operands.push_back(toSharding(type, layout, ReductionKind::Sum));
  }
  SmallVector<ReductionKind> reductions = op.getFactorRule().reductions;
  for (auto [type, layout, reduction] :
       llvm::zip(op->getResultTypes(), option.results, reductions)) {
    way.results.push_back(toSharding(type, layout, reduction));
  }
  return way;
}

/// Returns the same variant with the axes of each dimension in reverse order; nothing if that is
/// equal.
std::optional<OpVariant> reversed(const OpVariant &way) {
  OpVariant other = way;
  other.name += " reversed";
  for (SmallVector<ShardingAttr> *shardings : {&other.operands, &other.results}) {
    for (ShardingAttr &sharding : *shardings) {
      if (!sharding) {
        continue;
      }
      auto dims = llvm::map_to_vector(sharding.getDims(), [](ArrayAttr axes) {
        return ArrayAttr::get(axes.getContext(), llvm::to_vector(llvm::reverse(axes)));
      });
      sharding = ShardingAttr::get(sharding.getMesh(), dims, sharding.getUnreduced(),
                                   sharding.getReduction());
    }
  }
  bool isSame = other.operands == way.operands && other.results == way.results;
  return isSame ? std::nullopt : std::optional(std::move(other));
}

/// Reshards values that are whole on every rank.
class Placement {
public:
  explicit Placement(Operation *end) : builder(end) {}

  /// Returns `value` in the sharding `wanted`.
  Value place(Value value, ShardingAttr wanted) {
    std::pair<Value, Attribute> key(value, wanted);
    if (Value placed = done.lookup(key)) {
      return placed;
    }
    Value placed = wanted.isReduced() ? reshard(value, wanted) : splitIntoTerms(value, wanted);
    done[key] = placed;
    return placed;
  }

  Value reshard(Value value, ShardingAttr wanted) {
    if (getSharding(value.getType()) == wanted) {
      return value;
    }
    Type type = withSharding(tensorTypeOf(value), wanted);
    return ReshardOp::create(builder, value.getLoc(), type, value);
  }

private:
  /// Returns `value` as a pending sum whose terms differ between ranks: pseudo-random terms, plus
  /// the rest. With zeros or multiples as terms, the test would miss that an op is not linear.
  Value splitIntoTerms(Value value, ShardingAttr wanted) {
    Location loc = value.getLoc();
    Value whole = place(value, wanted.getReduced());
    Value terms = sumOfRandom(whole, wanted);
    Value total = reshard(terms, wanted.getReduced());
    Value rest =
        createMap(builder, loc, whole.getType(), {whole, total},
                  [](OpBuilder &inner, Location at, ValueRange in) {
                    return SmallVector<Value>{arith::SubFOp::create(inner, at, in[0], in[1])};
                  })
            .getResult(0);
    return createMap(builder, loc, terms.getType(), {reshard(rest, wanted), terms},
                     [](OpBuilder &inner, Location at, ValueRange in) {
                       return SmallVector<Value>{arith::AddFOp::create(inner, at, in[0], in[1])};
                     })
        .getResult(0);
  }

  /// Returns a sum over ranks of sin((t + 2) x + t), for term t and each element x of `whole`.
  Value sumOfRandom(Value whole, ShardingAttr wanted) {
    Location loc = whole.getLoc();
    RankedTensorType type = tensorTypeOf(whole);
    MeshAttr mesh = wanted.getMesh();
    ArrayAttr axes = wanted.getUnreduced();
    int64_t count = mesh.getSize(axes), rank = type.getRank();
    auto numbers =
        IotaOp::create(builder, loc,
                       RankedTensorType::get({count}, builder.getI32Type(),
                                             ShardingAttr::get(mesh, ArrayRef<ArrayAttr>{axes})),
                       Value());
    SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, type.getShape());
    SmallVector<ArrayAttr> dims = {axes};
    llvm::append_range(dims, wanted.getDims());
    auto all = RankedTensorType::get(shape, type.getElementType(), ShardingAttr::get(mesh, dims));
    AffineMap identity = builder.getMultiDimIdentityMap(rank + 1);
    auto body = [](OpBuilder &inner, Location at, ValueRange in) {
      Type element = in[1].getType();
      Value two = arith::ConstantOp::create(inner, at, inner.getFloatAttr(element, 2));
      Value term = arith::SIToFPOp::create(inner, at, element, in[0]);
      Value factor = arith::AddFOp::create(inner, at, term, two);
      Value product = arith::MulFOp::create(inner, at, factor, in[1]);
      Value angle = arith::AddFOp::create(inner, at, product, term);
      return SmallVector<Value>{math::SinOp::create(inner, at, angle)};
    };
    auto drawn = MapOp::create(builder, loc, TypeRange{all}, ValueRange{numbers, whole},
                               {identity.getSliceMap(0, 1), identity.getSliceMap(1, rank)}, body);
    std::string letters = weft::letters(rank + 1);
    return ContractOp::create(builder, loc, withSharding(type, wanted),
                              letters + "->" + letters.substr(1), drawn.getResult(0));
  }

  OpBuilder builder;
  DenseMap<std::pair<Value, Attribute>, Value> done;
};

/// Moves one variant of each op to the front, so that every sample has all ops.
void moveOneOfEachOp(SmallVector<OpVariant> &ways) {
  llvm::StringSet<> seen;
  SmallVector<OpVariant> first, others;
  for (const OpVariant &way : ways) {
    bool isNew = seen.insert(way.op->getName().getStringRef()).second;
    (isNew ? first : others).push_back(way);
  }
  first.append(others);
  ways = std::move(first);
}

struct EnumerateShardingsPass : impl::EnumerateShardingsPassBase<EnumerateShardingsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    mesh = getMesh(module);
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!mesh || !step) {
      module.emitError("enumerate-shardings: expected a mesh and a function 'step'");
      return signalPassFailure();
    }
    if (failed(replicate(module))) {
      return signalPassFailure();
    }
    SmallVector<OpVariant> ways = collect(step);
    numWays += ways.size();
    if (sample > 0 && ways.size() > sample) {
      std::mt19937 generator(seed);
      std::shuffle(ways.begin(), ways.end(), generator);
      moveOneOfEachOp(ways);
      ways.truncate(sample);
    }
    Operation *end = step.getBody().front().getTerminator();
    Placement placement(end);
    llvm::DenseSet<Operation *> observed;
    for (const OpVariant &way : ways) {
      if (observed.insert(way.op).second) {
        observe(end, way.op, std::to_string(way.number) + " whole");
      }
      apply(end, placement, way);
    }
  }

  /// Makes every tensor whole on every rank.
  LogicalResult replicate(ModuleOp module) {
    auto whole = [&](Type type) -> Type {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor ? withSharding(tensor, ShardingAttr::getReplicated(mesh, tensor.getRank()))
                    : type;
    };
    for (VariableOp variable : module.getOps<VariableOp>()) {
      Type type = whole(variable.getTensorType());
      if (getSharding(variable.getTensorType()) && variable.getTensorType() != type) {
        return variable.emitError("enumerate-shardings: expected a variable that is whole on "
                                  "every rank");
      }
      variable.setType(cast<RankedTensorType>(type));
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      for (Value argument : function.getArguments()) {
        argument.setType(whole(argument.getType()));
      }
      for (Operation &op : function.getOps()) {
        for (Value result : op.getResults()) {
          result.setType(whole(result.getType()));
        }
      }
      Block &block = function.getBody().front();
      function.setFunctionType(FunctionType::get(&getContext(), block.getArgumentTypes(),
                                                 block.getTerminator()->getOperandTypes()));
    }
    return success();
  }

  /// Returns all variants of all ops, without ops that differ only in their operands.
  SmallVector<OpVariant> collect(func::FuncOp step) {
    SmallVector<OpVariant> ways;
    SmallVector<Operation *> seen;
    LayoutSpaces spaces(mesh);
    for (Operation &op : step.getOps()) {
      auto shardable = dyn_cast<ShardableOpInterface>(op);
      auto isSame = [&](Operation *other) {
        return OperationEquivalence::isEquivalentTo(&op, other,
                                                    OperationEquivalence::ignoreValueEquivalence,
                                                    nullptr, OperationEquivalence::IgnoreLocations);
      };
      if (!shardable || (!only.empty() && op.getName().getStringRef() != only) ||
          llvm::any_of(seen, isSame)) {
        continue;
      }
      seen.push_back(&op);
      for (const OpOption &option : enumerateOptions(shardable, spaces)) {
        ways.push_back(variantOf(unsigned(seen.size()), shardable, option, spaces));
        if (std::optional<OpVariant> other = reversed(ways.back())) {
          ways.push_back(std::move(*other));
        }
      }
    }
    return ways;
  }

  void apply(Operation *end, Placement &placement, const OpVariant &way) {
    SmallVector<Value> operands(way.op->getOperands());
    for (auto [operand, sharding] : llvm::zip(operands, way.operands)) {
      operand = sharding ? placement.place(operand, sharding) : operand;
    }
    Operation *copy = OpBuilder(end).clone(*way.op);
    copy->setOperands(operands);
    for (auto [result, sharding] : llvm::zip(copy->getResults(), way.results)) {
      result.setType(withSharding(tensorTypeOf(result), sharding));
    }
    observe(end, copy, std::to_string(way.number) + " " + way.name);
  }

  /// Observes all results of `op`, in float64.
  void observe(Operation *end, Operation *op, const std::string &how) {
    OpBuilder builder(end);
    for (OpResult result : op->getResults()) {
      Value value = Placement(end).reshard(result, getSharding(result.getType()).getReduced());
      value = createMap(builder, op->getLoc(), tensorTypeOf(value).clone(builder.getF64Type()),
                        value, convert)
                  .getResult(0);
      std::string name = "gradient/" + op->getName().getStringRef().str() + " " +
                         std::to_string(result.getResultNumber()) + " " + how;
      ObserveOp::create(builder, op->getLoc(), name, value);
    }
  }

  static SmallVector<Value> convert(OpBuilder &builder, Location loc, ValueRange in) {
    Type wanted = builder.getF64Type(), type = in[0].getType();
    if (isa<IntegerType>(type)) {
      return {arith::SIToFPOp::create(builder, loc, wanted, in[0])};
    }
    return {type == wanted ? in[0] : arith::ExtFOp::create(builder, loc, wanted, in[0])};
  }

  MeshAttr mesh;
};

} // namespace
} // namespace weft
