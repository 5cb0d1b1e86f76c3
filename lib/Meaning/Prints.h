//===- Prints.h - fingerprints of values ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A print is the value of an expression for random values of its unknowns, modulo two primes of 61
// bits. Expressions that are equal by the rules of a field (sums in another order, factors
// distributed, constants folded) have one print; others have the same print with a probability of
// about their degree / 2^122 (Schwartz and Zippel).
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_PRINTS_H
#define WEFT_LIB_MEANING_PRINTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace weft::meaning {

struct Print {
  uint64_t first = 0, second = 0;

  bool operator==(const Print &other) const = default;
  bool isZero() const { return first == 0 && second == 0; }

  Print operator+(const Print &other) const;
  Print operator-(const Print &other) const;
  Print operator*(const Print &other) const;
  /// The inverse, or zero for a zero.
  Print inverse() const;

  static Print of(int64_t value);
  /// The exact number; `value` must be finite.
  static Print of(double value);
  /// A random number that depends on all the words.
  static Print hash(llvm::ArrayRef<uint64_t> words);
};

/// The words of a hash, put together.
class Words {
public:
  Words &operator<<(uint64_t word) {
    words.push_back(word);
    return *this;
  }
  Words &operator<<(const void *pointer) { return *this << reinterpret_cast<uint64_t>(pointer); }
  Words &operator<<(const Print &print) { return *this << print.first << print.second; }
  Words &operator<<(llvm::StringRef text) { return *this << uint64_t(llvm::hash_value(text)); }
  Words &operator<<(llvm::ArrayRef<int64_t> numbers) {
    *this << uint64_t(numbers.size());
    words.append(numbers.begin(), numbers.end());
    return *this;
  }
  Print print() const { return Print::hash(words); }

private:
  llvm::SmallVector<uint64_t, 32> words;
};

} // namespace weft::meaning

template <> struct llvm::DenseMapInfo<weft::meaning::Print> {
  using Print = weft::meaning::Print;
  static Print getEmptyKey() { return {~uint64_t(0), 0}; }
  static Print getTombstoneKey() { return {~uint64_t(0), 1}; }
  static unsigned getHashValue(const Print &print) { return unsigned(print.first ^ print.second); }
  static bool isEqual(const Print &left, const Print &right) { return left == right; }
};

#endif // WEFT_LIB_MEANING_PRINTS_H
