//===- Json.cpp - reads untrusted JSON ------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <limits>

using namespace weft;
using namespace weft::hf;
using namespace llvm;

namespace {

/// Config files are three levels deep. The parser recurses for each level.
constexpr int kDeepest = 32;

/// Returns true if brackets nest deeper than `kDeepest`; those in strings do not count.
bool isTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) {
        return true;
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// Converts the message of LLVM's parser, "[line:column, byte=n]: Message", to a diagnostic.
desc::Diagnostic syntaxError(Error error, const std::string &file) {
  std::string text = toString(std::move(error));
  desc::Diagnostic diagnostic{{file, 0, 0}, "", "", text};
  SmallVector<StringRef> parts;
  if (Regex("^\\[([0-9]+):([0-9]+), byte=[0-9]+\\]: (.*)$").match(text, &parts)) {
    // The parser counts columns from 0, and its place is before the wrong character.
    int line = 0, column = 0;
    if (!parts[1].getAsInteger(10, line) && !parts[2].getAsInteger(10, column)) {
      diagnostic.location = {file, line, std::max(column, 1)};
    }
    diagnostic.message = parts[3].str();
  }
  if (!diagnostic.message.empty()) {
    diagnostic.message[0] = toLower(diagnostic.message[0]);
  }
  return diagnostic;
}

} // namespace

std::string weft::hf::readable(StringRef text) {
  constexpr size_t longest = 100;
  std::string shown = text.substr(0, longest).str();
  for (char &c : shown) {
    c = isPrint(c) ? c : '?';
  }
  return text.size() > longest ? shown + "..." : shown;
}

std::string weft::hf::shown(const json::Value &value) {
  std::string text;
  raw_string_ostream(text) << value;
  return readable(text);
}

desc::Result<json::Object> weft::hf::parseObject(StringRef text, const std::string &file) {
  if (isTooDeep(text)) {
    return desc::Diagnostics{
        {{file, 0, 0},
         "",
         "",
         "expected at most " + std::to_string(kDeepest) + " levels of braces and brackets"}};
  }
  Expected<json::Value> value = json::parse(text);
  if (!value) {
    return desc::Diagnostics{syntaxError(value.takeError(), file)};
  }
  if (json::Object *object = value->getAsObject()) {
    return std::move(*object);
  }
  return desc::Diagnostics{{{file, 0, 0}, "", "", "expected an object, got " + shown(*value)}};
}

void Keys::refuse(StringRef key, const Twine &message) {
  diagnostics.push_back({{file, 0, 0}, path + readable(key), "", message.str()});
}

const json::Value *Keys::find(StringRef key) {
  known.push_back(key);
  const json::Value *value = object.get(key);
  return value && value->kind() != json::Value::Null ? value : nullptr;
}

const json::Value *Keys::findRequired(StringRef key, bool isOptional) {
  const json::Value *value = find(key);
  if (!value && !isOptional) {
    refuse(key, "missing");
  }
  return value;
}

void Keys::refuseType(StringRef key, StringRef expected, const json::Value &value) {
  refuse(key, "expected " + expected + ", got " + shown(value));
}

bool Keys::has(StringRef key) const { return object.get(key) && !isNull(key); }

bool Keys::isNull(StringRef key) const {
  const json::Value *value = object.get(key);
  return value && value->kind() == json::Value::Null;
}

int64_t Keys::count(StringRef key, std::optional<int64_t> unless) { return number(key, 1, unless); }

int64_t Keys::index(StringRef key, int64_t unless) { return number(key, 0, unless); }

int64_t Keys::number(StringRef key, int64_t least, std::optional<int64_t> unless) {
  const json::Value *value = findRequired(key, unless.has_value());
  if (!value) {
    return unless.value_or(1);
  }
  std::optional<int64_t> number = value->getAsInteger();
  if (number && *number >= least && *number <= std::numeric_limits<int32_t>::max()) {
    return *number;
  }
  refuseType(key, "a number from " + std::to_string(least) + " to 2147483647", *value);
  return unless.value_or(1);
}

double Keys::real(StringRef key, std::optional<double> unless) {
  const json::Value *value = findRequired(key, unless.has_value());
  if (!value) {
    return unless.value_or(1);
  }
  if (std::optional<double> number = value->getAsNumber()) {
    return *number;
  }
  refuseType(key, "a number", *value);
  return unless.value_or(1);
}

bool Keys::flag(StringRef key, bool unless) {
  const json::Value *value = find(key);
  if (!value) {
    return unless;
  }
  if (std::optional<bool> flag = value->getAsBoolean()) {
    return *flag;
  }
  refuseType(key, "true or false", *value);
  return unless;
}

std::string Keys::word(StringRef key, std::optional<StringRef> unless) {
  const json::Value *value = findRequired(key, unless.has_value());
  if (!value) {
    return unless.value_or("").str();
  }
  if (std::optional<StringRef> word = value->getAsString()) {
    return word->str();
  }
  refuseType(key, "a text", *value);
  return unless.value_or("").str();
}

const json::Object *Keys::nested(StringRef key) {
  const json::Value *value = find(key);
  if (value && !value->getAsObject()) {
    refuseType(key, "an object", *value);
  }
  return value ? value->getAsObject() : nullptr;
}

const json::Array *Keys::array(StringRef key) {
  const json::Value *value = find(key);
  if (value && !value->getAsArray()) {
    refuseType(key, "an array", *value);
  }
  return value ? value->getAsArray() : nullptr;
}

void Keys::passOver(ArrayRef<StringLiteral> keys) {
  known.insert(known.end(), keys.begin(), keys.end());
}

void Keys::expectFlag(StringRef key, bool wanted, StringRef reason) {
  if (flag(key, wanted) != wanted) {
    refuse(key, "expected " + Twine(wanted ? "true" : "false") + ", got " +
                    (wanted ? "false" : "true") + ": " + reason);
  }
}

void Keys::refuseOthers() {
  std::vector<StringRef> others;
  for (const auto &[key, value] : object) {
    if (!is_contained(known, StringRef(key))) {
      others.push_back(key);
    }
  }
  // An object's keys have no order.
  llvm::sort(others);
  for (StringRef key : others) {
    refuse(key, "unknown key, which may change what the model computes");
  }
}
