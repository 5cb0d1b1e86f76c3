//===- Safetensors.cpp - named tensors in a file ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Safetensors.h"

#include "support/CheckedMath.h"
#include "support/Json.h"
#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;
using nlohmann::json;

namespace {

/// The format's own limit on the header.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kLengthBytes = 8;

/// Returns the bytes of one element; 0 for a dtype that the format does not have.
uint64_t dtypeBytes(const std::string &dtype) {
  static const std::map<std::string, uint64_t> sizes = {
      {"F64", 8},  {"F32", 4}, {"F16", 2},     {"BF16", 2},   {"I64", 8}, {"I32", 4},
      {"I16", 2},  {"I8", 1},  {"U64", 8},     {"U32", 4},    {"U16", 2}, {"U8", 1},
      {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

/// Parses the header. Every method returns false after putting the reason into `error`.
class HeaderReader {
public:
  HeaderReader(std::span<const char> data, std::string &error) : data(data), error(error) {}

  bool read(std::span<const char> header, SafetensorsFile &file) {
    json root;
    if (!parseObject(header, "the header", root, error)) {
      return false;
    }
    for (const auto &[name, value] : root.items()) {
      bool ok = name == "__metadata__" ? readMetadata(value, file.metadata)
                                       : readTensor(name, value, file.tensors[name]);
      if (!ok) {
        return false;
      }
    }
    return checkCover();
  }

private:
  bool readMetadata(const json &value, std::map<std::string, std::string> &metadata) {
    if (!value.is_object()) {
      return fail(error, "'__metadata__' is not an object");
    }
    for (const auto &[key, text] : value.items()) {
      if (!text.is_string()) {
        return fail(error, "metadata '", key, "' is not a string");
      }
      metadata[key] = text.get<std::string>();
    }
    return true;
  }

  bool readTensor(const std::string &name, const json &value, SafetensorsFile::Tensor &tensor) {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string()) {
      return fail(error, "tensor '", name,
                  "' needs exactly the fields dtype, shape and data_offsets");
    }
    tensor.dtype = value["dtype"].get<std::string>();
    uint64_t bytes = dtypeBytes(tensor.dtype);
    if (bytes == 0) {
      return fail(error, "tensor '", name, "' has the unknown dtype '", tensor.dtype, "'");
    }
    std::vector<int64_t> offsets;
    if (!readCounts(value["shape"], tensor.shape) || !readCounts(value["data_offsets"], offsets) ||
        offsets.size() != 2) {
      return fail(error, "tensor '", name, "' has a malformed shape or data_offsets");
    }
    uint64_t begin = uint64_t(offsets[0]), end = uint64_t(offsets[1]);
    if (begin > end || end > data.size()) {
      return fail(error, "tensor '", name, "' lies at bytes ", begin, " to ", end,
                  " of the data, which has ", data.size());
    }
    uint64_t needed = saturatingMul(elementCount(tensor.shape), bytes);
    if (needed != end - begin) {
      return fail(error, "tensor '", name, "' of ", tensor.dtype, " ", shapeText(tensor.shape),
                  " needs ", needed, " bytes, got ", end - begin);
    }
    tensor.data = data.subspan(begin, end - begin);
    ranges.push_back({begin, end, name});
    return true;
  }

  /// Checks that the tensors lie one after another and fill the data.
  bool checkCover() {
    std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t position = 0;
    for (const Range &range : ranges) {
      if (range.begin != position) {
        return fail(error, "tensor '", range.name, "' begins at byte ", range.begin,
                    range.begin < position ? ", inside the one before it, which ends at "
                                           : ", but the one before it ends at ",
                    position);
      }
      position = range.end;
    }
    if (position != data.size()) {
      return fail(error, "the tensors end at byte ", position, " of the data, which has ",
                  data.size());
    }
    return true;
  }

  struct Range {
    uint64_t begin, end;
    std::string name;
  };

  std::span<const char> data;
  std::string &error;
  std::vector<Range> ranges;
};

bool readFile(std::span<const char> bytes, SafetensorsFile &file, size_t &headerBytes,
              std::string &error) {
  if (bytes.size() < kLengthBytes) {
    return fail(error, "expected at least ", kLengthBytes, " bytes, got ", bytes.size());
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t(uint8_t(bytes[i])) << (8 * i);
  }
  std::span<const char> rest = bytes.subspan(kLengthBytes);
  if (length > rest.size() || length > kMaxHeaderBytes) {
    return fail(error, "expected a header of ", length, " bytes, got ", rest.size(),
                " bytes; at most ", kMaxHeaderBytes, " bytes are allowed");
  }
  headerBytes = kLengthBytes + length;
  return HeaderReader(rest.subspan(length), error).read(rest.first(length), file);
}

} // namespace

const char *weft::rt::safetensorsName(ElementType type) {
  static constexpr const char *names[] = {"F64", "F32", "I64", "I32", "BF16", "F16"};
  return names[size_t(type)];
}

std::string weft::rt::safetensorsHeader(const std::vector<TensorHeader> &tensors,
                                        const std::map<std::string, std::string> &metadata) {
  json root = json::object();
  root["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorHeader &tensor : tensors) {
    uint64_t end = offset + elementCount(tensor.shape) * sizeOf(tensor.type);
    root[tensor.name] = {{"dtype", safetensorsName(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = toJsonText(root);
  text.resize((text.size() + 7) / 8 * 8, ' '); // So that the tensors are aligned.
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes.push_back(char(uint8_t(uint64_t(text.size()) >> (8 * i))));
  }
  return bytes + text;
}

bool SafetensorsFile::open(const std::string &path, std::string &error) {
  std::string reason;
  if (!file.open(path, error)) {
    return false;
  }
  return readFile(file.bytes(), *this, headerBytes, reason) ||
         fail(error, "'", path, "' is not a valid safetensors file: ", reason);
}
