//===- Diagnostic.h - what is wrong with a description, and where ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that reads a description answers with a Result: either the value,
// or the list of all that is wrong with it. Nothing here throws, prints or exits.
//
// All types are plain values: copy them freely; no two threads may write one.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_DIAGNOSTIC_H
#define WEFT_DESCRIPTION_DIAGNOSTIC_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::desc {

/// A place in a description. Line and column count from 1; 0 means that only the file is known
/// (a field that is missing has no place). `file` is a path as the user gave it, or "--pin".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One thing that is wrong.
struct Diagnostic {
  Location location;
  /// The field at fault by its path in the message ("device.memory_bytes", "links[1].scope");
  /// empty where the whole text is at fault.
  std::string field;
  /// The number of the violated rule in docs/Descriptions.md ("model_r4"); empty for syntax errors
  /// and for files that cannot be read.
  std::string rule;
  /// What was expected and what was found; lower case, no final period.
  std::string message;

  /// "file:line:column: field: message", leaving out what is not known.
  std::string str() const;
};

using Diagnostics = std::vector<Diagnostic>;

/// One diagnostic per line, each line ended.
std::string str(const Diagnostics &diagnostics);

/// A value of type T, or at least one diagnostic that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Diagnostics diagnostics) : errors(std::move(diagnostics)) {
    assert(!errors.empty() && "a failure must say why");
  }

  /// True where there is a value.
  explicit operator bool() const { return value.has_value(); }

  /// REQUIRES: there is a value.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  /// Empty exactly where there is a value.
  const Diagnostics &diagnostics() const { return errors; }

private:
  std::optional<T> value;
  Diagnostics errors;
};

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_DIAGNOSTIC_H
