//===- BuildLayer.cpp - one block of a model ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildExperts.h"
#include "ModelBuilder.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Pipeline/Import/Parameters.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace weft;

namespace {

/// Builds x + attention(norm(x)), then x + mlp(norm(x)).
class LayerBuilder {
public:
  LayerBuilder(ModelBuilder &builder, LayerKind kind)
      : builder(builder), model(builder.model), kind(kind) {}

  void build(llvm::StringRef name) {
    Value stream = startFunction(name);
    stream = addAttention(stream);
    stream = addMlp(stream);
    results.insert(results.begin(), stream);
    func::ReturnOp::create(builder.builder, builder.location("layer"), results);
  }

private:
  /// Returns the residual stream on entry.
  Value startFunction(llvm::StringRef name);
  Value addAttention(Value stream);
  /// Builds attention up to the weighted sums of values.
  Value attendPlain(Value input);
  Value attendLatent(Value input);
  /// The rotated part of keys, the same for all heads.
  Value spreadOverHeads(Value rotated);
  Value addMlp(Value stream);
  /// Builds the plain MLP `name` on a quantized input.
  Value applyMlp(llvm::StringRef name, Value input);
  /// Builds the experts, and the MLP that all tokens share, on a normalized input.
  Value applyExperts(Value normed);

  /// Builds x · Wᵀ + b with the parameters `name`.weight and, if there is one, `name`.bias. Input
  /// and weight are quantized already.
  Value project(llvm::StringRef name, llvm::StringRef equation, Value input);
  Value norm(llvm::StringRef name, Value input);
  /// Builds the norm of each head, if the model has one.
  Value normHeads(llvm::StringRef name, Value input);
  Value rotate(llvm::StringRef name, Value input);
  Value attend(Value query, Value key, Value value);

  ModelBuilder &builder;
  const desc::ModelSpec &model;
  LayerKind kind;
  RandomKey key;
  Value rotaryTable;
  /// Starts of documents; null in a recipe without documents.
  Value starts;
  /// Parameters by their names inside the layer; null if the model lacks one.
  llvm::StringMap<Value> parameters;
  /// The layer's results besides the residual stream.
  llvm::SmallVector<Value> results;
};

Value LayerBuilder::startFunction(llvm::StringRef name) {
  llvm::SmallVector<Type> types{builder.builder.getIndexType()};
  if (builder.hasDropout()) {
    types.append(2, builder.counterType());
  }
  if (model.positions == desc::PositionKind::Rotary) {
    types.push_back(builder.rotaryTableType());
  }
  if (builder.hasDocuments()) {
    types.push_back(builder.idType());
  }
  types.push_back(builder.streamType());
  llvm::SmallVector<Parameter> declared = layerParameters(model, kind == LayerKind::Experts);
  for (const Parameter &parameter : declared) {
    types.push_back(builder.usedType(parameter));
  }
  auto function =
      builder.function(name, types, layerResultTypes(builder, kind), /*isPrivate=*/true);

  auto argument = function.args_begin();
  key.layer = *argument++;
  if (builder.hasDropout()) {
    key.seed = *argument++;
    key.step = *argument++;
  }
  if (model.positions == desc::PositionKind::Rotary) {
    rotaryTable = *argument++;
  }
  if (builder.hasDocuments()) {
    starts = *argument++;
  }
  Value stream = *argument++;
  for (const Parameter &parameter : declared) {
    parameters[parameter.name] = *argument++;
  }
  return stream;
}

Value LayerBuilder::project(llvm::StringRef name, llvm::StringRef equation, Value input) {
  Value weight = parameters.lookup(name.str() + ".weight");
  Value output = builder.contract(name, equation, {input, weight}, /*isOfLayer=*/true);
  Value bias = parameters.lookup(name.str() + ".bias");
  return bias ? builder.add(name, output, bias) : builder.round(name, output);
}

Value LayerBuilder::norm(llvm::StringRef name, Value input) {
  return builder.norm(name, input, parameters.lookup(name.str() + ".weight"),
                      parameters.lookup(name.str() + ".bias"));
}

Value LayerBuilder::normHeads(llvm::StringRef name, Value input) {
  return model.queryKeyNorm ? norm(name, input) : input;
}

Value LayerBuilder::rotate(llvm::StringRef name, Value input) {
  if (!rotaryTable) {
    return input;
  }
  return RotaryOp::create(builder.builder, builder.location(name), input.getType(), input,
                          rotaryTable, /*inverse=*/false);
}

Value LayerBuilder::attend(Value query, Value keys, Value values) {
  int64_t batch = ShapedType::kDynamic;
  RankedTensorType lse =
      builder.wideType({batch, model.kvHeads, model.group(), builder.recipe.sequenceLength});
  bool drops = model.attentionDropout > 0.0;
  // A window as long as a sequence has no effect.
  bool hasWindow =
      model.attentionWindow > 0 && model.attentionWindow < builder.recipe.sequenceLength;
  // If queries and keys are rotated whole, their scale applies to scores.
  double rotated = model.latent ? 1.0 : model.rotary.rotatedScale;
  double scale =
      model.rotary.scoreScale * rotated * rotated / std::sqrt(static_cast<double>(model.headSize));
  auto queryType = llvm::cast<RankedTensorType>(query.getType());
  auto shape = llvm::to_vector(queryType.getShape());
  shape.back() = model.valueSize();
  auto attention = AttentionOp::create(
      builder.builder, builder.location("attention"), queryType.clone(shape), lse, query, keys,
      values, drops ? key.seed : Value{}, drops ? key.step : Value{}, drops ? key.layer : Value{},
      starts, /*offsets=*/ValueRange{}, /*turn=*/Value{}, llvm::APFloat(scale),
      llvm::APFloat(model.attentionDropout),
      hasWindow ? builder.builder.getI64IntegerAttr(model.attentionWindow) : IntegerAttr{},
      /*bidirectional=*/false,
      /*global_shape=*/DenseI64ArrayAttr{}, /*order=*/ZigzagAttr{}, /*mesh=*/MeshAttr{},
      /*axes=*/ArrayAttr{}, /*turns=*/IntegerAttr{});
  return attention.getOutput();
}

Value LayerBuilder::attendPlain(Value input) {
  Value query = project("attention.query", "bsk,grdk->bsgrd", input);
  Value keys = project("attention.key", "bsk,gdk->bsgd", input);
  Value values = project("attention.value", "bsk,gdk->bsgd", input);
  query = rotate("attention.query", normHeads("attention.query_norm", query));
  keys = rotate("attention.key", normHeads("attention.key_norm", keys));
  return attend(query, keys, values);
}

Value LayerBuilder::spreadOverHeads(Value rotated) {
  auto type = llvm::cast<RankedTensorType>(rotated.getType());
  MLIRContext *context = builder.builder.getContext();
  AffineExpr dims[] = {getAffineDimExpr(0, context), getAffineDimExpr(1, context),
                       getAffineDimExpr(3, context)};
  // Both queries and keys are scaled, as their matmul counts.
  double scale = model.rotary.rotatedScale * model.rotary.rotatedScale;
  Type wide = builder.wideElement();
  return MapOp::create(builder.builder, builder.location("attention.key_rotary"),
                       TypeRange{type.clone({type.getDimSize(0), type.getDimSize(1), model.kvHeads,
                                             type.getDimSize(2)})},
                       ValueRange{rotated}, AffineMap::get(4, 0, dims, context),
                       [&](OpBuilder &inner, Location loc, ValueRange scalars) {
                         Value value = scalars[0];
                         if (scale != 1.0) {
                           ImplicitLocOpBuilder code(loc, inner);
                           value = castScalar(inner, loc, value, wide);
                           value = arith::MulFOp::create(code, value,
                                                         scalarConstant(code, value, scale));
                           value = castScalar(inner, loc, value, type.getElementType());
                         }
                         return llvm::SmallVector<Value>{value};
                       })
      .getResult(0);
}

Value LayerBuilder::attendLatent(Value input) {
  auto latentOf = [&](llvm::StringRef name) {
    std::string normName = name.str() + "_norm";
    return builder.quantize(normName, norm(normName, project(name, "bsk,nk->bsn", input)));
  };
  Value source = model.latent->queryRank > 0 ? latentOf("attention.query_latent") : input;
  Value query = rotate("attention.query", project("attention.query", "bsk,grdk->bsgrd", source));
  Value rotated =
      rotate("attention.key_rotary", project("attention.key_rotary", "bsk,nk->bsn", input));
  Value latent = latentOf("attention.latent");
  Value plain = project("attention.key", "bsk,gdk->bsgd", latent);
  Value values = project("attention.value", "bsk,gdk->bsgd", latent);
  auto type = llvm::cast<RankedTensorType>(plain.getType());
  auto shape = llvm::to_vector(type.getShape());
  shape.back() = model.headSize;
  Value keys = ConcatOp::create(builder.builder, builder.location("attention.key"),
                                type.clone(shape), ValueRange{spreadOverHeads(rotated), plain},
                                /*dim=*/3);
  return attend(query, keys, values);
}

Value LayerBuilder::addAttention(Value stream) {
  Value input = builder.quantize("attention_norm", norm("attention_norm", stream));
  Value mixed =
      builder.quantize("attention", model.latent ? attendLatent(input) : attendPlain(input));
  Value output = project("attention.output", "bsgrd,ngrd->bsn", mixed);
  output = builder.dropout("attention.dropout", output, key, DropoutSite::Attention);
  return builder.add("attention.residual", stream, output);
}

Value LayerBuilder::applyMlp(llvm::StringRef name, Value input) {
  std::string prefix = name.str() + ".";
  Value up = project(prefix + "up", "bsk,nk->bsn", input);
  Value gate = model.hasGate() ? project(prefix + "gate", "bsk,nk->bsn", input) : Value{};
  std::string activation = prefix + "activation";
  Value active = builder.quantize(activation, builder.activate(activation, up, gate));
  return project(prefix + "down", "bsk,nk->bsn", active);
}

Value LayerBuilder::applyExperts(Value normed) {
  Value input = builder.quantize("mlp_norm", normed);
  Mixture mixture = buildExperts(builder, normed, input, parameters);
  results = mixture.results;
  if (model.experts->sharedFfn == 0) {
    return builder.round("experts.combine", mixture.output);
  }
  Value shared = applyMlp("shared", input);
  if (Value weight = parameters.lookup("shared_router.weight")) {
    shared = gateShared(builder, normed, weight, shared);
  }
  return builder.add("shared.residual", mixture.output, shared);
}

Value LayerBuilder::addMlp(Value stream) {
  Value normed = norm("mlp_norm", stream);
  Value output = kind == LayerKind::Experts ? applyExperts(normed)
                                            : applyMlp("mlp", builder.quantize("mlp_norm", normed));
  output = builder.dropout("mlp.dropout", output, key, DropoutSite::Mlp);
  return builder.add("mlp.residual", stream, output);
}

} // namespace

void weft::buildLayer(ModelBuilder &builder, LayerKind kind, llvm::StringRef name) {
  LayerBuilder(builder, kind).build(name);
}
