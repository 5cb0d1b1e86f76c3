//===- Diagnostic.h - errors in descriptions, with their places -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that read a description return a Result: either the value, or the list of all errors in
// the description. Nothing here throws, prints or exits.
//
// All types are plain values. Threads may share one as long as none writes it.
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

/// A place in a description. Line and column count from 1; 0 means that one is not known
/// (a field that is missing has no place). `file` is a path as the user gave it, or "--pin".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One error.
struct Diagnostic {
  Location location;
  /// The path of the wrong field in the message ("device.memory_bytes", "links[1].scope"); empty if
  /// the error concerns the whole text.
  std::string field;
  /// The number of the violated rule in docs/Descriptions.md ("model_r4"); empty for syntax errors
  /// and for files that cannot be read.
  std::string rule;
  /// The expected and the found value; lower case, no final period.
  std::string message;

  /// Returns "file:line:column: field: message", without the parts that are not known.
  std::string str() const;
};

using Diagnostics = std::vector<Diagnostic>;

/// Returns one line for each diagnostic, the last one ended as well.
std::string str(const Diagnostics &diagnostics);

/// Either a value of type T or at least one diagnostic.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Diagnostics diagnostics) : errors(std::move(diagnostics)) {
    assert(!errors.empty() && "a failure must say why");
  }

  /// Returns true if there is a value.
  explicit operator bool() const { return value.has_value(); }

  /// REQUIRES: there is a value.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  /// Empty if and only if there is a value.
  const Diagnostics &diagnostics() const { return errors; }

private:
  std::optional<T> value;
  Diagnostics errors;
};

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_DIAGNOSTIC_H
