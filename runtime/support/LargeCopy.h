//===- LargeCopy.h - copies larger than any cache -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_LARGECOPY_H
#define WEFT_RT_SUPPORT_LARGECOPY_H

#include <cstddef>

namespace weft::rt {

/// Returns the bytes of the largest cache that threads of this machine share; 32 MiB if the system
/// does not report it.
size_t sharedCacheBytes();

/// Copies `bytes` bytes as std::memcpy does, but with stores that bypass the caches: the target is
/// not read first, and cached data stays cached. Use it for copies that together exceed
/// `sharedCacheBytes()`. Threads that later synchronize with the caller see the copy.
void copyPastCaches(void *to, const void *from, size_t bytes);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_LARGECOPY_H
