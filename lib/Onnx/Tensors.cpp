//===- Tensors.cpp - reads the tensors of an ONNX file --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include "support/MappedFile.h"
#include "support/Text.h"

#include <charconv>
#include <cstring>
#include <filesystem>

namespace weft::onnx {

using Proto = ::onnx::TensorProto;

std::optional<ElementType> elementTypeOf(int number) {
  switch (number) {
  case Proto::FLOAT:
    return ElementType::F32;
  case Proto::DOUBLE:
    return ElementType::F64;
  case Proto::INT64:
    return ElementType::I64;
  case Proto::INT32:
    return ElementType::I32;
  case Proto::BOOL:
    return ElementType::Bool;
  default:
    return std::nullopt;
  }
}

std::string typeName(int number) {
  return Proto::DataType_IsValid(number)
             ? Proto::DataType_Name(static_cast<Proto::DataType>(number))
             : "number " + std::to_string(number);
}

/// Returns the bytes of `numbers`, each converted to T.
template <typename T, typename Field>
static std::shared_ptr<std::vector<char>> pack(Field numbers) {
  auto bytes = std::make_shared<std::vector<char>>(numbers.size() * sizeof(T));
  for (int i = 0; i < numbers.size(); ++i) {
    T number = static_cast<T>(numbers.Get(i));
    std::memcpy(bytes->data() + static_cast<size_t>(i) * sizeof(T), &number, sizeof(T));
  }
  return bytes;
}

bool TensorReader::read(const Proto &from, Initializer &to, std::string &error) {
  std::optional<ElementType> type = elementTypeOf(from.data_type());
  if (!type) {
    error = "expected elements of type FLOAT, DOUBLE, INT64, INT32 or BOOL, got " +
            typeName(from.data_type());
    return false;
  }
  to.type = *type;
  to.shape.assign(from.dims().begin(), from.dims().end());
  if (!isReasonable(to.shape)) {
    error = "has an impossible shape";
    return false;
  }
  int64_t count = to.elementCount();
  if (!(from.data_location() == Proto::EXTERNAL ? readExternal(from, to, error)
                                                : readBytes(from, to, error))) {
    return false;
  }
  if (static_cast<int64_t>(to.bytes.size()) != count * sizeOf(to.type)) {
    error = "expected " + std::to_string(count) + " elements of " + nameOf(to.type) + ", got " +
            std::to_string(to.bytes.size()) + " bytes";
    return false;
  }
  return true;
}

bool TensorReader::readBytes(const Proto &from, Initializer &to, std::string &) {
  if (from.has_raw_data()) {
    to.bytes = std::span<const char>(from.raw_data().data(), from.raw_data().size());
    return true;
  }
  std::shared_ptr<std::vector<char>> bytes;
  switch (to.type) {
  case ElementType::F32:
    bytes = pack<float>(from.float_data());
    break;
  case ElementType::F64:
    bytes = pack<double>(from.double_data());
    break;
  case ElementType::I64:
    bytes = pack<int64_t>(from.int64_data());
    break;
  case ElementType::I32:
    bytes = pack<int32_t>(from.int32_data());
    break;
  case ElementType::Bool:
    bytes = pack<char>(from.int32_data());
    break;
  }
  to.bytes = *bytes;
  storage.push_back(bytes);
  return true;
}

/// Parses `text` as a number of at least 0.
static std::optional<uint64_t> parseNumber(const std::string &text) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

bool TensorReader::readExternal(const Proto &from, Initializer &to, std::string &error) {
  std::string location;
  std::optional<uint64_t> offset = 0;
  std::optional<uint64_t> length = static_cast<uint64_t>(to.elementCount() * sizeOf(to.type));
  for (const ::onnx::StringStringEntryProto &entry : from.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      offset = parseNumber(entry.value());
    } else if (entry.key() == "length") {
      length = parseNumber(entry.value());
    }
  }
  if (!offset || !length) {
    error = "expected offset and length of the external data as numbers";
    return false;
  }
  std::span<const char> bytes;
  if (!openBeside(location, bytes, error)) {
    return false;
  }
  if (*offset > bytes.size() || *length > bytes.size() - *offset) {
    error = "expected " + std::to_string(*length) + " bytes from byte " + std::to_string(*offset) +
            " of '" + location + "' on, which has " + std::to_string(bytes.size()) + " bytes";
    return false;
  }
  to.bytes = bytes.subspan(*offset, *length);
  return true;
}

bool TensorReader::openBeside(const std::string &location, std::span<const char> &bytes,
                              std::string &error) {
  auto found = files.find(location);
  if (found != files.end()) {
    bytes = found->second;
    return true;
  }
  std::filesystem::path relative(location);
  bool isInside = !location.empty() && relative.is_relative();
  for (const std::filesystem::path &part : relative) {
    isInside &= part != "..";
  }
  if (!isInside) {
    error = "expected external data in a file beside the model, got '" + location + "'";
    return false;
  }
  auto file = std::make_shared<rt::MappedFile>();
  std::string beside = (std::filesystem::path(path).parent_path() / relative).string();
  if (!rt::succeeds(file->open(beside), error)) {
    return false;
  }
  bytes = files[location] = file->bytes();
  storage.push_back(file);
  return true;
}

} // namespace weft::onnx
