//===- ModuleText.cpp - what MLIR's parser must not see -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/ModuleText.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace weft;
using llvm::StringRef;

namespace {

constexpr int64_t kMostOpen = 256;
/// Words and signs that may follow each other with nothing between them that ends an expression.
constexpr int64_t kMostWords = 1024;

/// Walks over a text once, string literals and comments left out.
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
    }
    return std::nullopt;
  }

private:
  std::string refusal(StringRef what, int64_t most) const {
    return ("line " + llvm::Twine(line) + ": expected at most " + llvm::Twine(most) + " " + what)
        .str();
  }

  void step() {
    char c = text.front();
    if (c == '"') {
      skipString();
    } else if (text.starts_with("//")) {
      text = text.drop_until([](char other) { return other == '\n'; });
    } else if (llvm::isAlnum(c)) {
      text = text.drop_while(llvm::isAlnum);
      ++words;
    } else if (text.starts_with("->") || text.starts_with(">=") || text.starts_with("<=")) {
      text = text.drop_front(2);
      ++words;
    } else {
      text = text.drop_front();
      take(c);
    }
  }

  void take(char c) {
    line += c == '\n';
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
};

} // namespace

std::optional<std::string> weft::checkModuleText(StringRef text) {
  if (mlir::isBytecode(llvm::MemoryBufferRef(text, ""))) {
    return "expected a module as text, got bytecode";
  }
  return Scanner(text).scan();
}
