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

/// Maps the open file into `content`. The mapping stays when the descriptor is closed.
static bool mapDescriptor(int descriptor, const std::string &path, std::span<const char> &content,
                          std::string &error) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    return fail(error, "cannot read '", path, "': ", systemError(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(error, "cannot read '", path, "': not a regular file");
  }
  size_t size = size_t(status.st_size);
  if (size == 0) {
    return true; // An empty range cannot be mapped, and need not be.
  }
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) {
    return fail(error, "cannot read '", path, "': ", systemError(errno));
  }
  content = {static_cast<const char *>(memory), size};
  return true;
}

bool MappedFile::open(const std::string &path, std::string &error) {
  // Without O_NONBLOCK a named pipe without a writer would hang here.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return fail(error, "cannot read '", path, "': ", systemError(errno));
  }
  bool ok = mapDescriptor(descriptor, path, content, error);
  close(descriptor);
  return ok;
}

MappedFile::~MappedFile() {
  if (!content.empty()) {
    munmap(const_cast<char *>(content.data()), content.size());
  }
}
