//===- LargeCopy.h - copies that no cache could hold ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_LARGECOPY_H
#define WEFT_RT_SUPPORT_LARGECOPY_H

#include <cstddef>

namespace weft::rt {

/// Bytes of the largest cache that all threads of this machine share; 32 MiB where it does not say.
size_t sharedCacheBytes();

/// Copies `bytes` as std::memcpy does, but past the caches: memory is not read before it is
/// written, and what is cached stays. For copies that together exceed `sharedCacheBytes()`. What
/// was copied is there for threads that synchronize with this one afterwards.
void copyPastCaches(void *to, const void *from, size_t bytes);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_LARGECOPY_H
