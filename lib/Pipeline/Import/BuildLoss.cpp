//===- BuildLoss.cpp - from tokens to the loss ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildExperts.h"
#include "ModelBuilder.h"
#include "weft/Pipeline/Import/Parameters.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"

using namespace mlir;
using namespace weft;

namespace {

/// Embeds the tokens, calls the layers, and compares with the targets.
class LossBuilder {
public:
  /// Also builds the functions of layers, with names that end in `suffix`.
  LossBuilder(ModelBuilder &builder, llvm::StringRef suffix, bool observesLogits = false)
      : builder(builder), model(builder.model), plainLayer("layer" + suffix.str()),
        expertLayer("layer_experts" + suffix.str()),
        loads(suffix.empty() ? "load/" : "validation_load/"), headOfChunk("head" + suffix.str()),
        chunks(observesLogits ? 1 : builder.recipe.lossChunks), observesLogits(observesLogits) {
    int64_t ofExperts = model.expertLayers();
    if (ofExperts < model.layers) {
      buildLayer(builder, LayerKind::Plain, plainLayer);
    }
    if (ofExperts > 0) {
      buildLayer(builder, LayerKind::Experts, expertLayer);
    }
    if (chunks > 1) {
      buildHeadOfChunk();
    }
  }

  /// Builds the loss in the current function.
  Value build() {
    if (builder.hasDropout()) {
      key.seed = builder.read("seed", builder.counterType());
      key.step = builder.read("step_number", builder.counterType());
    }
    Value stream = embed();
    stream = callLayers(stream);
    Value normed = applyFinalNorm(stream), head = readHead();
    if (chunks > 1) {
      callHeads(normed, head);
    } else {
      Value logits = makeLogits(normed, head);
      if (observesLogits) {
        ObserveOp::create(builder.builder, builder.location("head"), "logits", logits);
      }
      losses.insert(losses.begin(), buildCrossEntropy(builder, logits, readIds("targets")));
    }
    return createSum(builder.builder, builder.location("loss"), losses);
  }

private:
  Value embed();
  /// Adds the table of positions to `stream`.
  Value addPositions(Value stream);
  /// Positions in documents.
  Value countFromStarts(Value positions, Value starts);
  Value callLayers(Value stream);
  /// `constants` are the operands that all layers share.
  Value callLayer(int64_t number, ValueRange constants, Value stream);
  /// Takes the results of a layer with experts besides the stream.
  void useRouting(llvm::StringRef name, ValueRange more);
  Value applyFinalNorm(Value stream);
  Value readHead();
  Value makeLogits(Value normed, Value head);
  /// Adds `func private @head(%number, %x, %targets, %head) -> loss` for a part of each sequence.
  void buildHeadOfChunk();
  void callHeads(Value normed, Value head);
  llvm::SmallVector<Value> deal(llvm::StringRef name, Value whole);

  Value readIds(llvm::StringRef variable) { return builder.read(variable, builder.idType()); }

  /// Without learned positions, which are added before a row is rounded, the table is rounded
  /// instead of its rows: the same numbers, and ranks may hold the rounded table alone.
  Value readTokenTable() {
    if (roundedTable) {
      return roundedTable;
    }
    Value table = builder.read("embed.tokens.weight", builder.parameterType({"vocab", "hidden"}));
    if (model.positions == desc::PositionKind::Learned) {
      return table;
    }
    Value rounded = builder.round("embed.tokens", table);
    roundedTable = rounded == table ? Value() : rounded;
    return rounded;
  }

  ModelBuilder &builder;
  const desc::ModelSpec &model;
  /// Names of the functions of layers.
  std::string plainLayer, expertLayer;
  /// Prefix of the observations of experts' loads.
  std::string loads;
  /// The name of the function for a part of each sequence, and the number of parts.
  std::string headOfChunk;
  int64_t chunks;
  /// Losses: that of tokens, then those of routings.
  llvm::SmallVector<Value> losses;
  bool observesLogits;
  /// The key of layer 0, which the embedding counts as.
  RandomKey key;
  /// The rounded table, which tied embeddings read twice; null before it is made.
  Value roundedTable;
};

Value LossBuilder::embed() {
  Value stream = builder.embedding("embed.tokens", readTokenTable(), readIds("tokens"));
  stream = model.positions == desc::PositionKind::Learned ? addPositions(stream)
                                                          : builder.round("embed.tokens", stream);
  if (model.dropout > 0.0) {
    key.layer = builder.index("embed.dropout", 0);
  }
  return builder.dropout("embed.dropout", stream, key, DropoutSite::Embedding);
}

Value LossBuilder::addPositions(Value stream) {
  llvm::StringRef name = "embed.positions";
  auto numbers =
      RankedTensorType::get({builder.recipe.sequenceLength}, builder.builder.getI32Type());
  Value positions =
      IotaOp::create(builder.builder, builder.location(name), numbers, /*offset=*/Value{});
  if (builder.hasDocuments()) {
    positions = countFromStarts(positions, readIds("document_starts"));
  }
  Value table =
      builder.read("embed.positions.weight", builder.parameterType({"positions", "hidden"}));
  return builder.add(name, stream, builder.embedding(name, table, positions));
}

Value LossBuilder::countFromStarts(Value positions, Value starts) {
  AffineMap whole = builder.builder.getMultiDimIdentityMap(2);
  return MapOp::create(
             builder.builder, builder.location("embed.positions"), TypeRange{builder.idType()},
             ValueRange{starts, positions}, {whole, whole.getMinorSubMap(1)},
             [](OpBuilder &inner, Location at, ValueRange in) {
               return llvm::SmallVector<Value>{arith::SubIOp::create(inner, at, in[1], in[0])};
             })
      .getResult(0);
}

/// With documents, rotary tables stay as they are: rotations depend only on the distance between a
/// key and a query, which does not depend on the start of counting.
Value LossBuilder::callLayers(Value stream) {
  llvm::SmallVector<Value> constants;
  if (model.positions == desc::PositionKind::Rotary) {
    constants.push_back(RotaryTableOp::create(
        builder.builder, builder.location("rotary_table"), builder.rotaryTableType(),
        builder.builder.getF64ArrayAttr(desc::rotaryFrequencies(model)), /*offset=*/Value{}));
  }
  if (builder.hasDocuments()) {
    constants.push_back(readIds("document_starts"));
  }
  for (int64_t number = 0; number < model.layers; ++number) {
    stream = callLayer(number, constants, stream);
  }
  return stream;
}

Value LossBuilder::callLayer(int64_t number, ValueRange constants, Value stream) {
  std::string name = layerName(number);
  llvm::SmallVector<Value> operands{builder.index(name, number)};
  if (builder.hasDropout()) {
    operands.append({key.seed, key.step});
  }
  llvm::append_range(operands, constants);
  operands.push_back(stream);
  LayerKind kind = model.hasExperts(number) ? LayerKind::Experts : LayerKind::Plain;
  for (const Parameter &parameter : layerParameters(model, kind == LayerKind::Experts)) {
    std::string full = name + "." + parameter.name;
    Value held = builder.read(full, builder.heldType(parameter));
    // Computed once for all uses in a step, forward and backward.
    Value used = parameter.kind == ParameterKind::Router ? builder.round(full, held)
                 : parameter.isMatrix()                  ? builder.quantize(full, held)
                                                         : held;
    operands.push_back(used);
  }
  auto call =
      CallOp::create(builder.builder, builder.location(name), layerResultTypes(builder, kind),
                     kind == LayerKind::Experts ? expertLayer : plainLayer, name, operands);
  if (kind == LayerKind::Experts) {
    useRouting(name, call.getResults().drop_front());
  }
  return call.getResult(0);
}

void LossBuilder::useRouting(llvm::StringRef name, ValueRange more) {
  const desc::RoutingSpec &routing = builder.recipe.routing;
  Location loc = builder.location(name);
  auto next = [&] {
    Value value = more.front();
    more = more.drop_front();
    return value;
  };
  if (routing.hasLoss()) {
    losses.push_back(next());
  }
  if (routing.capacityFactor) {
    ObserveOp::create(builder.builder, loc, ("dropped/" + name).str(), next());
  }
  if (routing.bufferFactor) {
    auto load = ObserveOp::create(builder.builder, loc, loads + name.str(), next());
    LoadLimit limit = loadLimit(builder);
    load.setLimit(llvm::APFloat(static_cast<double>(limit.slots)));
    load.setMean(llvm::APFloat(limit.mean));
  }
  if (!more.empty()) {
    AssignOp::create(builder.builder, loc, (name + ".router.bias").str(), next());
  }
}

Value LossBuilder::applyFinalNorm(Value stream) {
  RankedTensorType vector = builder.parameterType({"hidden"});
  Value scale = builder.read("final_norm.weight", vector);
  Value bias = model.normBias ? builder.read("final_norm.bias", vector) : Value{};
  return builder.norm("final_norm", stream, scale, bias);
}

Value LossBuilder::readHead() {
  Value head = model.tiedEmbeddings
                   ? readTokenTable()
                   : builder.read("head.weight", builder.parameterType({"vocab", "hidden"}));
  return builder.round("head", head);
}

Value LossBuilder::makeLogits(Value normed, Value head) {
  return builder.round("head", builder.contract("head", "bsh,vh->bsv", {normed, head}));
}

void LossBuilder::buildHeadOfChunk() {
  int64_t batch = ShapedType::kDynamic, length = builder.recipe.sequenceLength / chunks;
  Type element = builder.activationElement();
  auto function =
      builder.function(headOfChunk,
                       {builder.builder.getIndexType(),
                        RankedTensorType::get({batch, length, model.hidden}, element),
                        RankedTensorType::get({batch, length}, builder.builder.getI32Type()),
                        RankedTensorType::get({model.vocabulary, model.hidden}, element)},
                       builder.wideType({}), /*isPrivate=*/true);
  Value logits = makeLogits(function.getArgument(1), function.getArgument(3));
  Value loss = buildCrossEntropy(builder, logits, function.getArgument(2));
  func::ReturnOp::create(builder.builder, builder.location("head"), loss);
}

void LossBuilder::callHeads(Value normed, Value head) {
  llvm::SmallVector<Value> ofChunks;
  for (auto [number, parts] : llvm::enumerate(
           llvm::zip_equal(deal("head", normed), deal("targets", readIds("targets"))))) {
    std::string label = "head." + std::to_string(number);
    auto [stream, targets] = parts;
    auto call =
        CallOp::create(builder.builder, builder.location("head"), builder.wideType({}), headOfChunk,
                       label, ValueRange{builder.index(label, number), stream, targets, head});
    ofChunks.push_back(call.getResult(0));
  }
  losses.insert(losses.begin(), ofChunks.begin(), ofChunks.end());
}

/// Deals the tokens of each sequence to the parts in turn. So each shard of a cut sequence has
/// tokens of every part, and no token moves between ranks.
llvm::SmallVector<Value> LossBuilder::deal(llvm::StringRef name, Value whole) {
  Location loc = builder.location(name);
  auto type = llvm::cast<RankedTensorType>(whole.getType());
  int64_t length = type.getDimSize(1) / chunks;
  auto shape = llvm::to_vector(type.getShape());
  shape[1] = length;
  RankedTensorType part = type.clone(shape);
  shape.insert(shape.begin() + 2, 1);
  RankedTensorType column = type.clone(shape);
  shape[2] = chunks;
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>> groups = {{0}, {1, 2}};
  for (int64_t dim = 2; dim < type.getRank(); ++dim) {
    groups.push_back({dim + 1});
  }
  ArrayAttr merge = builder.builder.getArrayAttr(
      llvm::map_to_vector(groups, [&](llvm::ArrayRef<int64_t> group) -> Attribute {
        return builder.builder.getI64ArrayAttr(group);
      }));
  Value rows = ReshapeOp::create(builder.builder, loc, type.clone(shape), whole, merge);
  auto columns = SplitOp::create(builder.builder, loc, llvm::SmallVector<Type>(chunks, column),
                                 rows, /*dim=*/2);
  return llvm::map_to_vector(columns.getOutputs(), [&](Value dealt) -> Value {
    return ReshapeOp::create(builder.builder, loc, part, dealt, merge);
  });
}

} // namespace

Value weft::buildCrossEntropy(ModelBuilder &builder, Value logits, Value targets) {
  auto shape = llvm::cast<RankedTensorType>(targets.getType()).getShape();
  RankedTensorType perToken = builder.wideType(shape);
  auto halves = CrossEntropyOp::create(builder.builder, builder.location("cross_entropy"), perToken,
                                       perToken, logits, targets, /*offset=*/Value{},
                                       /*columns=*/DenseI64ArrayAttr{});
  double zLoss = builder.recipe.zLoss;
  Value losses = builder.map("loss", {halves.getLse(), halves.getPicked()}, builder.wideElement(),
                             [zLoss](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                               Value loss = arith::SubFOp::create(scalars, in[0], in[1]);
                               if (zLoss == 0.0) {
                                 return loss;
                               }
                               Value square = arith::MulFOp::create(scalars, in[0], in[0]);
                               Value weighted = arith::MulFOp::create(
                                   scalars, square, scalarConstant(scalars, in[0], zLoss));
                               return arith::AddFOp::create(scalars, loss, weighted);
                             });
  Value sum = builder.contract("loss", shape.size() == 1 ? "b->" : "bs->", {losses});
  // The mean is over the recipe's batch, even if the current batch is a part of it.
  double scale = 1.0 / static_cast<double>(shape.size() == 1 ? builder.recipe.globalBatch
                                                             : builder.recipe.globalBatchTokens());
  return builder.map("loss", {sum}, builder.wideElement(),
                     [scale](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                       Value factor = scalarConstant(scalars, in[0], scale);
                       return arith::MulFOp::create(scalars, in[0], factor);
                     });
}

void weft::buildLoss(ModelBuilder &builder) {
  LossBuilder losses(builder, "");
  builder.function("loss", {}, builder.wideType({}), /*isPrivate=*/false);
  Value loss = losses.build();
  func::ReturnOp::create(builder.builder, builder.location("loss"), loss);
}

void weft::buildEvaluate(ModelBuilder &builder, bool observesLogits) {
  // Not @layer, which will save values for backward.
  LossBuilder losses(builder, "_evaluate", observesLogits);
  builder.function("evaluate", {}, {}, /*isPrivate=*/false);
  Value loss = losses.build();
  ObserveOp::create(builder.builder, builder.location("loss"), "validation_loss", loss);
  func::ReturnOp::create(builder.builder, builder.location("loss"));
}
