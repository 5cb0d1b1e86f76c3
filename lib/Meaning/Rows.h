//===- Rows.h - rows of integers, each stored once -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_ROWS_H
#define WEFT_LIB_MEANING_ROWS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Allocator.h"

#include <cstdint>
#include <vector>

namespace weft::meaning {

/// Numbers rows of integers: equal rows have one number, so that comparing numbers compares rows.
/// Numbers are 0, 1, 2, … in the order of first use. For one thread.
class Rows {
public:
  uint32_t numberOf(llvm::ArrayRef<int64_t> row) {
    auto found = numbers.find(row);
    if (found != numbers.end()) {
      return found->second;
    }
    llvm::ArrayRef<int64_t> kept = row.copy(storage);
    auto number = static_cast<uint32_t>(rows.size());
    rows.push_back(kept);
    numbers.try_emplace(kept, number);
    return number;
  }
  /// The row lives as long as this object.
  llvm::ArrayRef<int64_t> operator[](uint32_t number) const { return rows[number]; }
  size_t size() const { return rows.size(); }

private:
  llvm::BumpPtrAllocator storage;
  std::vector<llvm::ArrayRef<int64_t>> rows;
  llvm::DenseMap<llvm::ArrayRef<int64_t>, uint32_t> numbers;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_ROWS_H
