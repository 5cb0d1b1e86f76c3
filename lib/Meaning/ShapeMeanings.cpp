//===- ShapeMeanings.cpp - what ops on shapes compute -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension that such an op changes has one letter before and another after: 'a', 'b', … for
// those of operands, 'Z', 'Y', … for those of a result. Others have one letter, from 'A' on.
//
//===----------------------------------------------------------------------===//

#include "OpMeaning.h"

using namespace mlir;

namespace weft::meaning {

namespace {

/// Letters of a tensor whose dimension `dim` has the letter `changed`.
std::string withLetter(int64_t rank, int64_t dim, char changed) {
  std::string letters = lettersOf(rank);
  letters[dim] = changed;
  return letters;
}

/// More operands than letters: those of one length, all of it on each rank, share a letter.
constexpr size_t kOperandsWithLetters = 100;

OpMeaning ofConcat(ConcatOp op) {
  OpMeaning meaning;
  int64_t rank = rankOf(op.getOutput());
  std::vector<unsigned> all;
  bool shareLetters = op.getInputs().size() > kOperandsWithLetters;
  llvm::SmallDenseMap<int64_t, unsigned> ofLength;
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    int64_t length = cast<RankedTensorType>(input.getType()).getDimSize(unsigned(op.getDim()));
    auto next = unsigned(ofLength.size());
    char letter = char(
        'a' + (shareLetters ? ofLength.try_emplace(length, next).first->second : unsigned(number)));
    meaning.operands.push_back(withLetter(rank, int64_t(op.getDim()), letter));
    meaning.whole.push_back(letter);
    all.push_back(unsigned(number));
  }
  meaning.results = {withLetter(rank, int64_t(op.getDim()), 'Z')};
  meaning.linear = {all};
  meaning.joinings = {std::nullopt};
  return meaning;
}

OpMeaning ofSplit(SplitOp op) {
  OpMeaning meaning;
  int64_t rank = rankOf(op.getInput());
  meaning.operands = {withLetter(rank, int64_t(op.getDim()), 'a')};
  meaning.whole = "a";
  meaning.linear = {{0}};
  for (unsigned number = 0; number < op.getOutputs().size(); ++number) {
    meaning.results.push_back(withLetter(rank, int64_t(op.getDim()), 'Z'));
    meaning.joinings.push_back(std::nullopt);
  }
  return meaning;
}

/// Of a tensor that is no stack of micro-batches, one element along the first dimension.
OpMeaning ofSelect(SelectOp op) {
  OpMeaning meaning;
  meaning.operands = {"a" + lettersOf(rankOf(op.getOutput())), ""};
  meaning.results = {lettersOf(rankOf(op.getOutput()))};
  meaning.whole = "a";
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  meaning.numbers = {op.getIndex()};
  return meaning;
}

/// Only where a program before Plan changes the order: see Evaluation.
OpMeaning ofReorder(ReorderOp op) {
  OpMeaning meaning;
  int64_t rank = rankOf(op.getInput()), dim = int64_t(op.getDim());
  meaning.operands = {withLetter(rank, dim, 'a')};
  meaning.results = {withLetter(rank, dim, 'Z')};
  meaning.whole = "a";
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  mlir::Value offset = op.getOffset();
  meaning.positions = {{'Z', offset, op.getOrder().getSize(), mlir::Value(), 0}};
  meaning.constants = {op.getOrder().getChunks(), op.getOrder().getLength()};
  return meaning;
}

/// Dimensions that do not change keep their letters.
template <typename OpTy> OpMeaning ofParts(OpTy op, bool isLinear) {
  OpMeaning meaning;
  int64_t rank = rankOf(op.getInput());
  std::string before = lettersOf(rank), after = before;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!op.isWhole(dim)) {
      before[dim] = char('a' + dim);
      after[dim] = char('Z' - dim);
      meaning.whole.push_back(before[dim]);
    }
  }
  meaning.operands = {before};
  meaning.results = {after};
  if (isLinear) {
    meaning.linear = {{0}};
  }
  meaning.joinings = {std::nullopt};
  return meaning;
}

OpMeaning ofExtract(ExtractOp op) { return ofParts(op, /*isLinear=*/true); }

OpMeaning ofPad(PadOp op) { return ofParts(op, op.getValue().isZero()); }

} // namespace

void addShapeMeanings(MeaningTable &table) {
  addMeaning<ConcatOp, ofConcat>(table);
  addMeaning<SplitOp, ofSplit>(table);
  addMeaning<SelectOp, ofSelect>(table);
  addMeaning<ReorderOp, ofReorder>(table);
  addMeaning<ExtractOp, ofExtract>(table);
  addMeaning<PadOp, ofPad>(table);
}

} // namespace weft::meaning
