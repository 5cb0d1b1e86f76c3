//===- TemporaryFolder.cpp - a folder that is always removed --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/TemporaryFolder.h"

#include "weft/Driver/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace weft;

/// Attempts to remove the folder: a process that ends with its user may still be writing into it.
static void removeFolder(llvm::StringRef path) {
  for (int tries = 0; tries < 100 && llvm::sys::fs::exists(path); ++tries) {
    ::usleep(tries > 0 ? 10000 : 0);
    llvm::sys::fs::remove_directories(path);
  }
}

/// The second process: makes a folder whose name begins with `prefix`, sends its name to the other
/// end of `socket`, or nothing on failure, and removes the folder when that end closes.
[[noreturn]] static void keepFolder(int socket, llvm::StringRef prefix) {
  // Leaves the terminal's signals and streams to the first process.
  ::setsid();
  int nothing = ::open("/dev/null", O_RDWR);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(nothing, stream);
  }
  llvm::SmallString<128> path;
  if (!llvm::sys::fs::createUniqueDirectory(prefix, path)) {
    ::send(socket, path.data(), path.size(), MSG_NOSIGNAL);
    char byte = 0;
    while (::recv(socket, &byte, 1, 0) < 0 && errno == EINTR) {
    }
    removeFolder(path);
  }
  ::_exit(0);
}

llvm::Error TemporaryFolder::create(llvm::StringRef prefix) {
  // A socket of messages transfers a name whole. Programs that this one starts do not inherit it.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return makeError(llvm::Twine("cannot make a temporary folder: ") + std::strerror(errno));
  }
  keeper = ::fork();
  if (keeper == 0) {
    ::close(ends[0]);
    keepFolder(ends[1], prefix);
  }
  ::close(ends[1]);
  socket = ends[0];
  char name[PATH_MAX];
  ssize_t length = -1;
  while (keeper > 0 && (length = ::recv(socket, name, sizeof(name), 0)) < 0 && errno == EINTR) {
  }
  if (length <= 0) {
    llvm::SmallString<128> place;
    llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, place);
    return makeError("cannot make a temporary folder in '" + place + "'");
  }
  path.assign(name, name + length);
  return llvm::Error::success();
}

TemporaryFolder::~TemporaryFolder() {
  if (socket >= 0) {
    ::close(socket);
  }
  if (keeper > 0) {
    while (::waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}
