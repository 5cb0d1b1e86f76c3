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

rt::Result<Initializer> TensorReader::read(const Proto &from) {
  std::optional<ElementType> type = elementTypeOf(from.data_type());
  if (!type) {
    return rt::makeError("expected elements of type FLOAT, DOUBLE, INT64, INT32 or BOOL, got ",
                         typeName(from.data_type()));
  }
  Initializer to;
  to.name = from.name();
  to.type = *type;
  to.shape.assign(from.dims().begin(), from.dims().end());
  if (!isReasonable(to.shape)) {
    return rt::makeError("has an impossible shape");
  }
  int64_t count = to.elementCount();
  if (from.data_location() != Proto::EXTERNAL) {
    readBytes(from, to);
  } else if (rt::Status status = readExternal(from, to); !status) {
    return status.error();
  }
  if (static_cast<int64_t>(to.bytes.size()) != count * sizeOf(to.type)) {
    return rt::makeError("expected ", count, " elements of ", nameOf(to.type), ", got ",
                         to.bytes.size(), " bytes");
  }
  return to;
}

void TensorReader::readBytes(const Proto &from, Initializer &to) {
  if (from.has_raw_data()) {
    to.bytes = std::span<const char>(from.raw_data().data(), from.raw_data().size());
    return;
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
}

/// Parses `text` as a number of at least 0.
static std::optional<uint64_t> parseNumber(const std::string &text) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

rt::Status TensorReader::readExternal(const Proto &from, Initializer &to) {
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
    return rt::makeError("expected offset and length of the external data as numbers");
  }
  rt::Result<std::span<const char>> bytes = openBeside(location);
  if (!bytes) {
    return bytes.error();
  }
  if (*offset > bytes->size() || *length > bytes->size() - *offset) {
    return rt::makeError("expected ", *length, " bytes from byte ", *offset, " of '", location,
                         "' on, which has ", bytes->size(), " bytes");
  }
  to.bytes = bytes->subspan(*offset, *length);
  return {};
}

rt::Result<std::span<const char>> TensorReader::openBeside(const std::string &location) {
  auto found = files.find(location);
  if (found != files.end()) {
    return found->second;
  }
  std::filesystem::path relative(location);
  bool isInside = !location.empty() && relative.is_relative();
  for (const std::filesystem::path &part : relative) {
    isInside &= part != "..";
  }
  if (!isInside) {
    return rt::makeError("expected external data in a file beside the model, got '", location, "'");
  }
  auto file = std::make_shared<rt::MappedFile>();
  std::string beside = (std::filesystem::path(path).parent_path() / relative).string();
  if (rt::Status status = file->open(beside); !status) {
    return status.error();
  }
  storage.push_back(file);
  return files[location] = file->bytes();
}

} // namespace weft::onnx
