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

/// Returns `name` in quotes, escaped so that it is a single line.
std::string quoted(std::string_view name);

/// Returns the shortest text that parses as exactly this number.
std::string shortest(double number);

/// Parses a text: splits lines into words, and converts words. An unexpected word is an error. A
/// line has at most one error: after it, functions return default values until the next line. Does
/// not own the text.
class LineReader {
public:
  LineReader(std::string_view text, std::string file) : rest(text), file(std::move(file)) {}

  /// Goes to the next line with a word; returns false if there is none. Words that are left of the
  /// line before are an error.
  bool next();

  /// Returns true if the line has words left, and no error.
  bool hasMore() const { return at < words.size() && !failed; }

  /// Returns the next word, which must have no quotes. `expected` is for errors, as "a number".
  std::string_view word(const std::string &expected);
  /// Returns the contents of the next word, which must be in quotes.
  std::string name(const std::string &expected);
  double number();
  uint32_t count();
  /// Returns the index in `names` that the next word refers to, by a name in quotes or by #index;
  /// nothing in a line with an error. `what` is the kind of the names for errors, as "node".
  std::optional<uint32_t> reference(const std::vector<std::string> &names, const std::string &what);

  /// Adds an error at the last word that was taken, unless the line has one.
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
