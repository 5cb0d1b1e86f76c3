//===- LibraryCall.h - the small memory that a library's call takes -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN makes a few tables for each call of a matmul by `operator new`, and deletes
// them before it returns. While a LibraryCall lives, `operator new` of its thread takes
// memory from a fixed block instead, so that steps do not use the heap.
//
//   operator new      in a LibraryCall: the next bytes of its block;
//                     elsewhere, or if the block has no room: malloc
//   operator delete   of memory in a block: counts; the block is free again once its
//                     call has ended and all its memory is deleted
//
// Memory that a library keeps longer than its call is therefore safe, and any thread may
// delete it. At most `kBlocks` calls have a block at a time.
//
// LibraryCall.cpp replaces the operators of every program that is linked with it. They
// are weak: a program may have its own. Sanitizers have theirs, so that a LibraryCall
// does nothing there.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_LIBRARYCALL_H
#define WEFT_RT_SUPPORT_LIBRARYCALL_H

#include <cstddef>

namespace weft::rt {

class LibraryCall {
public:
  /// The bytes of a block. oneDNN 2.6 takes about 500 for a matmul.
  static constexpr size_t kBytes = 4096 - 64;
  static constexpr size_t kBlocks = 256;

  LibraryCall();
  ~LibraryCall();
  LibraryCall(const LibraryCall &) = delete;
  LibraryCall &operator=(const LibraryCall &) = delete;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_LIBRARYCALL_H
