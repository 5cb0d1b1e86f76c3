//===- ModuleText.cpp - limits of MLIR's parser ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/ModuleText.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace weft;
using llvm::StringRef;

namespace {

constexpr int64_t kMostOpen = 256;
/// Most words and signs in a row without one that ends an expression.
constexpr int64_t kMostWords = 1024;
/// Most characters of an alias with all its aliases expanded. An alias of two others of two others
/// is short to write and endless to print.
constexpr int64_t kMostExpanded = 1 << 24;

/// Scans a text once, without string literals and comments.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  std::optional<std::string> scan() {
    while (!text.empty()) {
      step();
      if (open > kMostOpen) {
        return refusal("open brackets", kMostOpen);
      }
      if (words > kMostWords) {
        return refusal("words in an expression", kMostWords);
      }
      if (alias && *alias > kMostExpanded) {
        return refusal("characters in an alias with its aliases written out", kMostExpanded);
      }
    }
    return std::nullopt;
  }

private:
  std::string refusal(StringRef what, int64_t most) const {
    return ("line " + llvm::Twine(line) + ": expected at most " + llvm::Twine(most) + " " + what)
        .str();
  }

  void step() {
    StringRef before = text;
    take();
    if (alias) {
      *alias += int64_t(before.size() - text.size());
    }
  }

  /// Consumes one word or sign.
  void take() {
    char c = text.front();
    if (c == '"') {
      skipString();
    } else if (text.starts_with("//")) {
      text = text.drop_until([](char other) { return other == '\n'; });
    } else if (c == '#' || c == '!') {
      takeAlias();
    } else if (llvm::isAlnum(c)) {
      text = text.drop_while(llvm::isAlnum);
      ++words;
    } else if (text.starts_with("->") || text.starts_with(">=") || text.starts_with("<=")) {
      text = text.drop_front(2);
      ++words;
    } else {
      text = text.drop_front();
      takeSign(c);
    }
  }

  /// Consumes the name of an alias, or an attribute or type of a dialect: a definition if `=`
  /// follows, else a use. Definitions precede uses.
  void takeAlias() {
    StringRef rest = text.drop_front().drop_while(
        [](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); });
    StringRef name = text.drop_back(rest.size());
    text = rest;
    if (text.ltrim().starts_with("=")) {
      alias = &aliases[name];
      openBefore = open;
    } else if (auto used = aliases.find(name); alias && used != aliases.end()) {
      *alias += used->second;
    }
  }

  void takeSign(char c) {
    if (c == '\n') {
      ++line;
      alias = open > openBefore ? alias : nullptr;
    }
    if (StringRef("([{<").contains(c)) {
      ++open;
    } else if (StringRef(")]}>").contains(c)) {
      open -= open > 0;
    }
    words = StringRef(",:=@{}").contains(c) ? 0 : words + StringRef("+-*").contains(c);
  }

  void skipString() {
    words = 0;
    size_t end = 1;
    while (end < text.size() && text[end] != '"' && text[end] != '\n') {
      end += text[end] == '\\' ? 2 : 1;
    }
    text = text.drop_front(std::min(end + 1, text.size()));
  }

  StringRef text;
  int64_t line = 1, open = 0, words = 0;
  /// Expanded lengths of the aliases so far, and of the one being defined, which ends with its line
  /// or with the line of its last bracket.
  llvm::StringMap<int64_t> aliases;
  int64_t *alias = nullptr;
  int64_t openBefore = 0;
};

} // namespace

std::optional<std::string> weft::checkModuleText(StringRef text) {
  if (mlir::isBytecode(llvm::MemoryBufferRef(text, ""))) {
    return "expected a module as text, got bytecode";
  }
  return Scanner(text).scan();
}
