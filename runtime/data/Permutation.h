//===- Permutation.h - a shuffled order without a list ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bijection of {0 .. count-1} onto itself that depends on a key and takes no
// memory, so that any rank finds any sample and a run resumes exactly.
//
// A number of 2h bits, h being the least with 4^h >= count, is split into halves
// and goes through four Feistel rounds (Luby and Rackoff, 1988):
//
//   (left, right) <- (right, left ^ low h bits of randomBits(key, round, right))
//
// This is a bijection for any round function. A result of `count` or more goes
// through the rounds again until it is less ("cycle walking", Black and Rogaway,
// 2002); since 4^h < 4 count, that takes fewer than four passes on average.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_PERMUTATION_H
#define WEFT_RT_DATA_PERMUTATION_H

#include "support/Random.h"

namespace weft::rt {

class Permutation {
public:
  /// `count` from 1 to 2^62.
  Permutation(uint64_t count, uint64_t key) : count(count), key(key) {
    while ((uint64_t(1) << (2 * halfBits)) < count) {
      ++halfBits;
    }
  }

  /// Returns the image of `index`, which must be less than `count`.
  uint64_t operator()(uint64_t index) const {
    do {
      index = encrypt(index);
    } while (index >= count);
    return index;
  }

private:
  uint64_t encrypt(uint64_t number) const {
    uint64_t mask = (uint64_t(1) << halfBits) - 1;
    uint64_t left = number >> halfBits, right = number & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      uint64_t next = left ^ (randomBits(key, round, right) & mask);
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t count, key;
  uint64_t halfBits = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_PERMUTATION_H
