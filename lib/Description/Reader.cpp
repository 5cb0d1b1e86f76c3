//===- Reader.cpp - reads text files of protobuf messages -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "Text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::desc::detail {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

namespace {

/// Closes a file descriptor at the end of its scope.
struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
};

/// Collects the parser's messages as diagnostics. Keeps only a handful of errors; more would not
/// help.
class Collector : public google::protobuf::io::ErrorCollector {
public:
  Collector(std::string_view text, const std::string &file, const Descriptor *root,
            Diagnostics &diagnostics)
      : text(text), file(file), root(root), diagnostics(diagnostics) {}

  void AddError(int line, int column, const std::string &message) override {
    constexpr size_t most = 20;
    if (++count <= most) {
      diagnostics.push_back(translate(line, column, message));
    } else if (count == most + 1) {
      diagnostics.push_back({{file, line + 1, column + 1}, "", "", "too many errors, giving up"});
    }
  }

  // The parser is set to continue after unknown fields, to find all of them, and then reports each
  // as a warning.
  void AddWarning(int line, int column, const std::string &message) override {
    AddError(line, column, message);
  }

private:
  Diagnostic translate(int line, int column, const std::string &message) const;
  size_t offsetOf(int line, int column) const;
  Location locationOf(std::string_view word, int line, int column) const;
  std::string fieldBefore(int line, int column) const;

  std::string_view text;
  const std::string &file;
  const Descriptor *root;
  Diagnostics &diagnostics;
  size_t count = 0;
};

/// Returns the text in the n-th pair of double quotes; empty if there are fewer.
std::string_view quoted(std::string_view message, int n) {
  for (size_t at = 0;; --n) {
    size_t open = message.find('"', at);
    size_t end = open == message.npos ? message.npos : message.find('"', open + 1);
    if (end == message.npos) {
      return "";
    }
    if (n == 0) {
      return message.substr(open + 1, end - open - 1);
    }
    at = end + 1;
  }
}

/// Returns the message type of that full name in the tree of messages below `root`, or null.
const Descriptor *findMessage(const Descriptor *root, std::string_view fullName) {
  if (root->full_name() == fullName) {
    return root;
  }
  for (int i = 0; i < root->field_count(); ++i) {
    if (const Descriptor *inner = root->field(i)->message_type()) {
      if (const Descriptor *found = findMessage(inner, fullName)) {
        return found;
      }
    }
  }
  return nullptr;
}

/// Returns the type of the enumeration field `name` in the tree of messages below `root`. In every
/// schema all enumeration fields of one name have one type, as a test checks.
const EnumDescriptor *findEnum(const Descriptor *root, std::string_view name) {
  for (int i = 0; i < root->field_count(); ++i) {
    const FieldDescriptor *field = root->field(i);
    if (field->enum_type() && field->name() == name) {
      return field->enum_type();
    }
    if (field->message_type()) {
      if (const EnumDescriptor *found = findEnum(field->message_type(), name)) {
        return found;
      }
    }
  }
  return nullptr;
}

std::vector<std::string> fieldNames(const Descriptor *type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    names.push_back(type->field(i)->name());
  }
  return names;
}

std::vector<std::string> valueNames(const EnumDescriptor *type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    names.push_back(type->value(i)->name());
  }
  return names;
}

/// Returns true if the text of a description may contain this byte.
bool isTextByte(unsigned char c) { return c >= ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Rewords the parser's other messages: "Expected integer, got: x." becomes "expected integer, got
/// 'x'".
std::string reword(std::string words) {
  if (!words.empty() && words.back() == '.') {
    words.pop_back();
  }
  std::string found;
  auto isOf = [&](std::string_view begin) { return words.starts_with(begin); };
  if (isOf("Non-repeated field")) {
    words = "expected a field at most once, got " + quote(quoted(words, 0)) + " again";
  } else if (isOf("Integer out of range")) {
    words = "expected an integer in the range of the field, got " +
            quote(words.substr(words.find('(') + 1, words.rfind(')') - words.find('(') - 1));
  } else if (isOf("Need space")) {
    words = "expected a blank" + words.substr(10);
  } else if (isOf("Interpreting non ascii")) {
    words = "expected ASCII, except in strings and comments, got a byte of value" +
            words.substr(words.rfind(' '));
  } else if (isOf("Invalid escape sequence")) {
    words = "expected an escape sequence of protobuf's text format in a string";
  } else if (size_t got = words.find(", got: "); got != words.npos) {
    found = ", got " + quote(words.substr(got + 7));
    words.resize(got);
  }
  for (char &c : words) {
    c = c == '"' ? '\'' : c >= ' ' && c <= '~' ? c : '?';
  }
  constexpr size_t longest = 200;
  if (words.size() > longest) {
    words = words.substr(0, longest) + "...";
  }
  words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words + found;
}

} // namespace

/// Returns the offset in the text of the parser's line and column, both counted from 0.
size_t Collector::offsetOf(int line, int column) const {
  size_t at = 0;
  for (int i = 0; i < line; ++i) {
    size_t end = text.find('\n', at);
    if (end == text.npos) {
      return text.size();
    }
    at = end + 1;
  }
  // The parser counts a tab as reaching the next multiple of 8.
  for (int reached = 0; at < text.size() && text[at] != '\n' && reached < column; ++at) {
    reached += text[at] == '\t' ? 8 - reached % 8 : 1;
  }
  return at;
}

/// Returns the last place of `word` before the parser's place, which is behind the word that it
/// reports.
Location Collector::locationOf(std::string_view word, int line, int column) const {
  size_t start = word.empty() ? text.npos : text.substr(0, offsetOf(line, column)).rfind(word);
  if (start == text.npos) {
    return {file, line + 1, column + 1};
  }
  std::string_view before = text.substr(0, start);
  int reached = 0;
  for (char c : before.substr(before.rfind('\n') + 1)) { // npos + 1 is 0.
    reached += c == '\t' ? 8 - reached % 8 : 1;
  }
  return {file, 1 + int(std::count(before.begin(), before.end(), '\n')), 1 + reached};
}

/// Returns the name in "name: " directly before a place.
std::string Collector::fieldBefore(int line, int column) const {
  std::string_view before = text.substr(0, offsetOf(line, column));
  size_t colon = before.find_last_not_of(" \t-[");
  if (colon == before.npos || before[colon] != ':') {
    return "";
  }
  before = before.substr(0, colon);
  auto isName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  auto start = std::find_if_not(before.rbegin(), before.rend(), isName).base();
  std::string name(start, before.end());
  return name.size() <= 64 ? name : "";
}

Diagnostic Collector::translate(int line, int column, const std::string &message) const {
  line = std::max(line, 0);
  column = std::max(column, 0);
  if (message.starts_with("Message type ") && message.find("has no field named") != message.npos) {
    if (const Descriptor *type = findMessage(root, quoted(message, 0))) {
      std::string_view name = quoted(message, 1);
      return {locationOf(name, line, column), "", "",
              "unknown field " + quote(name) + " in " + type->name() +
                  suggestion(name, fieldNames(type), "its fields")};
    }
  }
  if (message.starts_with("Unknown enumeration value")) {
    std::string name(quoted(message, 1));
    if (const EnumDescriptor *type = findEnum(root, name)) {
      std::string_view value = quoted(message, 0);
      return {locationOf(value, line, column), name, "",
              "expected one of " + join(valueNames(type)) + ", got " + quote(value)};
    }
  }
  if (message.starts_with("Field ") || message.starts_with("Non-repeated field ")) {
    return {locationOf(quoted(message, 0), line, column), "", "", reword(message)};
  }
  return {{file, line + 1, column + 1}, fieldBefore(line, column), "", reword(message)};
}

Result<std::string> readTextFile(const std::string &path) {
  auto failure = [&](const std::string &message) {
    return Diagnostics{{{path, 0, 0}, "", "", message}};
  };
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  OpenFile file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (file.descriptor < 0) {
    return failure("cannot be opened: " + std::string(std::strerror(errno)));
  }
  struct stat status;
  if (fstat(file.descriptor, &status) != 0) {
    return failure("cannot be read: " + std::string(std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return failure("expected a regular file");
  }
  if (status.st_size > off_t(maximumTextBytes)) {
    return failure("expected at most " + text(int64_t(maximumTextBytes)) + " bytes of text, got " +
                   text(int64_t(status.st_size)));
  }
  // Reads the file's size and a little more, in case the file grows.
  std::string bytes(std::min(size_t(status.st_size) + 4096, maximumTextBytes + 1), '\0');
  size_t used = 0;
  while (used < bytes.size()) {
    ssize_t got = read(file.descriptor, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return failure("cannot be read: " + std::string(std::strerror(errno)));
    }
    if (got == 0) {
      break;
    }
    used += size_t(got);
    if (used == bytes.size()) {
      bytes.resize(std::min(2 * used, maximumTextBytes + 1));
    }
  }
  bytes.resize(used); // A file that grew while it was read is caught by parseText.
  return bytes;
}

/// Adds a diagnostic if `text` cannot be a description, before it is parsed.
static bool isPlausible(std::string_view text, const std::string &file, Diagnostics &diagnostics) {
  if (text.size() > maximumTextBytes) {
    diagnostics.push_back({{file, 0, 0},
                           "",
                           "",
                           "expected at most " + detail::text(int64_t(maximumTextBytes)) +
                               " bytes of text, got " + detail::text(int64_t(text.size()))});
    return false;
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    diagnostics.push_back({{file, 0, 0}, "", "", "is empty"});
    return false;
  }
  int line = 1;
  int column = 1;
  for (char c : text) {
    if (!isTextByte(static_cast<unsigned char>(c))) {
      diagnostics.push_back({{file, line, column},
                             "",
                             "",
                             "expected text, got a byte of value " +
                                 detail::text(int64_t(static_cast<unsigned char>(c)))});
      return false;
    }
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  return true;
}

bool parseText(std::string_view text, const std::string &file, Message &message,
               TextFormat::ParseInfoTree &tree, Diagnostics &diagnostics) {
  if (!isPlausible(text, file, diagnostics)) {
    return false;
  }
  size_t before = diagnostics.size();
  Collector collector(text, file, message.GetDescriptor(), diagnostics);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  parser.AllowUnknownField(true);
  // Messages nest three deep. The parser recurses, so the limit protects its stack from deeper
  // files.
  parser.SetRecursionLimit(32);
  google::protobuf::io::ArrayInputStream stream(text.data(), int(text.size()));
  bool parsed = parser.Parse(&stream, &message);
  if (!parsed && diagnostics.size() == before) {
    diagnostics.push_back({{file, 0, 0}, "", "", "cannot be parsed"});
  }
  return diagnostics.size() == before;
}

void sortByLine(Diagnostics &diagnostics) {
  // A multimap keeps equal keys in the order of their insertion.
  std::multimap<int, Diagnostic> sorted;
  for (Diagnostic &diagnostic : diagnostics) {
    sorted.emplace(diagnostic.location.line, std::move(diagnostic));
  }
  diagnostics.clear();
  for (auto &[line, diagnostic] : sorted) {
    diagnostics.push_back(std::move(diagnostic));
  }
}

} // namespace weft::desc::detail
