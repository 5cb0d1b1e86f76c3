//===- interrupt.c - interrupts a program at a chosen call ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loaded before the C library (LD_PRELOAD), for tests alone. Counts the calls that
// change files: mkdir, open of a file to write, write, ftruncate, fsync, rename,
// unlink, rmdir. The environment says what happens at one of them:
//
//   INTERRUPT_AT=n     the n-th, counted from 1
//   INTERRUPT_BY=kill  the process is killed before the call
//   INTERRUPT_BY=tear  it is killed after the call, or after half of a write
//   INTERRUPT_BY=fail  the call fails with "No space left on device"
//   INTERRUPT_LOG=file every call is written there, with the files it is about
//
//===----------------------------------------------------------------------===//

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;

/// What the library behind this one has under a name.
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

enum { kGoOn, kTear, kFail };

static void logCall(const char *call, const char *first, const char *second) {
  static atomic_int file = -1;
  const char *path = getenv("INTERRUPT_LOG");
  if (!path) {
    return;
  }
  if (file < 0) {
    int opened = (int)syscall(SYS_open, path, O_WRONLY | O_CREAT | O_APPEND, 0666), none = -1;
    if (!atomic_compare_exchange_strong(&file, &none, opened)) {
      syscall(SYS_close, opened);
    }
  }
  char line[3 * 4096];
  int length = snprintf(line, sizeof line, "%s %s %s\n", call, first, second);
  syscall(SYS_write, file, line, length);
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); }

/// To be called before each counted call.
static int enter(const char *call, const char *first, const char *second) {
  logCall(call, first, second);
  const char *at = getenv("INTERRUPT_AT"), *by = getenv("INTERRUPT_BY");
  if (atomic_fetch_add(&calls, 1) + 1 != (at ? atol(at) : 0) || !by) {
    return kGoOn;
  }
  if (strcmp(by, "kill") == 0) {
    die();
  }
  return strcmp(by, "tear") == 0 ? kTear : kFail;
}

static const char *nameOf(int descriptor, char *name) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, name, 4095);
  name[length < 0 ? 0 : length] = 0;
  return name;
}

#define INTERRUPTED(call, first, second, expression)                                               \
  int what = enter(call, first, second);                                                           \
  if (what == kFail) {                                                                             \
    errno = ENOSPC;                                                                                \
    return -1;                                                                                     \
  }                                                                                                \
  int result = expression;                                                                         \
  if (what == kTear) {                                                                             \
    die();                                                                                         \
  }                                                                                                \
  return result

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = (flags & O_CREAT) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (!(flags & O_CREAT)) {
    return NEXT(open)(path, flags, mode);
  }
  INTERRUPTED("open", path, "", NEXT(open)(path, flags, mode));
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
  char name[4096];
  if (descriptor <= STDERR_FILENO) {
    return NEXT(write)(descriptor, bytes, size);
  }
  int what = enter("write", nameOf(descriptor, name), "");
  if (what == kFail) {
    errno = ENOSPC;
    return -1;
  }
  ssize_t result = NEXT(write)(descriptor, bytes, what == kTear ? size / 2 : size);
  if (what == kTear) {
    die();
  }
  return result;
}

int ftruncate(int descriptor, off_t size) {
  char name[4096];
  INTERRUPTED("ftruncate", nameOf(descriptor, name), "", NEXT(ftruncate)(descriptor, size));
}

int fsync(int descriptor) {
  char name[4096];
  INTERRUPTED("fsync", nameOf(descriptor, name), "", NEXT(fsync)(descriptor));
}

int rename(const char *from, const char *to) {
  INTERRUPTED("rename", from, to, NEXT(rename)(from, to));
}

int mkdir(const char *path, mode_t mode) {
  INTERRUPTED("mkdir", path, "", NEXT(mkdir)(path, mode));
}

int unlink(const char *path) { INTERRUPTED("unlink", path, "", NEXT(unlink)(path)); }

int rmdir(const char *path) { INTERRUPTED("rmdir", path, "", NEXT(rmdir)(path)); }
