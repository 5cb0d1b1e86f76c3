//===- Json.cpp - reading JSON that may be damaged --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Json.h"

#include "support/Text.h"

#include <limits>
#include <set>

using namespace weft::rt;
using nlohmann::json;

Result<json> weft::rt::parseObject(std::span<const char> text, const char *what) {
  // The names seen so far in each open object, by depth.
  std::vector<std::set<std::string>> names;
  std::string repeated;
  auto watch = [&](int depth, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start) {
      names.resize(size_t(depth) + 1);
      names.emplace_back();
    } else if (event == json::parse_event_t::key &&
               !names[size_t(depth)].insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  json object = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) {
    return makeError(what, " is not a JSON object");
  }
  if (!repeated.empty()) {
    return makeError(what, " has '", repeated, "' twice");
  }
  return object;
}

std::optional<int64_t> weft::rt::readCount(const json &value) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return int64_t(value.get<uint64_t>());
}

std::optional<std::vector<int64_t>> weft::rt::readCounts(const json &value) {
  if (!value.is_array()) {
    return std::nullopt;
  }
  std::vector<int64_t> numbers;
  for (const json &element : value) {
    std::optional<int64_t> number = readCount(element);
    if (!number) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::string weft::rt::toJsonText(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

JsonFields::JsonFields(const json &object, std::string what)
    : fields(object), what(std::move(what)) {}

const json *JsonFields::find(const char *name) const {
  auto found = fields.is_object() ? fields.find(name) : fields.end();
  return found == fields.end() ? nullptr : &*found;
}

bool JsonFields::isNull(const char *name) const {
  const json *field = find(name);
  return field && field->is_null();
}

void JsonFields::lacks(const char *kind, const char *name) {
  if (firstFault) {
    firstFault = makeError(what, " lacks ", kind, " '", name, "'");
  }
}

void JsonFields::text(const char *name, std::string &value) {
  const json *field = find(name);
  if (!field || !field->is_string()) {
    return lacks("the text", name);
  }
  value = field->get<std::string>();
}

void JsonFields::count(const char *name, int64_t &value) {
  const json *field = find(name);
  std::optional<int64_t> number = field ? readCount(*field) : std::nullopt;
  if (!number) {
    return lacks("the whole number", name);
  }
  value = *number;
}

void JsonFields::counts(const char *name, std::vector<int64_t> &values) {
  const json *field = find(name);
  std::optional<std::vector<int64_t>> numbers = field ? readCounts(*field) : std::nullopt;
  if (!numbers) {
    return lacks("the list of whole numbers", name);
  }
  values = std::move(*numbers);
}

void JsonFields::bits(const char *name, uint64_t &value) {
  const json *field = find(name);
  if (!field || !field->is_number_unsigned()) {
    return lacks("the whole number", name);
  }
  value = field->get<uint64_t>();
}

const json &JsonFields::array(const char *name) {
  static const json none = json::array();
  const json *field = find(name);
  if (!field || !field->is_array()) {
    lacks("the list", name);
    return none;
  }
  return *field;
}

const json &JsonFields::object(const char *name) {
  static const json none = json::object();
  const json *field = find(name);
  if (!field || !field->is_object()) {
    lacks("the object", name);
    return none;
  }
  return *field;
}
