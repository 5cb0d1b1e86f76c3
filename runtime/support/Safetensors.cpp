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
#include <string_view>
#include <utility>

using namespace weft::rt;
using nlohmann::json;

namespace {

/// The format's own limit on the header.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kLengthBytes = 8;

/// The dtypes of the format that are no ElementType, with the bytes of one element.
constexpr std::pair<std::string_view, uint64_t> kOtherDtypes[] = {
    {"I16", 2}, {"I8", 1}, {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1}, {"BOOL", 1}, {"C64", 8},
};

/// Returns the bytes of one element; 0 for a dtype that the format does not have.
uint64_t dtypeBytes(std::string_view dtype) {
  for (const ElementTypeEntry &entry : kElementTypes) {
    if (dtype == entry.dtype) {
      return entry.bytes;
    }
  }
  for (const auto &[name, bytes] : kOtherDtypes) {
    if (dtype == name) {
      return bytes;
    }
  }
  return 0;
}

/// Parses the header.
class HeaderReader {
public:
  explicit HeaderReader(std::span<const char> data) : data(data) {}

  Status read(std::span<const char> header, SafetensorsFile &file) {
    Result<json> root = parseObject(header, "the header");
    if (!root) {
      return root.error();
    }
    for (const auto &[name, value] : root->items()) {
      Status status = name == "__metadata__" ? readMetadata(value, file.metadata)
                                             : readTensor(name, value, file.tensors[name]);
      if (!status) {
        return status;
      }
    }
    return checkCover();
  }

private:
  Status readMetadata(const json &value, std::map<std::string, std::string> &metadata) {
    if (!value.is_object()) {
      return makeError("'__metadata__' is not an object");
    }
    for (const auto &[key, text] : value.items()) {
      if (!text.is_string()) {
        return makeError("metadata '", key, "' is not a string");
      }
      metadata[key] = text.get<std::string>();
    }
    return {};
  }

  Status readTensor(const std::string &name, const json &value, SafetensorsFile::Tensor &tensor) {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string()) {
      return makeError("tensor '", name,
                       "' needs exactly the fields dtype, shape and data_offsets");
    }
    tensor.dtype = value["dtype"].get<std::string>();
    uint64_t bytes = dtypeBytes(tensor.dtype);
    if (bytes == 0) {
      return makeError("tensor '", name, "' has the unknown dtype '", tensor.dtype, "'");
    }
    std::optional<std::vector<int64_t>> shape = readCounts(value["shape"]);
    std::optional<std::vector<int64_t>> offsets = readCounts(value["data_offsets"]);
    if (!shape || !offsets || offsets->size() != 2) {
      return makeError("tensor '", name, "' has a malformed shape or data_offsets");
    }
    tensor.shape = std::move(*shape);
    uint64_t begin = uint64_t(offsets->front()), end = uint64_t(offsets->back());
    if (begin > end || end > data.size()) {
      return makeError("tensor '", name, "' lies at bytes ", begin, " to ", end,
                       " of the data, which has ", data.size());
    }
    uint64_t needed = saturatingMul(elementCount(tensor.shape), bytes);
    if (needed != end - begin) {
      return makeError("tensor '", name, "' of ", tensor.dtype, " ", shapeText(tensor.shape),
                       " needs ", needed, " bytes, got ", end - begin);
    }
    tensor.data = data.subspan(begin, end - begin);
    ranges.push_back({begin, end, name});
    return {};
  }

  /// Checks that the tensors lie one after another and fill the data.
  Status checkCover() {
    std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t position = 0;
    for (const Range &range : ranges) {
      if (range.begin != position) {
        return makeError("tensor '", range.name, "' begins at byte ", range.begin,
                         range.begin < position ? ", inside the one before it, which ends at "
                                                : ", but the one before it ends at ",
                         position);
      }
      position = range.end;
    }
    if (position != data.size()) {
      return makeError("the tensors end at byte ", position, " of the data, which has ",
                       data.size());
    }
    return {};
  }

  struct Range {
    uint64_t begin, end;
    std::string name;
  };

  std::span<const char> data;
  std::vector<Range> ranges;
};

Status readFile(std::span<const char> bytes, SafetensorsFile &file, size_t &headerBytes) {
  if (bytes.size() < kLengthBytes) {
    return makeError("expected at least ", kLengthBytes, " bytes, got ", bytes.size());
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t(uint8_t(bytes[i])) << (8 * i);
  }
  std::span<const char> rest = bytes.subspan(kLengthBytes);
  if (length > rest.size() || length > kMaxHeaderBytes) {
    return makeError("expected a header of ", length, " bytes, got ", rest.size(),
                     " bytes; at most ", kMaxHeaderBytes, " bytes are allowed");
  }
  headerBytes = kLengthBytes + length;
  return HeaderReader(rest.subspan(length)).read(rest.first(length), file);
}

} // namespace

const char *weft::rt::safetensorsName(ElementType type) {
  return kElementTypes[size_t(type)].dtype;
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

Status SafetensorsFile::open(const std::string &path) {
  if (Status status = file.open(path); !status) {
    return status;
  }
  if (Status status = readFile(file.bytes(), *this, headerBytes); !status) {
    return makeError("'", path, "' is not a valid safetensors file: ", status.error().message);
  }
  return {};
}
