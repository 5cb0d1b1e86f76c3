//===- BuildExperts.cpp - experts in the place of an MLP ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildExperts.h"

#include "weft/Description/ExpertSlots.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

using namespace mlir;
using namespace weft;

namespace {

/// A tensor, and a letter for each of its dimensions.
struct Lettered {
  Value value;
  llvm::StringRef letters;
};

/// Builds a wide map over all dimensions of the first input; the others are broadcast over the
/// dimensions that they lack.
Value mapOver(ModelBuilder &builder, llvm::StringRef name, llvm::ArrayRef<Lettered> inputs,
              ScalarCode code) {
  llvm::StringRef all = inputs.front().letters;
  llvm::SmallVector<AffineMap> maps;
  llvm::SmallVector<Value> values;
  for (const Lettered &input : inputs) {
    llvm::SmallVector<AffineExpr> dims;
    for (char letter : input.letters) {
      dims.push_back(builder.builder.getAffineDimExpr(all.find(letter)));
    }
    maps.push_back(AffineMap::get(all.size(), 0, dims, builder.builder.getContext()));
    values.push_back(input.value);
  }
  auto body = [&](OpBuilder &inner, Location loc, ValueRange scalars) {
    ImplicitLocOpBuilder scalarBuilder(loc, inner);
    return llvm::SmallVector<Value>{code(scalarBuilder, scalars)};
  };
  return MapOp::create(builder.builder, builder.location(name), values.front().getType(), values,
                       maps, body)
      .getResult(0);
}

/// 1 / (1 + exp(-x)) as (1 + tanh(x/2)) / 2, for the reason of `silu`.
Value logistic(ImplicitLocOpBuilder &scalars, Value x) {
  Value half = scalarConstant(scalars, x, 0.5);
  Value curve = math::TanhOp::create(scalars, arith::MulFOp::create(scalars, x, half));
  Value one = scalarConstant(scalars, x, 1.0);
  return arith::MulFOp::create(scalars, arith::AddFOp::create(scalars, curve, one), half);
}

/// Routes tokens. Dimensions: sequence of the batch b, token of the sequence s, expert e.
class Router {
public:
  Router(ModelBuilder &builder, const desc::ExpertsSpec &experts)
      : builder(builder), experts(experts), routing(builder.recipe.routing) {}

  /// Takes the logits [b, s, e], and the bias [e] if the model has one.
  void route(Value logits, Value bias);

  /// Weights of experts for each token. Only those of the token's experts are read.
  Value weights;
  /// 1 if a token goes to an expert, and if it has a slot there.
  Value chosen, kept;
  /// Slots of each expert for each sequence.
  int64_t slots = 0;
  llvm::SmallVector<Value> results;

private:
  Value scale(llvm::StringRef name, Value value, double factor);
  Value weigh(Value scores);
  void limit();
  Value loadBalanceLoss(Value shares);
  Value zLoss(Value logits, Value probabilities);
  Value nextBias(Value bias);

  ModelBuilder &builder;
  const desc::ExpertsSpec &experts;
  const desc::RoutingSpec &routing;
};

Value Router::scale(llvm::StringRef name, Value value, double factor) {
  return builder.map(name, {value}, builder.wideElement(),
                     [factor](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                       return arith::MulFOp::create(scalars, in[0],
                                                    scalarConstant(scalars, in[0], factor));
                     });
}

Value Router::weigh(Value scores) {
  auto multiply = [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
    return arith::MulFOp::create(scalars, in[0], in[1]);
  };
  Value picked = mapOver(builder, "router.weights", {{scores, "bse"}, {chosen, "bse"}}, multiply);
  double factor = experts.scale;
  if (!experts.normalizes) {
    return factor == 1.0 ? picked : scale("router.weights", picked, factor);
  }
  Value sum = builder.contract("router.weights", "bse->bs", {picked});
  return mapOver(
      builder, "router.weights", {{picked, "bse"}, {sum, "bs"}},
      [factor](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
        // Zero if no score is left, and for tokens of padding, which go to no expert.
        Value zero = scalarConstant(scalars, in[0], 0.0);
        Value isSome = arith::CmpFOp::create(scalars, arith::CmpFPredicate::OGT, in[1], zero);
        Value sum =
            arith::SelectOp::create(scalars, isSome, in[1], scalarConstant(scalars, in[0], 1.0));
        Value share = arith::DivFOp::create(scalars, in[0], sum);
        return factor == 1.0
                   ? share
                   : arith::MulFOp::create(scalars, share, scalarConstant(scalars, in[0], factor));
      });
}

/// Keeps the first tokens of each group for each expert, and counts the others.
void Router::limit() {
  llvm::StringRef name = "router.capacity";
  Location loc = builder.location(name);
  bool isGlobal = routing.capacityGroup == desc::RoutingGroup::GlobalBatch;
  int64_t capacity = desc::capacityOf(experts, builder.recipe);
  slots = desc::slotsOf(experts, builder.recipe);
  Value place = CumulativeSumOp::create(builder.builder, loc, chosen.getType(), chosen,
                                        /*dimension=*/1, /*reverse=*/false);
  llvm::SmallVector<Lettered> inputs = {{chosen, "bse"}, {place, "bse"}};
  if (isGlobal) {
    Value counts = builder.contract(name, "bse->be", {chosen});
    Value before = CumulativeSumOp::create(builder.builder, loc, counts.getType(), counts,
                                           /*dimension=*/0, /*reverse=*/false);
    inputs.push_back({before, "be"});
  }
  kept = mapOver(builder, name, inputs, [&](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
    Value number = isGlobal ? arith::AddFOp::create(scalars, in[1], in[2]) : in[1];
    Value end = scalarConstant(scalars, in[0], static_cast<double>(capacity));
    Value fits = arith::CmpFOp::create(scalars, arith::CmpFPredicate::OLT, number, end);
    return arith::SelectOp::create(scalars, fits, in[0], scalarConstant(scalars, in[0], 0.0));
  });
  Value lost = mapOver(builder, name, {{chosen, "bse"}, {kept, "bse"}},
                       [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                         return arith::SubFOp::create(scalars, in[0], in[1]);
                       });
  results.push_back(builder.contract(name, "bse->", {lost}));
}

Value Router::loadBalanceLoss(Value shares) {
  llvm::StringRef name = "router.load_balance";
  bool isGlobal = routing.loadBalanceGroup == desc::RoutingGroup::GlobalBatch;
  const char *perGroup = isGlobal ? "bse->e" : "bse->be";
  Value counts = builder.contract(name, perGroup, {chosen});
  Value sums = builder.contract(name, perGroup, {shares});
  Value matmuls = builder.contract(name, isGlobal ? "e,e->" : "be,be->", {counts, sums});
  auto all = static_cast<double>(builder.recipe.globalBatchTokens());
  auto group = isGlobal ? all : static_cast<double>(builder.recipe.sequenceLength);
  auto perToken = static_cast<double>(experts.perToken);
  return scale(name, matmuls,
               routing.loadBalanceLoss * static_cast<double>(experts.count) /
                   (all * group * perToken));
}

/// For every expert, log(sum of exp(logits)) = logit - log(probability), and so is the mean of this
/// difference weighted by probability.
Value Router::zLoss(Value logits, Value probabilities) {
  llvm::StringRef name = "router.z_loss";
  Value terms = mapOver(builder, name, {{logits, "bse"}, {probabilities, "bse"}},
                        [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                          // Zero times an infinite logarithm would be NaN.
                          Value least = scalarConstant(scalars, in[1], 1e-37);
                          Value safe = arith::MaximumFOp::create(scalars, in[1], least);
                          Value log = math::LogOp::create(scalars, safe);
                          Value sum = arith::SubFOp::create(scalars, in[0], log);
                          return arith::MulFOp::create(scalars, in[1], sum);
                        });
  Value lse = builder.contract(name, "bse->bs", {terms});
  Value squares = builder.contract(name, "bs,bs->", {lse, lse});
  return scale(name, squares,
               routing.routerZLoss / static_cast<double>(builder.recipe.globalBatchTokens()));
}

/// Raises the bias of an expert that got fewer tokens of the global batch than the mean, and lowers
/// it for one that got more.
Value Router::nextBias(Value bias) {
  llvm::StringRef name = "router.bias";
  Value counts = builder.contract(name, "bse->e", {chosen});
  double mean = static_cast<double>(builder.recipe.globalBatchTokens() * experts.perToken) /
                static_cast<double>(experts.count);
  double speed = routing.biasUpdateSpeed;
  return mapOver(
      builder, name, {{bias, "e"}, {counts, "e"}},
      [=](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
        auto constant = [&](double value) { return scalarConstant(scalars, in[0], value); };
        auto choose = [&](arith::CmpFPredicate predicate, double then, Value otherwise) {
          Value holds = arith::CmpFOp::create(scalars, predicate, in[1], constant(mean));
          return Value(arith::SelectOp::create(scalars, holds, constant(then), otherwise));
        };
        Value down = choose(arith::CmpFPredicate::OGT, -speed, constant(0.0));
        Value change = choose(arith::CmpFPredicate::OLT, speed, down);
        return arith::AddFOp::create(scalars, in[0], change);
      });
}

void Router::route(Value logits, Value bias) {
  bool isSoftmax = experts.scoring == desc::ScoringKind::Softmax;
  Location loc = builder.location("router");
  Value probabilities = SoftmaxOp::create(builder.builder, loc, logits.getType(), logits);
  Value scores = probabilities, shares = probabilities;
  if (!isSoftmax) {
    scores = mapOver(builder, "router", {{logits, "bse"}},
                     [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                       return logistic(scalars, in[0]);
                     });
  }
  chosen = TopKOp::create(builder.builder, loc, logits.getType(), scores, bias, experts.perToken,
                          experts.groups, experts.keptGroups, /*columns=*/DenseI64ArrayAttr{});
  kept = chosen;
  LoadLimit buffer = loadLimit(builder);
  slots = buffer.slots;
  weights = weigh(scores);
  llvm::SmallVector<Value> losses;
  if (routing.loadBalanceLoss > 0.0) {
    if (!isSoftmax) {
      Value sum = builder.contract("router.load_balance", "bse->bs", {scores});
      shares = mapOver(builder, "router.load_balance", {{scores, "bse"}, {sum, "bs"}},
                       [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                         return arith::DivFOp::create(scalars, in[0], in[1]);
                       });
    }
    losses.push_back(loadBalanceLoss(shares));
  }
  if (routing.routerZLoss > 0.0) {
    losses.push_back(zLoss(logits, probabilities));
  }
  if (!losses.empty()) {
    results.push_back(createSum(builder.builder, builder.location("router.loss"), losses));
  }
  if (routing.capacityFactor) {
    limit();
  } else if (routing.bufferFactor) {
    // A token without a slot would be lost: the runtime stops a run at these numbers.
    results.push_back(builder.contract("router.load", "bse->be", {chosen}));
  }
  if (routing.biasUpdateSpeed > 0.0) {
    results.push_back(nextBias(bias));
  }
}

} // namespace

LoadLimit weft::loadLimit(const ModelBuilder &builder) {
  const desc::ExpertsSpec &experts = *builder.model.experts;
  return {desc::bufferOf(experts, builder.recipe),
          desc::evenShare(experts, builder.recipe.sequenceLength)};
}

llvm::SmallVector<Type> weft::layerResultTypes(ModelBuilder &builder, LayerKind kind) {
  llvm::SmallVector<Type> types = {builder.streamType()};
  if (kind == LayerKind::Experts) {
    const desc::RoutingSpec &routing = builder.recipe.routing;
    types.append(size_t(routing.hasLoss()) + size_t(routing.capacityFactor.has_value()),
                 builder.wideType({}));
    if (routing.bufferFactor) {
      types.push_back(builder.wideType({ShapedType::kDynamic, builder.model.experts->count}));
    }
    if (routing.biasUpdateSpeed > 0.0) {
      types.push_back(builder.wideType({builder.model.experts->count}));
    }
  }
  return types;
}

Mixture weft::buildExperts(ModelBuilder &builder, Value normed, Value input,
                           const llvm::StringMap<Value> &parameters) {
  const desc::ExpertsSpec &experts = *builder.model.experts;
  Router router(builder, experts);
  router.route(
      builder.contract("router", "bsk,ek->bse", {normed, parameters.lookup("router.weight")}),
      parameters.lookup("router.bias"));

  // Slots of all experts, [expert, sequence, slot, hidden]. One batched matmul computes all
  // experts.
  auto type = llvm::cast<RankedTensorType>(input.getType());
  RankedTensorType slotType =
      type.clone({experts.count, type.getDimSize(0), router.slots, type.getDimSize(2)});
  Value tokens = DispatchOp::create(builder.builder, builder.location("experts.dispatch"), slotType,
                                    input, router.kept, router.kept);
  auto project = [&](llvm::StringRef name, llvm::StringRef equation, Value value) {
    Value weight = parameters.lookup((name + ".weight").str());
    Value matmul = builder.contract(name, equation, {value, weight}, /*isOfLayer=*/true);
    return builder.round(name, matmul);
  };
  Value up = project("experts.up", "ebck,enk->ebcn", tokens);
  Value gate =
      builder.model.hasGate() ? project("experts.gate", "ebck,enk->ebcn", tokens) : Value{};
  Value active =
      builder.quantize("experts.activation", builder.activate("experts.activation", up, gate));
  Value outputs = project("experts.down", "ebck,enk->ebcn", active);
  Value combined =
      CombineOp::create(builder.builder, builder.location("experts.combine"),
                        type.clone(builder.wideElement()), outputs, router.weights, router.kept);
  return {combined, router.results};
}

Value weft::gateShared(ModelBuilder &builder, Value normed, Value weight, Value shared) {
  Value logits = builder.contract("shared_router", "bsk,k->bs", {normed, weight});
  Value wide =
      createCast(builder.builder, builder.location("shared_router"), shared, builder.wideElement());
  return mapOver(builder, "shared_router", {{wide, "bsk"}, {logits, "bs"}},
                 [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                   return arith::MulFOp::create(scalars, in[0], logistic(scalars, in[1]));
                 });
}
