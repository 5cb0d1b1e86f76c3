//===- BlockSums.h - sums of many numbers on devices -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For devices only. Sums have one order, whatever the order of threads: there are no atomic
// additions. Long ones are sums of sums, which lie in memory of the kernel between two phases.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H
#define WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// `count` sums of numbers of `type` at once.
struct BlockSums {
  mlir::Type type;
  int64_t count = 1;
};

/// Sums of `terms(i)` over [0, size); `finish` stores them.
void sumWhole(Code &code, BlockSums sums, int64_t size, llvm::function_ref<Nums(Num)> terms,
              llvm::function_ref<void(llvm::ArrayRef<Num>)> finish);

/// For each row, sums of `terms(row, column)` over its columns.
void sumRows(Code &code, BlockSums sums, int64_t rows, int64_t columns,
             llvm::function_ref<Nums(Num, Num)> terms,
             llvm::function_ref<void(Num, llvm::ArrayRef<Num>)> finish);

/// For each column, sums of `terms(row, column)` over the rows.
void sumColumns(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                llvm::function_ref<Nums(Num, Num)> terms,
                llvm::function_ref<void(Num, llvm::ArrayRef<Num>)> finish);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H
