//===- TokenLists.h - the tokens of each row of a table -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For devices only. Sorts tokens by the rows that they name, and keeps the order of each row's
// tokens. First threads count the tokens of chunks for each range of rows and sort by ranges; then
// they sort each range by rows. If all tokens are in one range, that is cut into chunks too: no
// thread visits more than a few. Memory traffic is a few numbers for each token and row.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H
#define WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

class TokenLists {
public:
  /// Builds the phases. `rowOf(token)` is taken as an unsigned number; if it is `rows` or more, the
  /// table lacks the row.
  TokenLists(Code &code, int64_t tokens, int64_t rows, llvm::function_ref<Num(Num)> rowOf);

  /// Return the range in `tokenAt` of the tokens of a row.
  Num begin(Num row) const;
  Num end(Num row) const;
  /// Returns the number of tokens whose rows are in the table.
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

  Code &code;
  int64_t tokens, rows;
  /// Tokens of a chunk and rows of a range, and the numbers of chunks and of ranges.
  int64_t chunk, width, chunks, ranges;
  /// Counts for [chunk, range], totals of ranges, and starts of ranges.
  Buffer counts, totals, starts;
  /// Tokens and rows sorted by ranges, and by rows.
  Buffer rangeTokens, rangeRows, rowTokens, sortedRows;
  /// For each row the place of its first token, and the number of its tokens.
  Buffer begins, sizes;
  /// For [cut, row of its range]: how many tokens earlier rows and this row have; see forCuts.
  Buffer fewer, own;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_TOKENLISTS_H
