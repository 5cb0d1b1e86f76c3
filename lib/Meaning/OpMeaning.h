//===- OpMeaning.h - what ops compute, by letters ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof has its own account of every op, written from the ops' descriptions. It must not ask
// the factor rules, which Plan and Partition insert collectives by: a rule that is wrong would
// prove itself.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_OPMEANING_H
#define WEFT_LIB_MEANING_OPMEANING_H

#include "Values.h"

#include "llvm/ADT/StringMap.h"

#include <functional>
#include <string>

namespace weft::meaning {

/// An op that numbers elements along `letter`: it is told the number of its first element, an
/// operand (null: 0), and perhaps the size of the whole (0: not).
struct OpPosition {
  char letter;
  mlir::Value offset;
  int64_t size = 0;
  /// Of attention: the keys are those of the rank `turn` places before, of `turns` ranks.
  mlir::Value turn;
  int64_t turns = 0;
};

/// What an op computes. Each dimension of an operand or a result has a letter, and dimensions of
/// one letter are indexed alike. Where letters need no more, the op computes each element of a
/// result from the elements with the same indices, and joins those with other indices of letters
/// that the result lacks.
struct OpMeaning {
  using DimOfLetter = std::function<const Dim &(char)>;

  std::vector<std::string> operands, results;
  /// Letters whose elements depend on one another, so that each rank needs all of them.
  std::string whole;
  /// Letters whose padding does not change elements of results outside of the padding.
  std::string ignored;
  /// Letters that have no padding.
  std::string solid;
  /// Letters along which results are zero in the padding.
  std::string zero;
  /// Sets of operands: the op is linear in each set taken together, the other operands held fixed.
  std::vector<std::vector<unsigned>> linear;
  /// An element of the results is zero where such an operand is.
  std::vector<unsigned> zeroIn;
  /// How each result joins the letters that it lacks; none if it cannot be joined.
  std::vector<std::optional<Joining>> joinings;
  std::vector<OpPosition> positions;
  /// Sizes of the whole that the op is told.
  std::vector<std::pair<char, int64_t>> sizes;
  /// Numbers that say which function it is, beside the op's attributes.
  std::vector<int64_t> constants;
  /// Operands of type index that are no positions.
  std::vector<mlir::Value> numbers;
  /// The order of positions that the op knows, and its letters.
  ZigzagAttr order;
  std::string ordered;
  /// Of elementwise functions: the value for given operands, if it is known.
  std::function<std::optional<double>(llvm::ArrayRef<std::optional<double>>)> fold;
  /// Letters that results lack, but are not joined along: `check` says which elements meet.
  std::string apart;
  /// The dimension of a letter that no operand has; none if the others do not give it.
  std::function<std::optional<Dim>(char, const DimOfLetter &, RankNumbers &)> derive;
  /// More that must hold; returns what is wrong.
  std::function<std::optional<std::string>(const DimOfLetter &, RankNumbers &)> check;
};

/// The meanings of `op`: none if it has no meaning by letters, several if one shard can be that
/// of several functions.
std::vector<OpMeaning> meaningsOf(mlir::Operation *op);

/// The meaning of an elementwise function of `op` over `dims` dimensions; `op` is a scalar op.
OpMeaning scalarMeaning(mlir::Operation *op, unsigned dims);

/// The attributes of `op` that say what it computes, without those that say which part.
mlir::DictionaryAttr ownAttributes(mlir::Operation *op);

// By family of ops, each a table of names.
using MeaningTable = llvm::StringMap<std::vector<OpMeaning> (*)(mlir::Operation *)>;
void addModelMeanings(MeaningTable &table);
void addExpertMeanings(MeaningTable &table);
void addImageMeanings(MeaningTable &table);
void addShapeMeanings(MeaningTable &table);

template <typename OpTy, OpMeaning (*function)(OpTy)> void addMeaning(MeaningTable &table) {
  table[OpTy::getOperationName()] = [](mlir::Operation *op) {
    return std::vector<OpMeaning>{function(mlir::cast<OpTy>(op))};
  };
}

/// The letters of a tensor of `rank` dimensions, from `first` on.
std::string lettersOf(int64_t rank, char first = 'A');
int64_t rankOf(mlir::Value value);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_OPMEANING_H
