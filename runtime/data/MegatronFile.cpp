//===- MegatronFile.cpp - tokens in the files of Megatron-LM --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/MegatronFile.h"

#include "data/TokenArray.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <string_view>

using namespace weft::rt;

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kHeaderBytes = 34;

using MakeTokens = std::unique_ptr<TokenSource> (*)(std::unique_ptr<MappedFile>, uint64_t count);

template <typename T>
std::unique_ptr<TokenSource> make(std::unique_ptr<MappedFile> file, uint64_t count) {
  return std::make_unique<TokenArray<T>>(DataFormat::Megatron, std::move(file), 0, count);
}

/// The type of a code; `make` is null for types that tokens cannot have.
struct TokenType {
  const char *name;
  uint64_t bytes;
  MakeTokens make;
};

constexpr TokenType kTypes[] = {{"uint8", 1, make<uint8_t>}, {"int8", 1, make<int8_t>},
                                {"int16", 2, make<int16_t>}, {"int32", 4, make<int32_t>},
                                {"int64", 8, make<int64_t>}, {"float64", 8, nullptr},
                                {"float32", 4, nullptr},     {"uint16", 2, make<uint16_t>}};

/// Reads an index.
class Index {
public:
  explicit Index(std::string path) : path(std::move(path)) {}

  Status open() {
    if (Status status = file.open(path); !status) {
      return status;
    }
    if (Status status = readHeader(); !status) {
      return status;
    }
    if (Status status = checkSize(); !status) {
      return status;
    }
    if (Status status = readSequences(); !status) {
      return status;
    }
    return checkDocuments();
  }

  const TokenType *type = nullptr;
  /// The bytes of PREFIX.bin.
  uint64_t bytes = 0;

private:
  template <typename... Parts> Error refuse(const Parts &...parts) {
    return makeError("the index '", path, "' ", parts...);
  }

  Status readHeader();
  Status checkSize();
  Status readSequences();
  Status checkDocuments();

  std::string path;
  MappedFile file;
  uint64_t sequences = 0, documents = 0;
};

Status Index::readHeader() {
  std::span<const char> content = file.bytes();
  std::string_view text(content.data(), content.size());
  if (text.substr(0, kMagic.size()) != kMagic) {
    return refuse("is not one of Megatron: it does not begin with MMIDIDX and two zeros");
  }
  if (content.size() < kHeaderBytes) {
    return refuse("has ", content.size(), " bytes, its header takes ", kHeaderBytes);
  }
  uint64_t version = numberAt<uint64_t>(content, 9);
  if (version != 1) {
    return refuse("has version ", version, ", expected 1");
  }
  size_t code = numberAt<uint8_t>(content, 17);
  if (code < 1 || code > std::size(kTypes)) {
    return refuse("has ", code, " as the type of tokens, expected 1 to ", std::size(kTypes));
  }
  type = &kTypes[code - 1];
  if (!type->make) {
    return refuse("says that tokens are of type ", type->name, ", expected whole numbers");
  }
  sequences = numberAt<uint64_t>(content, 18);
  documents = numberAt<uint64_t>(content, 26);
  return {};
}

Status Index::checkSize() {
  uint64_t expected = saturatingAdd(
      kHeaderBytes, saturatingAdd(saturatingMul(sequences, 12), saturatingMul(documents, 8)));
  uint64_t size = file.bytes().size();
  if (size == expected) {
    return {};
  }
  if (sequences > 0 && size == saturatingAdd(expected, sequences)) {
    return refuse("has a mode for each sequence, as data of several kinds has; expected text only");
  }
  return refuse("has ", size, " bytes, its ", sequences, " sequences and ", documents,
                " entries for documents take ",
                expected == kTooLarge ? "more than any file has" : std::to_string(expected));
}

Status Index::readSequences() {
  std::span<const char> lengths = file.bytes().subspan(kHeaderBytes);
  std::span<const char> begins = lengths.subspan(size_t(4 * sequences));
  for (uint64_t i = 0; i < sequences; ++i) {
    int32_t length = numberAt<int32_t>(lengths, 4 * i);
    int64_t begin = numberAt<int64_t>(begins, 8 * i);
    if (length < 0) {
      return refuse("has a sequence ", i, " of ", length, " tokens");
    }
    if (begin < 0 || uint64_t(begin) != bytes) {
      return refuse("has sequence ", i, " begin at byte ", begin, ", expected ", bytes,
                    ", where the one before ends");
    }
    bytes += uint64_t(length) * type->bytes; // Less than 2^34 for each entry that the file has.
  }
  return {};
}

Status Index::checkDocuments() {
  std::span<const char> entries = file.bytes().subspan(size_t(kHeaderBytes + 12 * sequences));
  int64_t last = 0;
  for (uint64_t i = 0; i < documents; ++i) {
    int64_t entry = numberAt<int64_t>(entries, 8 * i);
    if (i == 0 ? entry != 0 : entry < last || uint64_t(entry) > sequences) {
      return refuse("has document ", i, " begin at sequence ", entry, ", expected ",
                    i == 0 ? "0" : concat(last, " to ", sequences));
    }
    last = entry;
  }
  if (uint64_t(last) != sequences) {
    return refuse("has ", sequences, " sequences, its documents end at ", last);
  }
  return {};
}

} // namespace

Result<std::unique_ptr<TokenSource>> weft::rt::openMegatron(const std::string &prefix) {
  Index index(prefix + ".idx");
  if (Status status = index.open(); !status) {
    return status.error();
  }
  auto tokens = std::make_unique<MappedFile>();
  std::string path = prefix + ".bin";
  if (Status status = tokens->open(path); !status) {
    return status.error();
  }
  if (tokens->bytes().size() != index.bytes) {
    return makeError("the data file '", path, "' has ", tokens->bytes().size(),
                     " bytes, expected by its index ", index.bytes);
  }
  return index.type->make(std::move(tokens), index.bytes / index.type->bytes);
}
