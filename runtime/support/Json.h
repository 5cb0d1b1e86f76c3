//===- Json.h - reading JSON that may be damaged --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_JSON_H
#define WEFT_RT_SUPPORT_JSON_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// Parses `text`, which must be one JSON object without duplicate keys at any depth. Safe on any
/// bytes: otherwise returns false and an error that names the text by `what`, as "the header".
bool parseObject(std::span<const char> text, const char *what, nlohmann::json &object,
                 std::string &error);

/// Read whole numbers from 0 to 2^63 - 1; return false on any other value.
bool readCount(const nlohmann::json &value, int64_t &number);
bool readCounts(const nlohmann::json &value, std::vector<int64_t> &numbers);

/// Returns `value` as text; replaces invalid UTF-8.
std::string toJsonText(const nlohmann::json &value);

/// Reads the fields of one JSON object. Each method returns false, with the fault in `error`, if
/// the field is missing or has another type.
class JsonFields {
public:
  /// `what` names the object in errors, as "tensor 'x'". `object` and `error` must outlive this
  /// reader.
  JsonFields(const nlohmann::json &object, std::string what, std::string &error);

  bool text(const char *name, std::string &value);
  bool count(const char *name, int64_t &value);
  bool counts(const char *name, std::vector<int64_t> &values);
  /// Reads a whole number from 0 to 2^64 - 1.
  bool bits(const char *name, uint64_t &value);
  /// Return the array or the object, or null after an error.
  const nlohmann::json *array(const char *name);
  const nlohmann::json *object(const char *name);
  bool has(const char *name) const { return find(name) != nullptr; }
  /// Returns true if the field exists and is null.
  bool isNull(const char *name) const;

private:
  const nlohmann::json *find(const char *name) const;
  bool expected(const char *kind, const char *name);

  const nlohmann::json &fields;
  const std::string what;
  std::string &error;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_JSON_H
