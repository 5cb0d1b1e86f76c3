//===- LineReader.cpp - lines of words, names and numbers -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LineReader.h"

#include <algorithm>
#include <charconv>

namespace weft::planner {

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (char letter : name) {
    if (letter == '\n') {
      text += "\\n";
      continue;
    }
    text += letter == '"' || letter == '\\' ? "\\" : "";
    text += letter;
  }
  return text + '"';
}

std::string shortest(double number) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), number);
  return std::string(buffer, end);
}

bool LineReader::next() {
  if (hasMore()) {
    const Word &left = words[at++];
    column = left.column;
    fail("expected the end of the line, got '" + left.text + "'");
  }
  for (words.clear(); words.empty() && !rest.empty();) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line;
    at = 0;
    failed = false;
    split(text);
    if (failed) {
      words.clear(); // Ignores the rest of a line that cannot be split.
    }
  }
  return !words.empty();
}

void LineReader::split(std::string_view text) {
  const std::string_view spaces = " \t\r";
  for (size_t begin = 0; begin < text.size() && !failed;) {
    if (spaces.find(text[begin]) != spaces.npos) {
      ++begin;
    } else if (text[begin] == '"') {
      begin = splitName(text, begin);
    } else if (text.substr(begin, 2) == "#" || text.substr(begin, 2) == "# ") {
      return;
    } else {
      size_t end = std::min(text.find_first_of(" \t\r\"", begin), text.size());
      words.push_back({std::string(text.substr(begin, end - begin)), int(begin) + 1});
      begin = end;
    }
  }
}

/// Returns the position after the name that begins at `begin`.
size_t LineReader::splitName(std::string_view text, size_t begin) {
  Word name{"", int(begin) + 1, true};
  size_t place = begin + 1;
  for (; place < text.size() && text[place] != '"'; ++place) {
    if (text[place] != '\\') {
      name.text += text[place];
    } else if (++place < text.size() && std::string_view("\"\\n").find(text[place]) < 3) {
      name.text += text[place] == 'n' ? '\n' : text[place];
    } else {
      column = int(place);
      fail("expected \\\", \\\\ or \\n in a name");
      return text.size();
    }
  }
  if (place >= text.size()) {
    column = name.column;
    fail("expected a '\"' at the end of the name");
    return text.size();
  }
  words.push_back(std::move(name));
  return place + 1;
}

void LineReader::fail(const std::string &message) {
  if (!failed) {
    errors.push_back({{file, line, column}, "", "", message});
    failed = true;
  }
}

const LineReader::Word *LineReader::take(const std::string &expected) {
  if (failed) {
    return nullptr;
  }
  if (at == words.size()) {
    column = words.empty() ? 1 : words.back().column;
    fail("expected " + expected + " at the end of the line");
    return nullptr;
  }
  column = words[at].column;
  return &words[at++];
}

std::string_view LineReader::word(const std::string &expected) {
  const Word *word = take(expected);
  if (word && word->isQuoted) {
    fail("expected " + expected + ", got " + quoted(word->text));
  }
  return word ? word->text : std::string_view();
}

std::string LineReader::name(const std::string &expected) {
  const Word *word = take(expected + " in quotes");
  if (word && !word->isQuoted) {
    fail("expected " + expected + " in quotes, got '" + word->text + "'");
  }
  return word ? word->text : "";
}

template <typename Number> static bool parse(std::string_view text, Number &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

double LineReader::number() {
  double number = 0;
  std::string_view text = word("a number");
  if (!failed && !(parse(text, number) && number >= 0)) {
    fail("expected a number of at least 0 or 'inf', got '" + std::string(text) + "'");
  }
  return number;
}

uint32_t LineReader::count() {
  uint32_t number = 0;
  std::string_view text = word("a whole number");
  if (!failed && !parse(text, number)) {
    fail("expected a whole number below 4294967296, got '" + std::string(text) + "'");
  }
  return number;
}

std::optional<uint32_t> LineReader::reference(const std::vector<std::string> &names,
                                              const std::string &what) {
  const Word *word = take("a " + what);
  if (!word) {
    return std::nullopt;
  }
  if (!word->isQuoted) {
    uint32_t number = 0;
    if (word->text[0] != '#' || !parse(std::string_view(word->text).substr(1), number)) {
      fail("expected the name of a " + what + " in quotes, or its number as in #0, got '" +
           word->text + "'");
    } else if (number >= names.size()) {
      fail("expected one of " + std::to_string(names.size()) + " " + what + "s, got " + word->text);
    }
    return failed ? std::nullopt : std::optional(number);
  }
  auto found = std::find(names.begin(), names.end(), word->text);
  if (found == names.end()) {
    fail("there is no " + what + " " + quoted(word->text) + " above");
  } else if (std::find(found + 1, names.end(), word->text) != names.end()) {
    fail("there are several " + what + "s " + quoted(word->text) + ", expected a number as in #" +
         std::to_string(found - names.begin()));
  }
  return failed ? std::nullopt : std::optional(uint32_t(found - names.begin()));
}

} // namespace weft::planner
