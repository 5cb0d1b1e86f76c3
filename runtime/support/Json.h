//===- Json.h - reading JSON that may be damaged --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_JSON_H
#define WEFT_RT_SUPPORT_JSON_H

#include "weft-rt/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// Parses `text`, which must be one JSON object without duplicate keys at any depth. Safe on any
/// bytes: otherwise fails with an error that names the text by `what`, as "the header".
Result<nlohmann::json> parseObject(std::span<const char> text, const char *what);

/// Read whole numbers from 0 to 2^63 - 1; return nothing for any other value.
std::optional<int64_t> readCount(const nlohmann::json &value);
std::optional<std::vector<int64_t>> readCounts(const nlohmann::json &value);

/// Returns `value` as text; replaces invalid UTF-8.
std::string toJsonText(const nlohmann::json &value);

/// Reads the fields of one JSON object. It is a fault if a field is missing or has another type.
/// Readers check `status` once they have read a few fields.
class JsonFields {
public:
  /// `what` names the object in errors, as "tensor 'x'". `object` must outlive this reader.
  JsonFields(const nlohmann::json &object, std::string what);

  /// Returns the first fault of the fields read so far, if there was any.
  const Status &status() const { return firstFault; }

  /// Set the value; leave it as it is after a fault.
  void text(const char *name, std::string &value);
  void count(const char *name, int64_t &value);
  void counts(const char *name, std::vector<int64_t> &values);
  /// Reads a whole number from 0 to 2^64 - 1.
  void bits(const char *name, uint64_t &value);
  /// Return the list or the object; an empty one after a fault.
  const nlohmann::json &array(const char *name);
  const nlohmann::json &object(const char *name);
  bool has(const char *name) const { return find(name) != nullptr; }
  /// Returns true if the field exists and is null.
  bool isNull(const char *name) const;

private:
  const nlohmann::json *find(const char *name) const;
  /// Keeps the fault of a field, unless an earlier one has a fault.
  void lacks(const char *kind, const char *name);

  const nlohmann::json &fields;
  const std::string what;
  Status firstFault;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_JSON_H
