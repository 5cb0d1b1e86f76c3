//===- allocations.c - counts what a program allocates in its steps ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loaded before the C library (LD_PRELOAD), for tests alone. Replaces all functions by which a
// program or its libraries get memory: malloc and its relatives, through which operator new goes as
// well, mmap, brk, and pthread_create, which maps a stack.
//
// The borders of steps are the lines that rank 0 prints, "step 3/8  loss ...". Calls count from the
// line of the second step until the line of the last but one. Ranks agree at the end of each step,
// so all are in steps in that time; processes share the counts and the borders by the file that
// the environment variable ALLOCATIONS names. Each call that counts appends its stack to the file
// that ALLOCATIONS_LOG names. If ALLOCATIONS_EXCEPT is set, calls do not count while a function of
// a file whose name begins so is on the stack.
//
//===----------------------------------------------------------------------===//

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kBefore, kInSteps, kAfter };
/// The first is the same in `allocations.py`.
enum { kMostLogged = 100000, kMostFrames = 24 };

/// The same in `allocations.py`.
struct Counts {
  /// The processes that were watched, the calls in steps, and all others.
  _Atomic int64_t processes, inSteps, elsewhere;
  /// kBefore, kInSteps or kAfter.
  _Atomic int64_t state;
};

static struct Counts *counts;
static const char *except;
static int logFile = -1;
/// True while this thread is in a function of this file, whose own allocations do not count.
static _Thread_local int isInside;

// The C library's own functions under names that nothing replaces.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("ALLOCATIONS"), *log = getenv("ALLOCATIONS_LOG");
  if (!path || !log) {
    return;
  }
  isInside = 1;
  except = getenv("ALLOCATIONS_EXCEPT");
  void *frames[1];
  backtrace(frames, 1); // Loads what it needs.
  int file = open(path, O_RDWR | O_CLOEXEC);
  void *shared = mmap(NULL, sizeof(struct Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  logFile = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0 || logFile < 0 || shared == MAP_FAILED) {
    abort();
  }
  close(file);
  atomic_fetch_add(&((struct Counts *)shared)->processes, 1);
  counts = shared;
  isInside = 0;
}

static const char *fileOf(const Dl_info *info) {
  const char *slash = info->dli_fname ? strrchr(info->dli_fname, '/') : NULL;
  return slash ? slash + 1 : info->dli_fname ? info->dli_fname : "";
}

/// Counts a call in steps. Appends a line to the log: the call, and the stack as files and the
/// offsets in them.
static void note(const char *function, size_t bytes) {
  void *frames[kMostFrames];
  char line[4096];
  size_t length = (size_t)snprintf(line, sizeof line, "%s of %zu bytes", function, bytes);
  int depth = backtrace(frames, kMostFrames);
  // Without this function and the two that call it.
  for (int i = 3; i < depth && length + 256 < sizeof line; ++i) {
    Dl_info info = {0};
    if (!dladdr(frames[i], &info)) {
      continue;
    }
    if (except && strncmp(fileOf(&info), except, strlen(except)) == 0) {
      return;
    }
    length += (size_t)snprintf(line + length, 256, " %s+%#zx", fileOf(&info),
                               (size_t)((char *)frames[i] - (char *)info.dli_fbase));
  }
  line[length++] = '\n';
  bool isLogged = atomic_fetch_add(&counts->inSteps, 1) < kMostLogged;
  // In one call, as threads share the file.
  if (isLogged && write(logFile, line, length) != (ssize_t)length) {
    abort();
  }
}

static void count(const char *function, size_t bytes) {
  if (!counts || isInside) {
    return;
  }
  if (atomic_load(&counts->state) != kInSteps) {
    atomic_fetch_add(&counts->elsewhere, 1);
    return;
  }
  isInside = 1;
  note(function, bytes);
  isInside = 0;
}

void *malloc(size_t bytes) {
  count("malloc", bytes);
  return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes) {
  count("calloc", number * bytes);
  return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes) {
  count("realloc", bytes);
  return __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t number, size_t bytes) {
  size_t all;
  count("reallocarray", number * bytes);
  if (__builtin_mul_overflow(number, bytes, &all)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_realloc(memory, all);
}

void *memalign(size_t alignment, size_t bytes) {
  count("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  count("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  count("posix_memalign", bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

void *valloc(size_t bytes) {
  count("valloc", bytes);
  return __libc_memalign((size_t)sysconf(_SC_PAGESIZE), bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  count("mmap", bytes);
  return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return mmap(at, bytes, protection, flags, file, offset);
}

int brk(void *end) {
  count("brk", 0);
  return ((__typeof__(&brk))dlsym(RTLD_NEXT, "brk"))(end);
}

void *sbrk(intptr_t bytes) {
  count("sbrk", (size_t)bytes);
  return ((__typeof__(&sbrk))dlsym(RTLD_NEXT, "sbrk"))(bytes);
}

void *mremap(void *old, size_t oldBytes, size_t bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void *at = va_arg(arguments, void *);
  va_end(arguments);
  count("mremap", bytes);
  return (void *)syscall(SYS_mremap, old, oldBytes, bytes, flags, at);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument) {
  count("pthread_create", 0);
  __typeof__(&pthread_create) create =
      (__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, work, argument);
}

size_t fwrite(const void *text, size_t bytes, size_t number, FILE *file) {
  __typeof__(&fwrite) next = (__typeof__(&fwrite))dlsym(RTLD_NEXT, "fwrite");
  size_t written = next(text, bytes, number, file);
  long step, steps;
  char line[64] = "";
  size_t length = bytes * number < sizeof line - 1 ? bytes * number : sizeof line - 1;
  memcpy(line, text, length);
  if (counts && file == stdout && sscanf(line, "step %ld/%ld", &step, &steps) == 2) {
    if (step == 1) {
      atomic_store(&counts->state, kInSteps);
    } else if (step == steps - 2) {
      atomic_store(&counts->state, kAfter);
    }
  }
  return written;
}
