//===- GuardedMemory.cpp - memory between pages without access ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GuardedMemory.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::test {

namespace {

struct Guard {
  std::string name;
  const char *start = nullptr;
  /// The address of the first touch.
  const char *touched = nullptr;
};

/// By where they begin.
std::map<char *, Guard> &guards() {
  static auto *all = new std::map<char *, Guard>;
  return *all;
}

struct sigaction previous;

std::string &running() {
  static auto *what = new std::string;
  return *what;
}

/// The signal handler: runs at the access that touched a guard, after which the code goes on.
void noteTouch(int signal, siginfo_t *info, void *) {
  auto *address = static_cast<char *>(info->si_addr);
  auto behind = guards().upper_bound(address);
  if (behind != guards().begin()) {
    auto &[pages, guard] = *std::prev(behind);
    if (address < pages + kGuardBytes && !guard.touched) {
      guard.touched = address;
      if (mprotect(pages, kGuardBytes, PROT_READ | PROT_WRITE) == 0) {
        return;
      }
    }
  }
  (void)!write(STDERR_FILENO, running().data(), running().size());
  sigaction(signal, &previous, nullptr); // Not ours: it happens again, and ends the process.
}

void close(char *pages, const Guard &guard) {
  if (mprotect(pages, kGuardBytes, PROT_NONE) != 0) {
    ADD_FAILURE() << guard.name << " has no guard: " << std::strerror(errno);
  }
}

/// A fiber that has no stack left can take no signal on it.
void useOtherStack() {
  stack_t now = {};
  sigaltstack(nullptr, &now);
  if (!(now.ss_flags & SS_DISABLE)) {
    return;
  }
  static char memory[size_t(64) << 10];
  now.ss_sp = memory, now.ss_size = sizeof(memory), now.ss_flags = 0;
  sigaltstack(&now, nullptr);
}

/// Returns true if the guard was touched.
bool report(Guard &guard) {
  const char *touched = std::exchange(guard.touched, nullptr);
  if (touched) {
    ADD_FAILURE() << guard.name << " was touched at byte " << touched - guard.start;
  }
  return touched;
}

void watch() {
  static bool isWatching = [] {
    useOtherStack();
    struct sigaction action = {};
    action.sa_sigaction = noteTouch;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGSEGV, &action, &previous) == 0;
  }();
  ASSERT_TRUE(isWatching);
}

} // namespace

size_t roundToPages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void closeGuard(std::string name, char *pages, const char *start) {
  watch();
  Guard &guard = guards()[pages];
  guard = {std::move(name), start};
  close(pages, guard);
}

void dropGuard(char *pages) {
  auto place = guards().find(pages);
  report(place->second);
  guards().erase(place);
}

void nameRunning(std::string what) {
  watch();
  running() = what.empty() ? "" : "memory that is nobody's was touched by " + what + "\n";
}

void expectNoTouches() {
  for (auto &[pages, guard] : guards()) {
    if (report(guard)) {
      close(pages, guard);
    }
  }
}

GuardedMemory::GuardedMemory(std::string givenName, size_t bytes, size_t alignment, Place place,
                             char fill)
    : name(std::move(givenName)), bytes(bytes), pages(roundToPages(bytes)), fill(fill) {
  void *all = mmap(nullptr, pages + 2 * kGuardBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) {
    ADD_FAILURE() << "no memory for " << bytes << " bytes";
    return;
  }
  mapping = static_cast<char *>(all);
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  start = place == Place::AtBegin ? begin() : begin() + pages - rounded;
  std::memset(begin(), fill, pages);
  closeGuard(name, mapping, start);
  closeGuard(name, begin() + pages, start);
}

GuardedMemory::~GuardedMemory() {
  if (mapping) {
    dropGuard(mapping);
    dropGuard(begin() + pages);
    munmap(mapping, pages + 2 * kGuardBytes);
  }
}

void expectFilled(const std::string &name, const char *begin, const char *end, const char *start,
                  char fill) {
  const char *written = std::find_if(begin, end, [&](char byte) { return byte != fill; });
  if (written != end) {
    ADD_FAILURE() << name << " was written at byte " << written - start;
  }
}

void GuardedMemory::expectWithin() const {
  expectFilled(name, begin(), start, start, fill);
  expectFilled(name, start + bytes, begin() + pages, start, fill);
}

} // namespace weft::test
