//===- TokenLists.h - the tokens of each row of a table -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For devices only. Tokens are sorted by the rows that they name, each row's in their order: by
// ranges of rows first, of which threads count what chunks of the tokens have, then in each range
// by its rows. Where all tokens are of one range, this is cut into chunks, too: no thread goes
// through more than a few. What is read and written is a few numbers for each token and row.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H
#define WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

class TokenLists {
public:
  /// Builds the phases. `rowOf(token)` is an index of `rows` or more where the table lacks the row,
  /// taken as a number without sign.
  TokenLists(Code &code, int64_t tokens, int64_t rows, llvm::function_ref<Num(Num)> rowOf);

  /// Where the tokens of a row begin in `tokenAt`, and where they end.
  Num begin(Num row) const;
  Num end(Num row) const;
  /// How many tokens name a row that there is.
  Num countAll() const;
  Num tokenAt(Num place) const;
  Num rowAt(Num place) const;

private:
  using RowOf = llvm::function_ref<Num(Num)>;
  using Visit = llvm::function_ref<void(Num token, Num row, Num place)>;

  void countChunks(RowOf rowOf);
  void addChunks();
  void sortByRanges(RowOf rowOf);
  void sortByRows();
  void forCuts(llvm::function_ref<void(llvm::ArrayRef<Num>, Num row, Num from, Num end)> body);
  void sortFirstChunks();
  Nums countOf(Num row, Num from, Num end);
  void list(Num row, Num from, Num end, Num place);
  Num endOf(Num range) const;
  Num forChunk(RowOf rowOf, Num chunk, Num range, Num first, Visit visit);
  /// Of `term(i, sum of those before)`.
  Num sumBefore(Num count, llvm::function_ref<Num(Num, Num)> term);

  Code &code;
  int64_t tokens, rows;
  /// Tokens of a chunk and rows of a range, and how many there are of each.
  int64_t chunk, width, chunks, ranges;
  /// Of [chunk, range], of ranges, and where ranges begin.
  Buffer counts, totals, starts;
  /// Sorted by ranges, and by rows.
  Buffer rangeTokens, rangeRows, rowTokens, sortedRows;
  /// Of rows: where they begin, and how many tokens they have.
  Buffer begins, sizes;
  /// Of [cut, row of its range]: tokens of rows before it and of its own, see forCuts.
  Buffer fewer, own;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H
