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

bool weft::rt::parseObject(std::span<const char> text, const char *what, json &object,
                           std::string &error) {
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
  object = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) {
    return fail(error, what, " is not a JSON object");
  }
  if (!repeated.empty()) {
    return fail(error, what, " has '", repeated, "' twice");
  }
  return true;
}

bool weft::rt::readCount(const json &value, int64_t &number) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max())) {
    return false;
  }
  number = int64_t(value.get<uint64_t>());
  return true;
}

bool weft::rt::readCounts(const json &value, std::vector<int64_t> &numbers) {
  if (!value.is_array()) {
    return false;
  }
  numbers.resize(value.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!readCount(value[i], numbers[i])) {
      return false;
    }
  }
  return true;
}

std::string weft::rt::toJsonText(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

JsonFields::JsonFields(const json &object, std::string what, std::string &error)
    : fields(object), what(std::move(what)), error(error) {}

const json *JsonFields::find(const char *name) const {
  auto found = fields.is_object() ? fields.find(name) : fields.end();
  return found == fields.end() ? nullptr : &*found;
}

bool JsonFields::expected(const char *kind, const char *name) {
  return fail(error, what, " lacks ", kind, " '", name, "'");
}

bool JsonFields::isNull(const char *name) const {
  const json *field = find(name);
  return field && field->is_null();
}

bool JsonFields::text(const char *name, std::string &value) {
  const json *field = find(name);
  if (!field || !field->is_string()) {
    return expected("the text", name);
  }
  value = field->get<std::string>();
  return true;
}

bool JsonFields::count(const char *name, int64_t &value) {
  const json *field = find(name);
  return (field && readCount(*field, value)) || expected("the whole number", name);
}

bool JsonFields::counts(const char *name, std::vector<int64_t> &values) {
  const json *field = find(name);
  return (field && readCounts(*field, values)) || expected("the list of whole numbers", name);
}

bool JsonFields::bits(const char *name, uint64_t &value) {
  const json *field = find(name);
  if (!field || !field->is_number_unsigned()) {
    return expected("the whole number", name);
  }
  value = field->get<uint64_t>();
  return true;
}

const json *JsonFields::array(const char *name) {
  const json *field = find(name);
  if (!field || !field->is_array()) {
    expected("the list", name);
    return nullptr;
  }
  return field;
}

const json *JsonFields::object(const char *name) {
  const json *field = find(name);
  if (!field || !field->is_object()) {
    expected("the object", name);
    return nullptr;
  }
  return field;
}
