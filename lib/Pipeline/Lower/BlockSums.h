//===- BlockSums.h - sums of many numbers on devices -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For devices only. Sums have a fixed order, whatever the order of threads: there are no atomic
// additions. Long ones are sums of partial sums, which the kernel stores between two phases.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H
#define WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Asks for `count` sums of type `type` at once.
struct BlockSums {
  mlir::Type type;
  int64_t count = 1;
};

/// Sums up `terms(i)` over [0, size); `finish` stores the sums.
void sumWhole(Code &code, BlockSums sums, int64_t size, llvm::function_ref<Nums(Num)> terms,
              llvm::function_ref<void(llvm::ArrayRef<Num>)> finish);

/// For each row sums up `terms(row, column)` over its columns.
void sumRows(Code &code, BlockSums sums, int64_t rows, int64_t columns,
             llvm::function_ref<Nums(Num, Num)> terms,
             llvm::function_ref<void(Num, llvm::ArrayRef<Num>)> finish);

/// For each column sums up `terms(row, column)` over the rows.
void sumColumns(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                llvm::function_ref<Nums(Num, Num)> terms,
                llvm::function_ref<void(Num, llvm::ArrayRef<Num>)> finish);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H
