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

/// Returns how many blocks share a row of `columns` numbers, if rows are so few that devices would
/// be idle; 0 if one block has it alone. They take turns at what a block's threads load at once,
/// see `Code::sumsOfParts`; all but the last have as many such parts.
int64_t countSharing(Code &code, int64_t rows, int64_t columns);

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

/// Returns shared memory for `sumsBefore`, for `turns` calls that use it alternately.
Buffer slotsForSums(Code &code, mlir::Type type, int64_t columns, int64_t turns = 1);

/// Threads of a block whose numbers are equal modulo `columns`, a power of two up to 32, share a
/// column. Returns the sum of the numbers `own` of this thread's column in the threads before it,
/// and in all threads. All threads must call it, and wait for each other before another call uses
/// the same memory `slots(turn)`.
std::pair<Num, Num> sumsBefore(Code &code, Num own, int64_t columns, Buffer slots, Num turn);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_BLOCKSUMS_H
