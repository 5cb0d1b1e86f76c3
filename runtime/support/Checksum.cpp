//===- Checksum.cpp - checksums that reveal damaged files -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Checksum.h"

#include "support/Text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

// Compiled into this file, so that executables need no further library.
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace weft::rt;

struct Checksum::State {
  XXH3_state_t hash;
};

Checksum::Checksum() : state(std::make_unique<State>()) { XXH3_128bits_reset(&state->hash); }

Checksum::Checksum(Checksum &&) noexcept = default;
Checksum &Checksum::operator=(Checksum &&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::add(std::span<const char> bytes) {
  XXH3_128bits_update(&state->hash, bytes.data(), bytes.size());
}

Digest Checksum::digest() const {
  XXH128_hash_t hash = XXH3_128bits_digest(&state->hash);
  return {hash.high64, hash.low64};
}

std::string weft::rt::digestText(const Digest &digest) {
  char text[48];
  std::snprintf(text, sizeof text, "xxh3-128:%016llx%016llx",
                static_cast<unsigned long long>(digest.high),
                static_cast<unsigned long long>(digest.low));
  return text;
}

std::optional<Digest> weft::rt::parseDigest(const std::string &text) {
  size_t digits = text.find(':') + 1; // 0 if there is none.
  auto read = [&](size_t begin, uint64_t &half) {
    std::string part = text.substr(std::min(begin, text.size()), 16);
    return std::from_chars(part.data(), part.data() + part.size(), half, 16).ec == std::errc();
  };
  // Accepts one spelling of each number only.
  Digest digest;
  bool isDigest =
      read(digits, digest.high) && read(digits + 16, digest.low) && text == digestText(digest);
  return isDigest ? std::optional(digest) : std::nullopt;
}

static bool checksumDescriptor(int descriptor, uint64_t &bytes, Checksum &checksum) {
  std::vector<char> portion(1 << 20);
  bytes = 0;
  for (;;) {
    ssize_t count = ::read(descriptor, portion.data(), portion.size());
    if (count == 0) {
      return true;
    }
    if (count > 0) {
      checksum.add({portion.data(), size_t(count)});
      bytes += uint64_t(count);
    } else if (errno != EINTR) {
      return false;
    }
  }
}

Result<FileChecksum> weft::rt::checksumFile(const std::string &path) {
  // Without O_NONBLOCK a named pipe without a writer would hang here.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  uint64_t bytes = 0;
  Checksum checksum;
  bool ok = descriptor >= 0 && checksumDescriptor(descriptor, bytes, checksum);
  int code = errno;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  if (!ok) {
    return makeError("cannot read '", path, "': ", systemError(code));
  }
  return FileChecksum{bytes, checksum.digest()};
}
