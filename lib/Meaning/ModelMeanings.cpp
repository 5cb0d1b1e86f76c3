//===- ModelMeanings.cpp - what ops of transformers compute ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpMeaning.h"

using namespace mlir;

namespace weft::meaning {

namespace {

mlir::Value first(OperandRange values) { return values.empty() ? mlir::Value() : values.front(); }

/// The dimensions of a matrix of rows: the last letter is 'z'.
std::string rowLetters(mlir::Value value) {
  return lettersOf(std::max<int64_t>(rankOf(value) - 1, 0)) + "z";
}

/// Positions along `letters`, told by offsets and sizes for all of them or, if the op is given
/// neither, for the whole.
std::vector<OpPosition> positionsOf(llvm::StringRef letters, OperandRange offsets,
                                    std::optional<ArrayRef<int64_t>> sizes) {
  std::vector<OpPosition> positions;
  for (auto [number, letter] : llvm::enumerate(letters)) {
    mlir::Value offset = number < offsets.size() ? offsets[unsigned(number)] : mlir::Value();
    positions.push_back({letter, offset, sizes ? (*sizes)[number] : 0, mlir::Value(), 0});
  }
  return positions;
}

OpMeaning ofContract(ContractOp op) {
  OpMeaning meaning;
  SmallVector<llvm::StringRef> terms = op.getTerms();
  for (llvm::StringRef term : ArrayRef(terms).drop_back()) {
    meaning.linear.push_back({unsigned(meaning.operands.size())});
    meaning.operands.push_back(term.str());
  }
  meaning.results = {terms.back().str()};
  meaning.joinings = {Joining::Sum};
  return meaning;
}

OpMeaning ofNorm(NormOp op) {
  OpMeaning meaning;
  meaning.operands = {rowLetters(op.getInput()), "z", "z"};
  meaning.results = {meaning.operands[0]};
  meaning.whole = "z";
  meaning.joinings = {std::nullopt};
  if (op.getKind() == NormKind::RMS) {
    meaning.zeroIn = {0};
  }
  return meaning;
}

OpMeaning ofNormGrad(NormGradOp op) {
  OpMeaning meaning;
  std::string row = rowLetters(op.getInput());
  meaning.operands = {row, "z", row};
  meaning.results = {row, "z", "z"};
  meaning.whole = "z";
  meaning.linear = {{2}};
  meaning.joinings = {std::nullopt, Joining::Sum, Joining::Sum};
  return meaning;
}

OpMeaning ofIota(IotaOp op) {
  OpMeaning meaning;
  meaning.results = {"s"};
  meaning.joinings = {std::nullopt};
  meaning.positions = {{'s', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  return meaning;
}

/// Only normal distributions: constants need no letters.
OpMeaning ofFill(FillOp op) {
  OpMeaning meaning;
  meaning.operands = {"", ""};
  meaning.results = {lettersOf(rankOf(op.getOutput()))};
  meaning.joinings = {std::nullopt};
  meaning.positions = positionsOf(meaning.results[0], op.getOffsets(), op.getGlobalShape());
  meaning.numbers = {op.getStream()};
  return meaning;
}

OpMeaning ofRotaryTable(RotaryTableOp op) {
  OpMeaning meaning;
  meaning.results = {"ksm"};
  meaning.joinings = {std::nullopt};
  meaning.positions = {{'s', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  return meaning;
}

/// The second dimension is the position, and the last one is rotated.
OpMeaning ofRotary(RotaryOp op) {
  OpMeaning meaning;
  std::string input = rowLetters(op.getInput());
  meaning.operands = {input, std::string("k") + input[1] + "m"};
  meaning.results = {input};
  meaning.whole = "zkm";
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  return meaning;
}

OpMeaning ofEmbedding(EmbeddingOp op) {
  OpMeaning meaning;
  std::string ids = lettersOf(rankOf(op.getIds()));
  meaning.operands = {"vh", ids};
  meaning.results = {ids + "h"};
  meaning.linear = {{0}};
  meaning.joinings = {Joining::Sum};
  meaning.ignored = "v"; // No id is one of the padding.
  meaning.positions = {{'v', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  return meaning;
}

OpMeaning ofEmbeddingGrad(EmbeddingGradOp op) {
  OpMeaning meaning;
  std::string ids = lettersOf(rankOf(op.getIds()));
  meaning.operands = {ids, ids + "h"};
  meaning.results = {"vh"};
  meaning.linear = {{1}};
  meaning.joinings = {Joining::Sum};
  meaning.zero = "v";
  meaning.positions = {{'v', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  return meaning;
}

/// batch b, query position s, key-value head g, query head of it r, feature d of queries and keys,
/// key position t, feature f of values.
template <typename OpTy> void setAttention(OpMeaning &meaning, OpTy op) {
  meaning.operands.resize(op->getNumOperands());
  for (OpOperand &starts : MutableOperandRange(op.getStartsMutable())) {
    meaning.operands[starts.getOperandNumber()] = "bs";
  }
  meaning.whole = "df";
  bool hasDropout = !op.getDropout().isZero();
  if (hasDropout || !op.getBidirectional()) {
    // The sizes number weights that are dropped. Otherwise they only count the turns.
    std::optional<ArrayRef<int64_t>> sizes = op.getGlobalShape();
    meaning.positions = positionsOf(hasDropout ? "bgrst" : "st", op.getOffsets(),
                                    hasDropout ? sizes : std::nullopt);
    OpPosition &keys = meaning.positions.back();
    keys.turn = op.getTurn();
    if (keys.turn) {
      int64_t length = cast<RankedTensorType>(op.getKey().getType()).getDimSize(1);
      keys.turns = op.getTurns().value_or(sizes->back() / length);
    }
    meaning.order = op.getOrder().value_or(ZigzagAttr());
    meaning.ordered = "st";
  }
  // No query sees a later key, if it does not see all.
  (op.getBidirectional() ? meaning.solid : meaning.ignored) = "t";
  if (op.getLayer()) {
    meaning.numbers = {op.getLayer()};
  }
}

OpMeaning ofAttention(AttentionOp op) {
  OpMeaning meaning;
  setAttention(meaning, op);
  meaning.operands[0] = "bsgrd";
  meaning.operands[1] = "btgd";
  meaning.operands[2] = "btgf";
  meaning.results = {"bsgrf", "bgrs"};
  meaning.joinings = {Joining::Mean, Joining::LogSumExp};
  meaning.zeroIn = {2};
  return meaning;
}

OpMeaning ofAttentionGrad(AttentionGradOp op) {
  OpMeaning meaning;
  setAttention(meaning, op);
  llvm::copy(ArrayRef<llvm::StringRef>{"bsgrd", "btgd", "btgf", "bsgrf", "bgrs", "bsgrf"},
             meaning.operands.begin());
  meaning.results = {"bsgrd", "btgd", "btgf"};
  meaning.joinings = {Joining::Sum, Joining::Sum, Joining::Sum};
  meaning.zeroIn = {5};
  // Only queries of the padding see its keys.
  meaning.zero = op.getBidirectional() ? "" : "t";
  return meaning;
}

template <typename OpTy> void setColumns(OpMeaning &meaning, OpTy op, char letter) {
  if (std::optional<ArrayRef<int64_t>> columns = op.getColumns()) {
    meaning.sizes = {{letter, columns->front()}};
    meaning.ignored.push_back(letter);
  }
}

OpMeaning ofCrossEntropy(CrossEntropyOp op) {
  OpMeaning meaning;
  std::string tokens = lettersOf(rankOf(op.getTargets()));
  meaning.operands = {tokens + "v", tokens};
  meaning.results = {tokens, tokens};
  meaning.joinings = {Joining::LogSumExp, Joining::Sum};
  meaning.positions = {{'v', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  setColumns(meaning, op, 'v');
  return meaning;
}

OpMeaning ofCrossEntropyGrad(CrossEntropyGradOp op) {
  OpMeaning meaning;
  std::string tokens = lettersOf(rankOf(op.getTargets()));
  meaning.operands = {tokens + "v", tokens, tokens, tokens, tokens};
  meaning.results = {tokens + "v"};
  meaning.linear = {{3, 4}};
  meaning.joinings = {std::nullopt};
  meaning.positions = {{'v', first(op.getOffsetMutable()), 0, mlir::Value(), 0}};
  setColumns(meaning, op, 'v');
  meaning.zero = meaning.ignored;
  return meaning;
}

OpMeaning ofDropout(DropoutOp op) {
  OpMeaning meaning;
  std::string letters = lettersOf(rankOf(op.getInput()));
  meaning.operands = {letters, "", ""};
  meaning.results = {letters};
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  meaning.positions = positionsOf(letters, op.getOffsets(), op.getGlobalShape());
  meaning.numbers = {op.getLayer()};
  if (op.getOrder()) {
    meaning.order = *op.getOrder();
    meaning.ordered = letters.substr(*op.getOrderedDim(), 1);
  }
  return meaning;
}

OpMeaning ofAmax(AmaxOp op) {
  OpMeaning meaning;
  meaning.operands = {lettersOf(rankOf(op.getInput()))};
  meaning.results = {""};
  meaning.joinings = {Joining::Max};
  meaning.zeroIn = {0};
  return meaning;
}

OpMeaning ofQuantize(QuantizeOp op) {
  OpMeaning meaning;
  meaning.operands = {lettersOf(rankOf(op.getInput())), ""};
  meaning.results = {meaning.operands[0]};
  meaning.joinings = {std::nullopt};
  meaning.zeroIn = {0};
  return meaning;
}

OpMeaning ofSoftmax(SoftmaxOp op) {
  OpMeaning meaning;
  meaning.operands = {rowLetters(op.getInput())};
  meaning.results = meaning.operands;
  meaning.whole = "z";
  meaning.joinings = {std::nullopt};
  setColumns(meaning, op, 'z');
  meaning.zero = meaning.ignored;
  return meaning;
}

} // namespace

void addModelMeanings(MeaningTable &table) {
  addMeaning<ContractOp, ofContract>(table);
  addMeaning<NormOp, ofNorm>(table);
  addMeaning<NormGradOp, ofNormGrad>(table);
  addMeaning<IotaOp, ofIota>(table);
  addMeaning<FillOp, ofFill>(table);
  addMeaning<RotaryTableOp, ofRotaryTable>(table);
  addMeaning<RotaryOp, ofRotary>(table);
  addMeaning<EmbeddingOp, ofEmbedding>(table);
  addMeaning<EmbeddingGradOp, ofEmbeddingGrad>(table);
  addMeaning<AttentionOp, ofAttention>(table);
  addMeaning<AttentionGradOp, ofAttentionGrad>(table);
  addMeaning<CrossEntropyOp, ofCrossEntropy>(table);
  addMeaning<CrossEntropyGradOp, ofCrossEntropyGrad>(table);
  addMeaning<DropoutOp, ofDropout>(table);
  addMeaning<AmaxOp, ofAmax>(table);
  addMeaning<QuantizeOp, ofQuantize>(table);
  addMeaning<SoftmaxOp, ofSoftmax>(table);
}

} // namespace weft::meaning
