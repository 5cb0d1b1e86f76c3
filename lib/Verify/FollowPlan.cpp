//===- FollowPlan.cpp - shards one program like another -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/FollowPlan.h"

#include "Counterparts.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;

namespace weft::verify {
namespace {

class Follower {
public:
  Follower(ModuleOp module, ModuleOp planned, const std::vector<int64_t> &layers)
      : module(module), planned(planned), names(layers),
        mesh(module->getAttrOfType<MeshAttr>(kMeshAttrName)) {}

  LogicalResult run() {
    for (VariableOp variable : module.getOps<VariableOp>()) {
      if (failed(follow(variable))) {
        return failure();
      }
    }
    for (func::FuncOp function : module.getOps<func::FuncOp>()) {
      if (function.isPrivate()) {
        continue; // With its first call.
      }
      auto counterpart = planned.lookupSymbol<func::FuncOp>(function.getSymName());
      if (!counterpart) {
        return function.emitError("has no counterpart among the functions of the plan");
      }
      if (failed(follow(function, counterpart))) {
        return failure();
      }
    }
    module.walk([](Operation *op) { op->removeAttr(kPinsAttrName); });
    return success();
  }

private:
  /// Returns the axes of the small model's mesh in the places of `axes` in the other. Sub-axes have
  /// other names if sizes are other.
  ArrayAttr axesLike(ArrayAttr axes, MeshAttr other) {
    return ArrayAttr::get(mesh.getContext(),
                          llvm::map_to_vector(axes, [&](Attribute axis) -> Attribute {
                            return mesh.getNames()[other.getIndex(cast<StringAttr>(axis))];
                          }));
  }

  /// Returns the sharding of `like`, on the mesh of the small model.
  ShardingAttr shardingOf(Type like) {
    ShardingAttr sharding = getSharding(like);
    auto dims = llvm::map_to_vector(
        sharding.getDims(), [&](ArrayAttr axes) { return axesLike(axes, sharding.getMesh()); });
    return ShardingAttr::get(mesh, dims, axesLike(sharding.getUnreduced(), sharding.getMesh()),
                             sharding.getReduction());
  }

  /// Returns `type` with the sharding of `like`.
  Type sharded(Type type, Type like) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? withSharding(tensor, shardingOf(like)) : type;
  }

  /// The same, but whole in dimensions that the shards do not divide: the number of a batch's
  /// matrices depends on the number of layers.
  Type evenly(Type type, Type like) {
    Type cut = sharded(type, like);
    ShardingAttr sharding = getSharding(cut);
    if (!sharding || isEven(cut)) {
      return cut;
    }
    auto tensor = cast<RankedTensorType>(cut);
    SmallVector<ArrayAttr> dims(sharding.getDims());
    for (auto [dim, axes] : llvm::enumerate(dims)) {
      bool isCut = !tensor.isDynamicDim(unsigned(dim)) &&
                   tensor.getDimSize(unsigned(dim)) % sharding.getShards(int64_t(dim)) != 0;
      axes = isCut ? ArrayAttr::get(mesh.getContext(), {}) : axes;
    }
    return withSharding(
        tensor, ShardingAttr::get(mesh, dims, sharding.getUnreduced(), sharding.getReduction()));
  }

  /// Returns true if a value of `type` can have the sharding of one of type `of`.
  static bool isLike(Type type, Type of) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto like = dyn_cast<RankedTensorType>(of);
    return bool(tensor) == bool(like) && (!tensor || tensor.getRank() == like.getRank());
  }

  LogicalResult follow(VariableOp variable) {
    std::string name = names.toLarge(variable.getSymName());
    auto counterpart = planned.lookupSymbol<VariableOp>(name);
    if (!counterpart ||
        counterpart.getTensorType().getRank() != variable.getTensorType().getRank()) {
      return variable.emitError("'") << name << "' is no variable of the plan";
    }
    variable.setType(
        cast<RankedTensorType>(sharded(variable.getTensorType(), counterpart.getType())));
    return success();
  }

  LogicalResult follow(func::FuncOp function, func::FuncOp counterpart) {
    if (followed.contains(function)) {
      return success();
    }
    followed[function] = counterpart;
    FailureOr<Counterparts> counterparts = findCounterparts(function, counterpart, names);
    if (failed(counterparts)) {
      return failure();
    }
    for (BlockArgument argument : function.getArguments()) {
      std::optional<unsigned> number = findArgument(argument, counterpart, *counterparts);
      if (!number || !isLike(argument.getType(), counterpart.getArgument(*number).getType())) {
        return function.emitError("has other arguments than @") << counterpart.getSymName();
      }
      argument.setType(evenly(argument.getType(), counterpart.getArgument(*number).getType()));
      arguments[function].push_back(*number);
    }
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
      Operation *like = counterparts->lookup(&op);
      if (like && isResize(&op) && resizedDims(&op) != resizedDims(like)) {
        like = nullptr; // The large model pads another dimension here.
      }
      bool isEnd = like && isa<func::ReturnOp>(op);
      if (like && failed(isEnd ? followEnd(&op, like, *counterparts) : follow(&op, like))) {
        return failure();
      }
      if (!like && isOfMask(&op)) {
        followOperand(&op);
      } else if (!like && isResize(&op)) {
        resize(&op);
      } else if (!like) {
        computeWhole(&op);
      }
    }
    Operation *end = function.getBody().front().getTerminator();
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getBody().getArgumentTypes(), end->getOperandTypes()));
    return success();
  }

  /// Returns the only operand of a sum that is an argument, past ops that only move, round or
  /// resize it; else null.
  static BlockArgument argumentOfSum(Operation *op) {
    auto map = dyn_cast<MapOp>(op);
    if (!map || !isSum(map)) {
      return {};
    }
    BlockArgument only;
    for (Value input : map.getInputs()) {
      auto argument = dyn_cast<BlockArgument>(originOf(input));
      if (argument && only) {
        return {};
      }
      only = argument ? argument : only;
    }
    return only;
  }

  /// Returns the number of an argument's counterpart: the operand, in the same place, of the
  /// counterpart of the argument's user. Functions with arguments for each layer have fewer in the
  /// small model, perhaps in another order. An argument of no use has the same number.
  static std::optional<unsigned> findArgument(BlockArgument argument, func::FuncOp counterpart,
                                              const Counterparts &counterparts) {
    for (OpOperand &use : argument.getUses()) {
      Operation *like = counterparts.lookup(use.getOwner());
      if (like && use.getOwner()->getNumOperands() == like->getNumOperands()) {
        Value of = originOf(like->getOperand(use.getOperandNumber()));
        if (auto found = dyn_cast<BlockArgument>(of)) {
          return found.getArgNumber();
        }
        // Other precisions can change the order of a gradient's terms.
        BlockArgument found = argumentOfSum(like);
        if (found && argumentOfSum(use.getOwner()) == argument) {
          return found.getArgNumber();
        }
      }
    }
    if (argument.getOwner()->getNumArguments() == counterpart.getNumArguments()) {
      return argument.getArgNumber();
    }
    // An index, such as that of the micro-batch, is the first argument.
    bool isFirst = argument.getArgNumber() == 0 && counterpart.getNumArguments() > 0;
    return isFirst && argument.getType() == counterpart.getArgument(0).getType()
               ? std::optional<unsigned>(0)
               : std::nullopt;
  }

  /// Shards the results of a function: each like the result of its producer's counterpart.
  /// Functions with results for each layer have fewer in the small model, perhaps in another order.
  LogicalResult followEnd(Operation *end, Operation *like, const Counterparts &counterparts) {
    for (OpOperand &operand : end->getOpOperands()) {
      Value of = findResult(operand, like, counterparts);
      if (!of || !isLike(operand.get().getType(), of.getType())) {
        return end->emitError("has other results than in the plan");
      }
      if (isa<RankedTensorType>(of.getType())) {
        bring(operand, of, of.getType());
      }
    }
    return success();
  }

  /// Returns the operand of `like` that is the counterpart of a result, or null.
  static Value findResult(OpOperand &result, Operation *like, const Counterparts &counterparts) {
    auto made = dyn_cast<OpResult>(originOf(result.get()));
    Operation *maker = made ? counterparts.lookup(made.getOwner()) : nullptr;
    for (Value value : like->getOperands()) {
      auto other = dyn_cast<OpResult>(originOf(value));
      if (maker && other && other.getOwner() == maker &&
          other.getResultNumber() == made.getResultNumber()) {
        return value;
      }
    }
    auto end = cast<func::ReturnOp>(result.getOwner());
    return end.getNumOperands() == like->getNumOperands()
               ? like->getOperand(result.getOperandNumber())
               : Value();
  }

  LogicalResult follow(Operation *op, Operation *like) {
    if (auto call = dyn_cast<CallOp>(op)) {
      return follow(call, cast<CallOp>(like));
    }
    auto refuse = [&] {
      return op->emitError() << describe(op) << " is another op than in the plan";
    };
    // The small model may have fewer parts of a sequence.
    if (op->getNumResults() > like->getNumResults() ||
        (op->getNumOperands() > 0 && like->getNumOperands() == 0)) {
      return refuse();
    }
    for (auto [result, of] : llvm::zip(op->getResults(), like->getResults())) {
      if (!isLike(result.getType(), of.getType())) {
        return refuse();
      }
      result.setType(evenly(result.getType(), of.getType()));
    }
    for (OpOperand &operand : op->getOpOperands()) {
      // A sum over all layers has fewer terms in the small model; all terms have one sharding.
      unsigned number = std::min(operand.getOperandNumber(), like->getNumOperands() - 1);
      Value of = like->getOperand(number);
      if (!isLike(operand.get().getType(), of.getType())) {
        return refuse();
      }
      if (isa<RankedTensorType>(operand.get().getType())) {
        bring(operand, of, of.getType());
      }
    }
    dropPending(op);
    return success();
  }

  /// Makes results pending only over axes that cut an operand, or that it is pending over: an
  /// operand can be whole where axes do not divide the small model's size.
  void dropPending(Operation *op) {
    auto hasOperandOver = [&](Attribute axis) {
      return llvm::any_of(op->getOperandTypes(), [&](Type type) {
        ShardingAttr sharding = getSharding(type);
        return sharding && (llvm::is_contained(sharding.getUnreduced(), axis) ||
                            llvm::any_of(sharding.getDims(), [&](ArrayAttr axes) {
                              return llvm::is_contained(axes, axis);
                            }));
      });
    };
    for (Value result : op->getResults()) {
      result.setType(pendingOver(result.getType(), hasOperandOver));
    }
  }

  /// Returns `type`, but pending only over those of its axes that `isPending` keeps.
  static Type pendingOver(Type type, llvm::function_ref<bool(Attribute)> isPending) {
    ShardingAttr sharding = getSharding(type);
    if (!sharding) {
      return type;
    }
    SmallVector<Attribute> kept(llvm::make_filter_range(sharding.getUnreduced(), isPending));
    ReductionKind reduction = kept.empty() ? ReductionKind::Sum : sharding.getReduction();
    return withSharding(cast<RankedTensorType>(type), withUnreduced(sharding, kept, reduction));
  }

  /// Shards a mask that only the small model has like the value that it masks, without pending
  /// sums, and its iota like the masked dimension.
  void followOperand(Operation *op) {
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (isa<IotaOp>(op)) {
      op->getResult(0).setType(withSharding(type, lyingAs({ArrayAttr::get(op->getContext(), {})})));
      return;
    }
    ShardingAttr masked = lyingAs(getSharding(op->getOperand(0).getType()).getDims());
    op->getResult(0).setType(withSharding(type, masked));
    op->setOperand(0, reshard(builder, op->getOperand(0), op->getResult(0).getType()));
    unsigned dim = cast<MapOp>(op).getInputDims(1).front();
    auto numbers = cast<RankedTensorType>(op->getOperand(1).getType());
    op->setOperand(1, reshard(builder, op->getOperand(1),
                              withSharding(numbers, lyingAs({masked.getDims()[dim]}))));
  }

  static SmallVector<unsigned> resizedDims(Operation *op) {
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<unsigned> dims;
    for (unsigned dim = 0; dim < std::min(from.getRank(), to.getRank()); ++dim) {
      if (from.getDimSize(dim) != to.getDimSize(dim)) {
        dims.push_back(dim);
      }
    }
    return dims;
  }

  /// Shards a pad or extract that only the small model has like its operand, but whole in the
  /// dimensions whose padding it changes.
  void resize(Operation *op) {
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingAttr sharding = getSharding(from);
    SmallVector<ArrayAttr> dims(sharding.getDims());
    for (auto [dim, axes] : llvm::enumerate(dims)) {
      bool isResized = from.getDimSize(unsigned(dim)) != to.getDimSize(unsigned(dim));
      axes = isResized ? ArrayAttr::get(mesh.getContext(), {}) : axes;
    }
    auto whole = ShardingAttr::get(mesh, dims, sharding.getUnreduced(), sharding.getReduction());
    OpBuilder builder(op);
    op->setOperand(0, reshardTo(builder, op->getOperand(0), withSharding(from, whole)));
    op->getResult(0).setType(withSharding(to, whole));
  }

  /// Makes every rank compute all of what the large model computes once in a step, outside of the
  /// function: copies of weights.
  void computeWhole(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      read.getOutput().setType(module.lookupSymbol<VariableOp>(read.getVariable()).getTensorType());
      return;
    }
    OpBuilder builder(op);
    auto whole = [&](Type type) {
      auto tensor = cast<RankedTensorType>(type);
      return withSharding(tensor, ShardingAttr::getReplicated(mesh, tensor.getRank()));
    };
    for (OpOperand &operand : op->getOpOperands()) {
      if (isa<RankedTensorType>(operand.get().getType())) {
        operand.set(reshardTo(builder, operand.get(), whole(operand.get().getType())));
      }
    }
    for (Value result : op->getResults()) {
      if (isa<RankedTensorType>(result.getType())) {
        result.setType(whole(result.getType()));
      }
    }
  }

  ShardingAttr lyingAs(ArrayRef<ArrayAttr> dims) { return ShardingAttr::get(mesh, dims); }

  /// Returns false if both values are read from variables that are not counterparts.
  bool readSame(Value value, Value of) const {
    auto read = originOf(value).getDefiningOp<ReadOp>();
    auto other = originOf(of).getDefiningOp<ReadOp>();
    return !read || !other || names.toLarge(read.getVariable()) == other.getVariable();
  }

  /// Reshards the operands of a call to the arguments of its function. An earlier call has decided
  /// these shardings if several functions of the large model are one in the small model.
  LogicalResult follow(CallOp call, CallOp like) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    auto counterpart = planned.lookupSymbol<func::FuncOp>(like.getCallee());
    if (!callee || !counterpart || failed(follow(callee, counterpart))) {
      return failure();
    }
    if (like->getNumOperands() != followed[callee].getNumArguments()) {
      return call.emitError("has other operands than in the plan");
    }
    for (auto [result, type] : llvm::zip(call.getResults(), callee.getResultTypes())) {
      result.setType(type);
    }
    for (OpOperand &operand : call->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      Value of = like->getOperand(arguments[callee][number]);
      if (!readSame(operand.get(), of)) {
        return call.emitError("has other operands than in the plan");
      }
      if (isa<RankedTensorType>(operand.get().getType())) {
        bring(operand, of, callee.getArgumentTypes()[number]);
      }
    }
    return success();
  }

  /// Repeats for `operand` the movements by which the large model made `of`, and reshards the
  /// result to the sharding of `wanted`. Only the latter if the movements cut the value unevenly,
  /// as they may cut the slots of an expert, whose number is no size of the model.
  void bring(OpOperand &operand, Value of, Type wanted) {
    SmallVector<Operation *> moves;
    for (Operation *op = of.getDefiningOp(); op && (isMovement(op) || isCast(op));
         op = op->getOperand(0).getDefiningOp()) {
      if (isMovement(op)) {
        moves.push_back(op);
      }
    }
    Value value = operand.get();
    OpBuilder builder(operand.getOwner());
    if (!llvm::all_of(moves, [&](Operation *move) {
          return isEven(sharded(value.getType(), move->getOperand(0).getType())) &&
                 isEven(sharded(value.getType(), move->getResult(0).getType()));
        })) {
      moves.clear();
    }
    for (Operation *move : llvm::reverse(moves)) {
      value = reshard(builder, value, move->getOperand(0).getType());
      value = repeat(builder, value, move);
    }
    operand.set(reshard(builder, value, wanted));
  }

  /// Returns true if all shards of each dimension have equally many elements.
  static bool isEven(Type type) {
    ShardingAttr sharding = getSharding(type);
    return !sharding ||
           llvm::all_of(llvm::enumerate(cast<RankedTensorType>(type).getShape()), [&](auto dim) {
             return ShapedType::isDynamic(dim.value()) ||
                    dim.value() % sharding.getShards(dim.index()) == 0;
           });
  }

  /// Reshards `value` to the sharding of `like` in the cheapest way for the small model. Used if
  /// the large model has no movement between these shardings, or a permutation, which depends on
  /// the sizes of the mesh.
  Value reshard(OpBuilder &builder, Value value, Type like) {
    return reshardTo(builder, value, asPendingAs(value, evenly(value.getType(), like)));
  }

  /// Returns `wanted`, but a pending maximum only over axes over which `value` is one: where it is
  /// whole in the small model, its maximum is no pending one. Only sums can be made pending.
  static Type asPendingAs(Value value, Type wanted) {
    ShardingAttr sharding = getSharding(wanted), from = getSharding(value.getType());
    if (!sharding || !from || sharding.getReduction() == ReductionKind::Sum) {
      return wanted;
    }
    return pendingOver(
        wanted, [&](Attribute axis) { return llvm::is_contained(from.getUnreduced(), axis); });
  }

  Value reshardTo(OpBuilder &builder, Value value, Type type) {
    if (type == value.getType()) {
      return value;
    }
    Value &moved = reshards[{value, type}];
    if (!moved) {
      moved = ReshardOp::create(builder, value.getLoc(), type, value);
    }
    return moved;
  }

  /// Repeats the movement `move` of the large model for `value`, which has the sharding of its
  /// operand, or is pending over fewer axes.
  Value repeat(OpBuilder &builder, Value value, Operation *move) {
    bool isAsOperand = value.getType() == sharded(value.getType(), move->getOperand(0).getType());
    if (isa<ReshardOp, PermuteOp>(move) || !isAsOperand) {
      return reshard(builder, value, move->getResult(0).getType());
    }
    Value &moved = repeated[{move, value}];
    if (!moved) {
      Operation *copy = builder.clone(*move);
      copy->setLoc(value.getLoc());
      copy->setOperand(0, value);
      copy->setAttr("axes", axesLike(move->getAttrOfType<ArrayAttr>("axes"),
                                     move->getAttrOfType<MeshAttr>("mesh")));
      copy->setAttr("mesh", mesh);
      copy->getResult(0).setType(sharded(value.getType(), move->getResult(0).getType()));
      moved = copy->getResult(0);
    }
    return moved;
  }

  ModuleOp module, planned;
  LayerNames names;
  MeshAttr mesh;
  /// For each function its counterpart in the large model, and the numbers of its arguments'
  /// counterparts.
  DenseMap<Operation *, func::FuncOp> followed;
  DenseMap<Operation *, SmallVector<unsigned>> arguments;
  DenseMap<std::pair<Value, Type>, Value> reshards;
  DenseMap<std::pair<Operation *, Value>, Value> repeated;
};

} // namespace

LogicalResult followPlan(ModuleOp module, ModuleOp planned, const std::vector<int64_t> &layers) {
  return Follower(module, planned, layers).run();
}

void addHomes(desc::PlanSpec &plan, ModuleOp module, ModuleOp planned,
              const std::vector<int64_t> &layers) {
  LayerNames names(layers);
  for (auto variable : module.getOps<VariableOp>()) {
    std::string name = variable.getSymName().str();
    auto like = planned.lookupSymbol<VariableOp>(names.toLarge(name));
    ShardingAttr sharding = like ? getSharding(like.getType()) : ShardingAttr();
    if (!sharding || variable.getRole() == VariableRole::Input) {
      continue;
    }
    for (auto [dim, dimension] : llvm::enumerate(like.getDimensions().getAsRange<StringAttr>())) {
      if (!desc::isDimensionName(dimension.strref())) {
        continue; // No entry can cut it.
      }
      desc::ShardingSpec home{name, dimension.str(), {}, {}};
      for (auto axis : sharding.getDims()[dim].getAsRange<StringAttr>()) {
        home.axes.push_back(plan.mesh[size_t(sharding.getMesh().getIndex(axis))].name);
      }
      // A plan has one entry for a value and a dimension.
      std::erase_if(plan.homes, [&](const desc::ShardingSpec &other) {
        return other.value == home.value && other.dimension == home.dimension;
      });
      plan.homes.push_back(std::move(home));
    }
  }
}

} // namespace weft::verify
