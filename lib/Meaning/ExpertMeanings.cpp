//===- ExpertMeanings.cpp - what ops of experts compute --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpMeaning.h"

using namespace mlir;

namespace weft::meaning {

namespace {

OpMeaning ofTopK(TopKOp op) {
  OpMeaning meaning;
  std::string row = lettersOf(std::max<int64_t>(rankOf(op.getInput()) - 1, 0)) + "z";
  meaning.operands = {row, "z"};
  meaning.results = {row};
  meaning.whole = "z";
  meaning.joinings = {std::nullopt};
  if (std::optional<ArrayRef<int64_t>> columns = op.getColumns()) {
    meaning.sizes = {{'z', columns->front()}};
    meaning.ignored = meaning.zero = "z";
  }
  return meaning;
}

OpMeaning ofCumulativeSum(CumulativeSumOp op) {
  OpMeaning meaning;
  std::string letters = lettersOf(rankOf(op.getInput()));
  meaning.operands = meaning.results = {letters};
  meaning.whole = letters.substr(op.getDimension(), 1);
  meaning.linear = {{0}};
  meaning.joinings = {std::nullopt};
  if (!op.getReverse()) {
    meaning.ignored = meaning.whole; // It comes after all summands.
  }
  return meaning;
}

/// Group g, token t, expert e, slot c, hidden h. The tokens before a token decide its slot, so that
/// padding, which comes last, changes no slot.
OpMeaning ofSlots(std::vector<std::string> operands, std::string result, unsigned mask) {
  OpMeaning meaning;
  meaning.operands = std::move(operands);
  meaning.results = {std::move(result)};
  meaning.whole = "tc";
  meaning.ignored = "t";
  meaning.linear = {{0}, {1}};
  meaning.zeroIn = {mask};
  meaning.joinings = {Joining::Sum};
  return meaning;
}

OpMeaning ofDispatch(DispatchOp) { return ofSlots({"gth", "gte", "gte"}, "egch", 2); }

OpMeaning ofCombine(CombineOp) { return ofSlots({"egch", "gte", "gte"}, "gth", 2); }

OpMeaning ofSlotProducts(SlotProductsOp) { return ofSlots({"gth", "egch", "gte"}, "gte", 2); }

} // namespace

void addExpertMeanings(MeaningTable &table) {
  addMeaning<TopKOp, ofTopK>(table);
  addMeaning<CumulativeSumOp, ofCumulativeSum>(table);
  addMeaning<DispatchOp, ofDispatch>(table);
  addMeaning<CombineOp, ofCombine>(table);
  addMeaning<SlotProductsOp, ofSlotProducts>(table);
}

} // namespace weft::meaning
