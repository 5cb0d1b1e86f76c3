//===- MappedFile.cpp - a file mapped for reading -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/MappedFile.h"

#include "support/Text.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;

/// Maps the open file. The mapping stays when the descriptor is closed.
static Result<std::span<const char>> mapDescriptor(int descriptor, const std::string &path) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    return makeError("cannot read '", path, "': ", systemError(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return makeError("cannot read '", path, "': not a regular file");
  }
  size_t size = size_t(info.st_size);
  if (size == 0) {
    return std::span<const char>(); // An empty range cannot be mapped, and need not be.
  }
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) {
    return makeError("cannot read '", path, "': ", systemError(errno));
  }
  return std::span(static_cast<const char *>(memory), size);
}

Status MappedFile::open(const std::string &path) {
  // Without O_NONBLOCK a named pipe without a writer would hang here.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return makeError("cannot read '", path, "': ", systemError(errno));
  }
  Result<std::span<const char>> mapped = mapDescriptor(descriptor, path);
  close(descriptor);
  if (!mapped) {
    return mapped.error();
  }
  content = *mapped;
  return {};
}

void MappedFile::release(std::span<const char> part) const {
  // Around the page that is read, the system maps others of the same 64 KiB.
  constexpr uintptr_t kWindow = 1 << 16;
  auto first = reinterpret_cast<uintptr_t>(content.data()), last = first + content.size();
  auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  begin = std::max(begin / kWindow * kWindow, first);
  end = std::min((end + kWindow - 1) / kWindow * kWindow, last);
  if (!part.empty()) {
    madvise(reinterpret_cast<void *>(begin), end - begin,
            MADV_DONTNEED); // Fails never, or harmlessly.
  }
}

MappedFile::~MappedFile() {
  if (!content.empty()) {
    munmap(const_cast<char *>(content.data()), content.size());
  }
}
