//===- Prints.cpp - fingerprints of values --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Prints.h"

#include "llvm/Support/xxhash.h"

#include <cmath>

namespace weft::meaning {

namespace {

using Wide = unsigned __int128;

constexpr uint64_t kFirst = (uint64_t(1) << 61) - 1, kSecond = (uint64_t(1) << 61) - 31;

uint64_t multiply(uint64_t left, uint64_t right, uint64_t prime) {
  return uint64_t(Wide(left) * right % prime);
}

uint64_t power(uint64_t base, uint64_t exponent, uint64_t prime) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    result = (exponent & 1) != 0 ? multiply(result, base, prime) : result;
    base = multiply(base, base, prime);
  }
  return result;
}

uint64_t ofInteger(int64_t value, uint64_t prime) {
  uint64_t size = (value < 0 ? 0 - uint64_t(value) : uint64_t(value)) % prime;
  return value < 0 && size > 0 ? prime - size : size;
}

/// A finite number is an integer times a power of two.
uint64_t ofNumber(double value, uint64_t prime) {
  constexpr int kDigits = 53;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);
  auto integer = int64_t(std::ldexp(fraction, kDigits));
  exponent -= kDigits;
  uint64_t two = exponent < 0 ? power(2, prime - 2, prime) : 2;
  return multiply(ofInteger(integer, prime), power(two, uint64_t(std::abs(exponent)), prime),
                  prime);
}

} // namespace

Print Print::operator+(const Print &other) const {
  return {(first + other.first) % kFirst, (second + other.second) % kSecond};
}

Print Print::operator-(const Print &other) const {
  return {(first + kFirst - other.first) % kFirst, (second + kSecond - other.second) % kSecond};
}

Print Print::operator*(const Print &other) const {
  return {multiply(first, other.first, kFirst), multiply(second, other.second, kSecond)};
}

Print Print::inverse() const {
  return {power(first, kFirst - 2, kFirst), power(second, kSecond - 2, kSecond)};
}

Print Print::of(int64_t value) { return {ofInteger(value, kFirst), ofInteger(value, kSecond)}; }

Print Print::of(double value) { return {ofNumber(value, kFirst), ofNumber(value, kSecond)}; }

Print Print::hash(llvm::ArrayRef<uint64_t> words) {
  llvm::ArrayRef bytes(reinterpret_cast<const uint8_t *>(words.data()),
                       words.size() * sizeof(uint64_t));
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
  return {hash.low64 % kFirst, hash.high64 % kSecond};
}

} // namespace weft::meaning
