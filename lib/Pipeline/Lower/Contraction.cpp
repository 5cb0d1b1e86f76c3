//===- Contraction.cpp - an einsum in as few dimensions as possible -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"

#include "llvm/ADT/STLExtras.h"

namespace weft::lower {

namespace {

/// Returns true if each of `terms` has `first` directly before `second`, or neither.
bool alwaysTogether(llvm::ArrayRef<std::string> terms, char first, char second) {
  return llvm::all_of(terms, [&](const std::string &term) {
    size_t at = term.find(first), other = term.find(second);
    return at == std::string::npos ? other == std::string::npos : other == at + 1;
  });
}

} // namespace

Contraction::Contraction(ContractOp op) {
  std::map<char, int64_t> letterSizes;
  llvm::SmallVector<std::string> terms;
  llvm::SmallVector<llvm::StringRef> written = op.getTerms();
  for (auto [number, term] : llvm::enumerate(written)) {
    mlir::Value value = number < op.getInputs().size() ? op.getInputs()[number] : op.getOutput();
    auto shape = llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
    std::string &kept = terms.emplace_back();
    for (auto [letter, size] : llvm::zip_equal(term, shape)) {
      letterSizes[letter] = size;
      if (size != 1) {
        kept += letter;
      }
    }
  }

  // Merge two letters that are always together into the first.
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string &term : terms) {
      for (size_t i = 0; i + 1 < term.size() && !changed; ++i) {
        char first = term[i], second = term[i + 1];
        if (alwaysTogether(terms, first, second)) {
          letterSizes[first] *= letterSizes[second];
          for (std::string &other : terms) {
            llvm::erase(other, second);
          }
          changed = true;
        }
      }
      if (changed) {
        break;
      }
    }
  }

  std::map<char, unsigned> dims;
  for (auto [number, term] : llvm::enumerate(terms)) {
    Dims &out = number + 1 == terms.size() ? output : inputs.emplace_back();
    for (char letter : term) {
      auto [place, isNew] = dims.try_emplace(letter, sizes.size());
      if (isNew) {
        sizes.push_back(letterSizes[letter]);
      }
      out.push_back(place->second);
    }
  }
}

llvm::SmallVector<int64_t> Contraction::shapeOf(const Dims &term) const {
  return llvm::map_to_vector(term, [&](unsigned dim) { return sizes[dim]; });
}

} // namespace weft::lower
