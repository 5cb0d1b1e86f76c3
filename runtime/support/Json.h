//===- Json.h - reading JSON that may be damaged ----------------------------===//
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

/// Parses `text`, which must be one object, and no name may stand twice in any object. Fails
/// safely on any bytes, with an error about `what`: "the header".
bool parseObject(std::span<const char> text, const char *what, nlohmann::json &object,
                 std::string &error);

/// Whole numbers from 0 to the largest of 63 bits; false on anything else.
bool readCount(const nlohmann::json &value, int64_t &number);
bool readCounts(const nlohmann::json &value, std::vector<int64_t> &numbers);

/// As text. What is no valid UTF-8 in it is replaced.
std::string toJsonText(const nlohmann::json &value);

/// The fields of one object. Each method gives false after putting into `error` what is missing.
class JsonFields {
public:
  /// `what` names the object in errors: "tensor 'x'". All must outlive this.
  JsonFields(const nlohmann::json &object, std::string what, std::string &error);

  bool text(const char *name, std::string &value);
  bool count(const char *name, int64_t &value);
  bool counts(const char *name, std::vector<int64_t> &values);
  /// A whole number of 64 bits, 0 or more.
  bool bits(const char *name, uint64_t &value);
  /// The elements of an array, or null after an error.
  const nlohmann::json *array(const char *name);
  const nlohmann::json *object(const char *name);
  bool has(const char *name) const { return find(name) != nullptr; }
  /// Whether the field is there, as null.
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
