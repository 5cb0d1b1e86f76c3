//===- LineReader.h - lines of words, names and numbers -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PLANNER_LINEREADER_H
#define WEFT_LIB_PLANNER_LINEREADER_H

#include "weft/Description/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::planner {

/// `name` in quotes, which is no end of a line inside.
std::string quoted(std::string_view name);

/// The shortest text that reads as this number.
std::string shortest(double number);

/// Takes a text apart: a line into words, a word into what is expected of it. What is not as
/// expected becomes an error of the line, of which there is one at most: what follows it in the
/// line is taken to be as it should. Does not own the text.
class LineReader {
public:
  LineReader(std::string_view text, std::string file) : rest(text), file(std::move(file)) {}

  /// Goes on to the next line that has a word; false if there is none. What is left of the line
  /// before is an error.
  bool next();

  /// Whether the line has words left.
  bool hasMore() const { return at < words.size() && !failed; }

  /// The next word, which is in no quotes. `expected` is for an error, as "a number".
  std::string_view word(const std::string &expected);
  /// The next word, in quotes; what they hold.
  std::string name(const std::string &expected);
  double number();
  uint32_t count();
  /// The place in `names` of what the next word calls by its name or by #place; of a line with an
  /// error, nothing. `what` is a name for one of them, as "node".
  std::optional<uint32_t> reference(const std::vector<std::string> &names, const std::string &what);

  /// An error in the last word that was taken.
  void fail(const std::string &message);
  bool hasFailed() const { return failed; }

  desc::Diagnostics errors;
  const std::string &fileName() const { return file; }

private:
  struct Word {
    std::string text;
    int column;
    bool isQuoted = false;
  };

  const Word *take(const std::string &expected);
  void split(std::string_view line);
  size_t splitName(std::string_view line, size_t begin);

  std::string_view rest;
  const std::string file;
  std::vector<Word> words;
  size_t at = 0;
  int line = 0, column = 1;
  bool failed = false;
};

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_LINEREADER_H
