//===- Fields.cpp - checks the fields of one message ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fields.h"

#include "Text.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>

namespace weft::desc::detail {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

const FieldDescriptor *Fields::find(const std::string &name) const {
  const FieldDescriptor *field = message.GetDescriptor()->FindFieldByName(name);
  assert(field && "rules name fields that exist");
  return field;
}

Fields Fields::nested(const std::string &name, int index) const {
  const FieldDescriptor *field = find(name);
  const auto *reflection = message.GetReflection();
  const Message &inner = index < 0 ? reflection->GetMessage(message, field)
                                   : reflection->GetRepeatedMessage(message, field, index);
  const Tree *innerTree = tree ? tree->GetTreeForNested(field, index) : nullptr;
  Fields fields(inner, innerTree, here.file, diagnostics);
  fields.here = locationOf(name, index);
  fields.path = path + name + (index < 0 ? "." : "[" + std::to_string(index) + "].");
  return fields;
}

bool Fields::has(const std::string &name) const {
  const FieldDescriptor *field = find(name);
  const auto *reflection = message.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

Location Fields::locationOf(const std::string &name, int index) const {
  const FieldDescriptor *field = find(name);
  if (!tree || !has(name)) {
    return here;
  }
  // For a list in brackets, the parser keeps only the place of the first element.
  TextFormat::ParseLocation place = tree->GetLocation(field, field->is_repeated() ? 0 : -1);
  for (int i = index; i > 0; --i) {
    if (TextFormat::ParseLocation own = tree->GetLocation(field, i); own.line >= 0) {
      place = own;
      break;
    }
  }
  return place.line < 0 ? here : Location{here.file, place.line + 1, place.column + 1};
}

void Fields::error(const std::string &name, const char *rule, const std::string &text, int index) {
  std::string field = path + name + (index < 0 ? "" : "[" + std::to_string(index) + "]");
  diagnostics.push_back({locationOf(name, index), std::move(field), rule, text});
}

bool Fields::checkVersion(const char *rule) {
  if (!has("version")) {
    error("version", rule, "missing required field, expected 'version: 1'");
    return false;
  }
  return integer("version", rule, 1, 1);
}

void Fields::required(const char *rule, std::initializer_list<const char *> names) {
  for (const char *name : names) {
    if (!has(name)) {
      error(name, rule, "missing required field");
    }
  }
}

void Fields::refused(const char *rule, std::initializer_list<const char *> names,
                     const std::string &reason) {
  for (const char *name : names) {
    if (has(name)) {
      error(name, rule, "has no effect " + reason);
    }
  }
}

bool Fields::integer(const std::string &name, const char *rule, int64_t low, int64_t high) {
  if (!has(name)) {
    return false;
  }
  const FieldDescriptor *field = find(name);
  const auto *reflection = message.GetReflection();
  int64_t value = field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
                      ? reflection->GetInt32(message, field)
                      : reflection->GetInt64(message, field);
  if (value >= low && value <= high) {
    return true;
  }
  std::string range = low == high ? text(low) : "a number from " + text(low) + " to " + text(high);
  error(name, rule, "expected " + range + ", got " + text(value));
  return false;
}

bool Fields::real(const std::string &name, const char *rule, Bounds bounds) {
  if (!has(name)) {
    return false;
  }
  double value = message.GetReflection()->GetDouble(message, find(name));
  bool highEnough = bounds.above ? value > bounds.low : value >= bounds.low;
  bool lowEnough = bounds.below ? value < bounds.high : value <= bounds.high;
  if (std::isfinite(value) && highEnough && lowEnough) {
    return true;
  }
  error(name, rule,
        "expected a number " + std::string(bounds.above ? "above " : "from ") + text(bounds.low) +
            (bounds.below ? " to below " : " to ") + text(bounds.high) + ", got " + text(value));
  return false;
}

bool Fields::label(const std::string &name, const char *rule, size_t longest,
                   std::string_view others) {
  if (!has(name)) {
    return false;
  }
  std::string value = message.GetReflection()->GetString(message, find(name));
  auto isAllowed = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  };
  if (!value.empty() && value.size() <= longest &&
      std::all_of(value.begin(), value.end(), isAllowed)) {
    return true;
  }
  error(name, rule,
        "expected 1 to " + std::to_string(longest) + " letters, digits or any of '" +
            std::string(others) + "', got " + quote(value));
  return false;
}

} // namespace weft::desc::detail
