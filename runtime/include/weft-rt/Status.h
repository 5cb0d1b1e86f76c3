//===- Status.h - success or an error, and a value or an error ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of the runtime that may fail returns a Status, or a Result of its value:
//
//   Status open(const std::string &path);
//   Result<Manifest> readManifest(std::span<const char> text);
//
//   if (Status status = file.open(path); !status) {
//     return status.error();
//   }
//   Result<Manifest> manifest = readManifest(file.bytes());
//   if (!manifest) {
//     return manifest.error();
//   }
//
// `makeError` of support/Text.h makes the error: `return makeError("cannot open '", path, "'");`.
// Success allocates nothing. Nothing here throws.
//
// All types are plain values. Threads may share one as long as none writes it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_STATUS_H
#define WEFT_RT_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace weft::rt {

/// Why something failed.
struct Error {
  /// Complete for the user; lower case, no final period.
  std::string message;
};

/// Success, or an error.
class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  Status(Error error) : failed(std::move(error)) {}

  /// Returns true on success.
  explicit operator bool() const { return !failed; }

  /// REQUIRES: this is no success.
  const Error &error() const {
    assert(failed && "a success has no error");
    return *failed;
  }

private:
  std::optional<Error> failed;
};

/// A value of type T, or an error.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Error error) : failed(std::move(error)) {}

  /// Returns true if there is a value.
  explicit operator bool() const { return value.has_value(); }

  /// REQUIRES: there is a value.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  /// REQUIRES: there is no value.
  const Error &error() const {
    assert(!value && "a value has no error");
    return failed;
  }

private:
  std::optional<T> value;
  Error failed;
};

} // namespace weft::rt

#endif // WEFT_RT_STATUS_H
