//===- TokenFile.cpp - tokens from files of several formats ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/TokenFile.h"

#include "data/MegatronFile.h"
#include "data/TokenArray.h"
#include "support/Text.h"

#include <filesystem>

using namespace weft::rt;

static constexpr const char *kFormatNames[] = {"bytes", "nanogpt", "llmc", "megatron"};

const char *weft::rt::nameOf(DataFormat format) { return kFormatNames[size_t(format)]; }

std::optional<DataFormat> weft::rt::parseDataFormat(std::string_view name) {
  for (size_t i = 0; i < std::size(kFormatNames); ++i) {
    if (name == kFormatNames[i]) {
      return DataFormat(i);
    }
  }
  return std::nullopt;
}

namespace {

/// The two kinds of file that llm.c writes (karpathy/llm.c, dev/data/data_common.py).
struct LlmcKind {
  int32_t magic, version;
  uint64_t tokenBytes;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr uint64_t kLlmcHeaderBytes = 256 * 4;

const LlmcKind *findLlmcKind(std::span<const char> bytes) {
  for (const LlmcKind &kind : kLlmcKinds) {
    if (bytes.size() >= 4 && numberAt<int32_t>(bytes, 0) == kind.magic) {
      return &kind;
    }
  }
  return nullptr;
}

bool exists(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// Returns the common prefix of the names of Megatron's two files.
std::string megatronPrefix(const std::string &path) {
  bool isOneOfTwo = path.ends_with(".bin") || path.ends_with(".idx");
  return isOneOfTwo ? path.substr(0, path.size() - 4) : path;
}

/// Returns true if the name stands for Megatron's two files: that of the index, that of the tokens
/// if an index lies beside them, or their common prefix.
bool namesMegatron(const std::string &path) {
  return path.ends_with(".idx") ||
         (exists(megatronPrefix(path) + ".idx") && (path.ends_with(".bin") || !exists(path)));
}

template <typename T>
std::unique_ptr<TokenSource> makeTokens(DataFormat format, std::unique_ptr<MappedFile> file,
                                        uint64_t begin = 0) {
  uint64_t count = (file->bytes().size() - begin) / sizeof(T);
  return std::make_unique<TokenArray<T>>(format, std::move(file), begin, count);
}

/// An open file that is not empty.
class SingleFile {
public:
  SingleFile(const std::string &path, std::unique_ptr<MappedFile> file)
      : path(path), file(std::move(file)) {}

  /// Detects the format by the first bytes, then by the name.
  DataFormat guess() const {
    return findLlmcKind(file->bytes()) ? DataFormat::Llmc
           : path.ends_with(".bin")    ? DataFormat::NanoGpt
                                       : DataFormat::Bytes;
  }

  Result<std::unique_ptr<TokenSource>> openNanoGpt(bool isGuess);
  Result<std::unique_ptr<TokenSource>> openLlmc();
  std::unique_ptr<TokenSource> openBytes() {
    return makeTokens<uint8_t>(DataFormat::Bytes, std::move(file));
  }

private:
  template <typename... Parts> Error refuse(const Parts &...parts) {
    return makeError("the data file '", path, "' ", parts...);
  }

  const std::string &path;
  std::unique_ptr<MappedFile> file;
};

Result<std::unique_ptr<TokenSource>> SingleFile::openNanoGpt(bool isGuess) {
  uint64_t size = file->bytes().size();
  if (size % 2 != 0) {
    return isGuess ? refuse("ends in .bin and begins with no known header, but has an odd number "
                            "of bytes, ",
                            size,
                            ", which 16-bit tokens do not make; say by "
                            "--data-format what it is")
                   : refuse("has ", size, " bytes, expected an even number for 16-bit tokens");
  }
  if (findLlmcKind(file->bytes())) {
    return refuse("begins with a header of llm.c, files of nanogpt have none");
  }
  return makeTokens<uint16_t>(DataFormat::NanoGpt, std::move(file));
}

Result<std::unique_ptr<TokenSource>> SingleFile::openLlmc() {
  std::span<const char> bytes = file->bytes();
  if (bytes.size() < kLlmcHeaderBytes) {
    return refuse("has ", bytes.size(), " bytes, the header of llm.c alone takes ",
                  kLlmcHeaderBytes);
  }
  const LlmcKind *kind = findLlmcKind(bytes);
  if (!kind) {
    return refuse("begins with the number ", numberAt<int32_t>(bytes, 0), ", files of llm.c with ",
                  kLlmcKinds[0].magic, " or ", kLlmcKinds[1].magic);
  }
  if (int32_t version = numberAt<int32_t>(bytes, 4); version != kind->version) {
    return refuse("has version ", version, " of llm.c's format ", kind->magic, ", expected ",
                  kind->version);
  }
  int64_t count = numberAt<int32_t>(bytes, 8);
  uint64_t rest = bytes.size() - kLlmcHeaderBytes;
  if (count < 0 || uint64_t(count) * kind->tokenBytes != rest) {
    return refuse("has a header that says ", count, " tokens of ", kind->tokenBytes,
                  " bytes, but there are ", rest, " bytes after it");
  }
  return kind->tokenBytes == 2
             ? makeTokens<uint16_t>(DataFormat::Llmc, std::move(file), kLlmcHeaderBytes)
             : makeTokens<uint32_t>(DataFormat::Llmc, std::move(file), kLlmcHeaderBytes);
}

bool isMegatron(const std::string &path, std::optional<DataFormat> format) {
  return format ? *format == DataFormat::Megatron : namesMegatron(path);
}

} // namespace

Result<std::unique_ptr<TokenSource>> weft::rt::openTokens(const std::string &path,
                                                          std::optional<DataFormat> format) {
  if (isMegatron(path, format)) {
    return openMegatron(megatronPrefix(path));
  }
  auto file = std::make_unique<MappedFile>();
  if (Status status = file->open(path); !status) {
    return status.error();
  }
  if (file->bytes().empty()) {
    return makeError("the data file '", path, "' is empty");
  }
  SingleFile single(path, std::move(file));
  switch (format.value_or(single.guess())) {
  case DataFormat::NanoGpt:
    return single.openNanoGpt(/*isGuess=*/!format);
  case DataFormat::Llmc:
    return single.openLlmc();
  case DataFormat::Bytes:
  case DataFormat::Megatron: // Two files, opened above.
    break;
  }
  return single.openBytes();
}

std::vector<std::string> weft::rt::filesOf(const std::string &path,
                                           std::optional<DataFormat> format) {
  if (path.empty() || !isMegatron(path, format)) {
    return {path};
  }
  std::string prefix = megatronPrefix(path);
  return {prefix + ".idx", prefix + ".bin"};
}
