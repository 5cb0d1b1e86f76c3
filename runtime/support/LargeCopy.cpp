//===- LargeCopy.cpp - copies larger than any cache -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/LargeCopy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

using namespace weft::rt;

size_t weft::rt::sharedCacheBytes() {
  static const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? size_t(bytes) : size_t(32) << 20;
}

void weft::rt::copyPastCaches(void *to, const void *from, size_t bytes) {
#ifdef __SSE2__
  constexpr size_t kLine = 64;
  char *target = static_cast<char *>(to);
  const char *source = static_cast<const char *>(from);
  size_t before = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(target) % kLine) % kLine);
  std::memcpy(target, source, before);
  size_t at = before;
  for (; at + kLine <= bytes; at += kLine) {
    for (size_t part = at; part < at + kLine; part += sizeof(__m128i)) {
      auto *place = reinterpret_cast<__m128i *>(target + part);
      _mm_stream_si128(place, _mm_loadu_si128(reinterpret_cast<const __m128i *>(source + part)));
    }
  }
  _mm_sfence();
  std::memcpy(target + at, source + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}
