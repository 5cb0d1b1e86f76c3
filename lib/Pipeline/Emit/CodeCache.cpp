//===- CodeCache.cpp - a cache of generated code --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeCache.h"

#include "llvm-c/Core.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Caching.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/VersionTuple.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <chrono>

namespace weft {

using namespace llvm;

namespace {

constexpr uint64_t kMostBytes = uint64_t(2) << 30;
constexpr std::chrono::hours kLongestUnused(30 * 24);

/// Follows the code of an entry: the nanoseconds that it took to make, and the checksum of
/// everything before.
constexpr size_t kTrailerBytes = 2 * sizeof(uint64_t);

std::string withTrailer(StringRef code, double seconds) {
  std::string entry = code.str();
  char number[sizeof(uint64_t)];
  auto append = [&](uint64_t value) {
    support::endian::write64le(number, value);
    entry.append(number, sizeof(number));
  };
  append(uint64_t(seconds * 1e9));
  append(xxh3_64bits(entry));
  return entry;
}

struct Entry {
  std::string code;
  double seconds = 0;
};

/// Returns the code and its time, or nothing if withTrailer did not make `bytes`.
std::optional<Entry> readEntry(StringRef bytes) {
  if (bytes.size() < kTrailerBytes) {
    return std::nullopt;
  }
  StringRef summed = bytes.drop_back(sizeof(uint64_t));
  if (support::endian::read64le(summed.end()) != xxh3_64bits(summed)) {
    return std::nullopt;
  }
  StringRef code = bytes.drop_back(kTrailerBytes);
  return Entry{code.str(), double(support::endian::read64le(code.end())) * 1e-9};
}

/// Opens LLVM's cache in `folder`, which passes hits to `receive`.
Expected<FileCache> openCache(const std::string &folder, std::function<void(StringRef)> receive) {
  return localCache("weft", "weft", folder,
                    [receive](unsigned, const Twine &, std::unique_ptr<MemoryBuffer> buffer) {
                      receive(buffer->getBuffer());
                    });
}

std::string pathOf(StringRef folder, StringRef key) {
  SmallString<128> path(folder);
  sys::path::append(path, "llvmcache-" + key); // As localCache names its files.
  return path.str().str();
}

/// The version of the library that is loaded, not of its headers.
std::string versionOfLLVM() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return VersionTuple(major, minor, patch).getAsString();
}

std::string hash(ArrayRef<StringRef> parts) {
  BLAKE3 hash;
  for (StringRef part : parts) {
    uint8_t size[sizeof(uint64_t)];
    support::endian::write64le(size, part.size());
    hash.update(size);
    hash.update(part);
  }
  return toHex(hash.final<16>(), /*LowerCase=*/true);
}

} // namespace

std::string keyOf(ArrayRef<StringRef> parts) {
  static const std::string tools = hash({WEFT_EMIT_SOURCES, versionOfLLVM()});
  SmallVector<StringRef> all = {tools};
  append_range(all, parts);
  return hash(all);
}

void CodeCache::note(Error problem) {
  std::string message = toString(std::move(problem));
  std::lock_guard lock(mutex);
  if (used.problem.empty()) {
    used.problem = std::move(message);
  }
}

std::optional<std::string> CodeCache::find(StringRef key) {
  std::optional<Entry> found;
  bool isDamaged = false;
  Expected<FileCache> cache = openCache(folder, [&](StringRef bytes) {
    found = readEntry(bytes);
    isDamaged = !found;
  });
  Expected<AddStreamFn> addition =
      cache ? (*cache)(/*Task=*/0, key, "") : Expected<AddStreamFn>(cache.takeError());
  if (!addition) {
    note(addition.takeError());
    return std::nullopt;
  }
  if (isDamaged) {
    (void)sys::fs::remove(pathOf(folder, key));
  }
  if (!found) {
    return std::nullopt;
  }
  std::lock_guard lock(mutex);
  ++used.found;
  used.savedSeconds += found->seconds;
  return std::move(found->code);
}

void CodeCache::put(StringRef key, StringRef code, double seconds) {
  Expected<FileCache> cache = openCache(folder, [](StringRef) {});
  Expected<AddStreamFn> addition =
      cache ? (*cache)(/*Task=*/0, key, "") : Expected<AddStreamFn>(cache.takeError());
  if (!addition) {
    return note(addition.takeError());
  }
  if (!*addition) {
    return; // Another process was faster.
  }
  Expected<std::unique_ptr<CachedFileStream>> stream = (*addition)(/*Task=*/0, "");
  if (!stream) {
    return note(stream.takeError());
  }
  // localCache writes by this class, which ends the process if an error is not taken from it.
  auto &file = static_cast<raw_fd_ostream &>(*(*stream)->OS);
  file << withTrailer(code, seconds);
  file.flush();
  std::error_code failure = file.error();
  file.clear_error();
  if (Error error = (*stream)->commit()) {
    note(std::move(error));
  }
  if (failure) {
    (void)sys::fs::remove(pathOf(folder, key));
    note(errorCodeToError(failure));
  }
}

Expected<std::string> CodeCache::get(StringRef key, function_ref<Expected<std::string>()> make) {
  if (folder.empty()) {
    return make();
  }
  if (std::optional<std::string> code = find(key)) {
    return std::move(*code);
  }
  auto start = std::chrono::steady_clock::now();
  Expected<std::string> code = make();
  if (code) {
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    put(key, *code, taken.count());
  }
  return code;
}

void CodeCache::prune() const {
  if (folder.empty()) {
    return;
  }
  CachePruningPolicy policy;
  policy.MaxSizeBytes = kMostBytes;
  policy.Expiration = kLongestUnused;
  pruneCache(folder, policy);
}

CacheUse CodeCache::use() const {
  std::lock_guard lock(mutex);
  return used;
}

} // namespace weft
