//===- OutputFile.cpp - output files that appear only when complete -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/OutputFile.h"

#include "support/Text.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;

static Error cannotWrite(const std::string &path) {
  return makeError("cannot write '", path, "': ", systemError(errno));
}

/// Returns success if `ok`, else the error that `errno` tells.
static Status checkWritten(bool ok, const std::string &path) {
  return ok ? Status() : cannotWrite(path);
}

static bool writeAll(int descriptor, std::span<const char> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes = bytes.subspan(written < 0 ? 0 : size_t(written));
  }
  return true;
}

/// Returns true if `path` is a device, pipe or folder, which a rename would replace by a plain
/// file.
static bool isSpecial(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

/// Resolves a symbolic link, which a rename would otherwise replace by a plain file.
static std::string resolve(const std::string &path) {
  char *resolved = realpath(path.c_str(), nullptr);
  std::string result = resolved ? resolved : path;
  std::free(resolved);
  return result;
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Status weft::rt::checkWritable(const std::string &path) {
  // An existing file must itself be writable: a rename would ignore its permissions.
  if (access(path.c_str(), F_OK) == 0 && access(path.c_str(), W_OK) != 0) {
    return cannotWrite(path);
  }
  OutputFile file;
  return file.open(path);
}

Status weft::rt::syncFolder(const std::string &path) {
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some file systems cannot sync a folder, need not, and return EINVAL.
  bool ok = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
  int code = errno;
  if (folder >= 0) {
    ::close(folder);
  }
  errno = code;
  return checkWritten(ok, path);
}

Status weft::rt::nameWhole(const std::string &from, const std::string &to,
                           const std::string &folder) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return cannotWrite(to);
  }
  return syncFolder(folder);
}

bool weft::rt::isSameFile(const std::string &a, const std::string &b) {
  auto canonical = [](const std::string &path) {
    std::string name = path.substr(path.rfind('/') + 1); // All of it if there is no slash.
    std::string resolved = resolve(path);
    return resolved != path ? resolved : resolve(folderOf(path)) + "/" + name;
  };
  return a == b || canonical(a) == canonical(b);
}

Status OutputFile::open(const std::string &target) {
  path = target;
  int flags = O_WRONLY | O_CLOEXEC;
  if (isSpecial(target)) {
    // Refuses a pipe without a reader instead of waiting for one.
    descriptor = ::open(path.c_str(), flags | O_NONBLOCK);
    if (descriptor >= 0) {
      fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    }
  } else {
    path = resolve(target);
    partial = path + ".partial";
    descriptor = ::open(partial.c_str(), flags | O_CREAT | O_TRUNC, 0666);
  }
  if (descriptor < 0) {
    partial.clear();
    return cannotWrite(path);
  }
  return {};
}

Status OutputFile::write(std::span<const char> bytes) {
  return checkWritten(writeAll(descriptor, bytes), path);
}

Status OutputFile::commit() {
  // Devices and pipes have nothing to sync and return EINVAL.
  bool ok = fsync(descriptor) == 0 || (partial.empty() && errno == EINVAL);
  int code = errno;
  ok &= ::close(descriptor) == 0;
  descriptor = -1;
  if (!ok) {
    errno = code;
    return cannotWrite(path);
  }
  if (partial.empty()) {
    return {};
  }
  Status status = nameWhole(partial, path, folderOf(path));
  if (status) {
    partial.clear();
  }
  return status;
}

Status weft::rt::writeFile(const std::string &path, std::span<const char> bytes) {
  OutputFile file;
  if (Status status = file.open(path); !status) {
    return status;
  }
  if (Status status = file.write(bytes); !status) {
    return status;
  }
  return file.commit();
}

OutputFile::~OutputFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  if (!partial.empty()) {
    unlink(partial.c_str());
  }
}

Status StreamFile::open(const std::string &target, uint64_t keep) {
  path = target;
  descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  bool ok = descriptor >= 0 &&
            (isSpecial(path) || (ftruncate(descriptor, off_t(keep)) == 0 &&
                                 lseek(descriptor, off_t(keep), SEEK_SET) == off_t(keep)));
  return checkWritten(ok, path);
}

Status StreamFile::write(std::span<const char> bytes) {
  return checkWritten(writeAll(descriptor, bytes), path);
}

Status StreamFile::sync() {
  // Devices and pipes have nothing to sync and return EINVAL.
  return checkWritten(fsync(descriptor) == 0 || errno == EINVAL, path);
}

Status StreamFile::close() {
  int toClose = descriptor;
  descriptor = -1;
  return checkWritten(toClose < 0 || ::close(toClose) == 0, path);
}

StreamFile::~StreamFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
  }
}
