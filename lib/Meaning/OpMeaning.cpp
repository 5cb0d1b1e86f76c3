//===- OpMeaning.cpp - what ops compute, by letters -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpMeaning.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;

namespace weft::meaning {

std::string lettersOf(int64_t rank, char first) {
  std::string letters;
  for (int64_t dim = 0; dim < rank; ++dim) {
    letters.push_back(char(first + dim));
  }
  return letters;
}

int64_t rankOf(mlir::Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

std::vector<OpMeaning> meaningsOf(Operation *op) {
  static const MeaningTable table = [] {
    MeaningTable made;
    addModelMeanings(made);
    addExpertMeanings(made);
    addImageMeanings(made);
    addShapeMeanings(made);
    return made;
  }();
  auto found = table.find(op->getName().getStringRef());
  return found == table.end() ? std::vector<OpMeaning>() : found->second(op);
}

DictionaryAttr ownAttributes(Operation *op) {
  static const llvm::StringSet<> local = {
      "global_shape", "columns", "order", "ordered_dim",
      "mesh",         "axes",    "turns", "operandSegmentSizes"};
  SmallVector<NamedAttribute> own;
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    llvm::StringRef name = attribute.getName().getValue();
    if (!local.contains(name) && !name.starts_with("weft.")) {
      own.push_back(attribute);
    }
  }
  return DictionaryAttr::get(op->getContext(), own);
}

//===----------------------------------------------------------------------===//
// Scalar ops
//===----------------------------------------------------------------------===//

namespace {
using Known = std::optional<double>;
using Fold = Known (*)(ArrayRef<Known>);

struct ScalarMeaning {
  std::vector<std::vector<unsigned>> linear;
  Fold fold = nullptr;
};

template <double (*function)(double)> Known foldOne(ArrayRef<Known> in) {
  return in[0] ? Known(function(*in[0])) : std::nullopt;
}

Known foldProduct(ArrayRef<Known> in) {
  if (in[0] == 0.0 || in[1] == 0.0) {
    return 0.0; // Numbers of padding are finite.
  }
  return in[0] && in[1] ? Known(*in[0] * *in[1]) : std::nullopt;
}

template <typename Function> Known foldTwo(ArrayRef<Known> in, Function function) {
  return in[0] && in[1] ? Known(function(*in[0], *in[1])) : std::nullopt;
}

const llvm::StringMap<ScalarMeaning> &scalarTable() {
  static const llvm::StringMap<ScalarMeaning> table = {
      {"arith.addf",
       {{{0, 1}}, [](ArrayRef<Known> in) { return foldTwo(in, std::plus<double>()); }}},
      {"arith.subf",
       {{{0, 1}}, [](ArrayRef<Known> in) { return foldTwo(in, std::minus<double>()); }}},
      {"arith.mulf", {{{0}, {1}}, foldProduct}},
      {"arith.divf",
       {{{0}},
        [](ArrayRef<Known> in) -> Known {
          bool isZero = in[0] == 0.0 && in[1] != 0.0;
          return isZero ? 0.0 : foldTwo(in, std::divides<double>());
        }}},
      {"arith.negf", {{{0}}, [](ArrayRef<Known> in) { return in[0] ? Known(-*in[0]) : in[0]; }}},
      {"arith.extf", {{{0}}, [](ArrayRef<Known> in) { return in[0]; }}},
      {"arith.truncf", {{{0}}, [](ArrayRef<Known> in) { return in[0] == 0.0 ? in[0] : Known(); }}},
      {"arith.maximumf",
       {{},
        [](ArrayRef<Known> in) {
          return foldTwo(in, [](double one, double other) { return std::max(one, other); });
        }}},
      {"arith.minimumf",
       {{},
        [](ArrayRef<Known> in) {
          return foldTwo(in, [](double one, double other) { return std::min(one, other); });
        }}},
      {"math.sqrt", {{}, foldOne<std::sqrt>}},
      {"math.tanh", {{}, foldOne<std::tanh>}},
      {"math.erf", {{}, foldOne<std::erf>}},
      {"math.exp", {{}, foldOne<std::exp>}},
      {"math.sin", {{}, foldOne<std::sin>}},
      {"math.cos", {{}, foldOne<std::cos>}},
      {"math.log", {{}, foldOne<std::log>}},
  };
  return table;
}

/// Of a condition that is not known, both values must agree.
Known foldSelect(ArrayRef<Known> in) {
  if (in[0]) {
    return *in[0] != 0 ? in[1] : in[2];
  }
  return in[1] && in[1] == in[2] ? in[1] : std::nullopt;
}

Known foldCompare(arith::CmpFOp compare, ArrayRef<Known> in) {
  if (!in[0] || !in[1]) {
    return std::nullopt;
  }
  return arith::applyCmpPredicate(compare.getPredicate(), llvm::APFloat(*in[0]),
                                  llvm::APFloat(*in[1]))
             ? 1.0
             : 0.0;
}
} // namespace

OpMeaning scalarMeaning(Operation *op, unsigned dims) {
  OpMeaning meaning;
  std::string letters = lettersOf(dims);
  meaning.operands.assign(op->getNumOperands(), letters);
  meaning.results = {letters};
  meaning.joinings = {std::nullopt};
  auto found = scalarTable().find(op->getName().getStringRef());
  if (found != scalarTable().end()) {
    meaning.linear = found->second.linear;
    meaning.fold = found->second.fold;
  } else if (isa<arith::SelectOp>(op)) {
    meaning.linear = {{1, 2}};
    meaning.fold = foldSelect;
  } else if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    meaning.fold = [compare](ArrayRef<Known> in) { return foldCompare(compare, in); };
  } else {
    meaning.fold = [](ArrayRef<Known>) { return Known(); };
  }
  return meaning;
}

} // namespace weft::meaning
