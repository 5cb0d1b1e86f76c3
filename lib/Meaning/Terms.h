//===- Terms.h - whole tensors as expressions --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_TERMS_H
#define WEFT_LIB_MEANING_TERMS_H

#include "Rows.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <limits>
#include <optional>
#include <string>

namespace weft::meaning {

using TermId = uint32_t;

/// What no number is less than.
constexpr double kLeast = -std::numeric_limits<double>::infinity();

/// An operand of a term: another term, and for each of its dimensions the letter by which the
/// function calls it. Dimensions with one letter are indexed alike.
struct TermOperand {
  TermId term;
  llvm::SmallVector<int64_t, 6> letters;
};

/// A whole tensor, as a function of whole tensors. A term has only the dimensions that its elements
/// depend on: a constant has none.
struct Term {
  /// Name of the op, and which of its results this is.
  mlir::StringAttr function;
  int64_t result = 0;
  /// The op's own attributes, or the constant, or the variable; null for none.
  mlir::Attribute attribute;
  mlir::Type element;
  /// Numbers that operands of type index have, and sizes of dimensions that no operand has.
  llvm::SmallVector<int64_t, 2> numbers;
  llvm::SmallVector<TermOperand, 3> operands;
  /// The letter of each dimension.
  llvm::SmallVector<int64_t, 6> letters;

  /// Not part of the identity. The size of each dimension in the program that computed it first.
  llvm::SmallVector<int64_t, 6> sizes;
  /// The op that computed it first, and the use of the layer that the op is in.
  mlir::Location location;
  std::string label;
};

/// All terms of two programs; equal terms have one number. For one thread.
class Terms {
public:
  /// Letters are renumbered in the order of their first use, so that two programs may use others.
  /// A sum of scalars has all its terms in one order, so that two programs may have others.
  /// A new term gets its label from `labelOf`, if that is given.
  TermId numberOf(Term term, llvm::function_ref<std::string()> labelOf = {});
  const Term &operator[](TermId number) const { return terms[number]; }
  /// Says that all terms of the program before Plan are here.
  void endWhole() { wholes = terms.size(); }
  /// True if the program before Plan computes this term.
  bool isOfWhole(TermId number) const { return number < wholes; }
  TermId constant(mlir::TypedAttr value);
  /// The value of a term that is a constant.
  std::optional<double> asConstant(TermId number) const;
  bool isZero(TermId number) const { return asConstant(number) == 0.0; }
  bool is(TermId number, llvm::StringRef function) const {
    return terms[number].function.getValue() == function;
  }

private:
  /// Replaces the terms of `term` that are sums by their terms, and sorts all.
  void sortScalarSum(Term &term) const;

  Rows rows;
  std::deque<Term> terms;
  /// All, until they are told apart.
  size_t wholes = ~size_t(0);
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_TERMS_H
