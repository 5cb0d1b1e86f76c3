//===- Terms.cpp - whole tensors as expressions -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Terms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft::meaning {

static constexpr llvm::StringLiteral kConstant = "constant";

static int64_t asInteger(const void *pointer) { return reinterpret_cast<intptr_t>(pointer); }

static void renumber(Term &term) {
  SmallVector<int64_t> seen;
  auto numberOf = [&](int64_t &letter) {
    auto *place = llvm::find(seen, letter);
    int64_t number = place - seen.begin();
    if (place == seen.end()) {
      seen.push_back(letter);
    }
    letter = number;
  };
  for (TermOperand &operand : term.operands) {
    llvm::for_each(operand.letters, numberOf);
  }
  llvm::for_each(term.letters, numberOf);
}

/// Returns true if `term` adds up terms without dimensions.
static bool isScalarSum(const Term &term) {
  return term.function.getValue() == arith::AddFOp::getOperationName() && term.numbers.empty() &&
         llvm::all_of(term.operands,
                      [](const TermOperand &operand) { return operand.letters.empty(); });
}

void Terms::sortScalarSum(Term &term) const {
  SmallVector<TermOperand, 3> all;
  for (TermOperand &operand : term.operands) {
    const Term &inner = terms[operand.term];
    if (isScalarSum(inner) && inner.element == term.element && inner.attribute == term.attribute) {
      llvm::append_range(all, inner.operands);
    } else {
      all.push_back(std::move(operand));
    }
  }
  llvm::sort(all, [](const auto &left, const auto &right) { return left.term < right.term; });
  term.operands = std::move(all);
}

TermId Terms::numberOf(Term term, llvm::function_ref<std::string()> labelOf) {
  if (isScalarSum(term)) {
    sortScalarSum(term);
  }
  renumber(term);
  SmallVector<int64_t, 32> row = {asInteger(term.function.getAsOpaquePointer()), term.result,
                                  asInteger(term.attribute.getAsOpaquePointer()),
                                  asInteger(term.element.getAsOpaquePointer()),
                                  int64_t(term.numbers.size())};
  llvm::append_range(row, term.numbers);
  for (const TermOperand &operand : term.operands) {
    row.push_back(operand.term);
    row.push_back(int64_t(operand.letters.size()));
    llvm::append_range(row, operand.letters);
  }
  row.push_back(-1);
  llvm::append_range(row, term.letters);
  uint32_t number = rows.numberOf(row);
  if (number == terms.size()) {
    terms.push_back(std::move(term));
    if (labelOf) {
      terms.back().label = labelOf();
    }
  }
  return number;
}

TermId Terms::constant(TypedAttr value) {
  MLIRContext *context = value.getContext();
  return numberOf({StringAttr::get(context, kConstant),
                   0,
                   value,
                   value.getType(),
                   {},
                   {},
                   {},
                   {},
                   UnknownLoc::get(context),
                   ""});
}

std::optional<double> Terms::asConstant(TermId number) const {
  if (!is(number, kConstant)) {
    return std::nullopt;
  }
  if (auto real = dyn_cast<FloatAttr>(terms[number].attribute)) {
    return real.getValueAsDouble();
  }
  return double(cast<IntegerAttr>(terms[number].attribute).getInt());
}

} // namespace weft::meaning
