//===- GuardedMemory.h - memory between pages without access --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that reads or writes beyond its memory touches a guard page: the touch is recorded with the
// memory's name, the guard is opened, and the code goes on, so that only the test that ran it
// fails. For one thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_GUARDEDMEMORY_H
#define WEFT_UNITTESTS_LOWER_GUARDEDMEMORY_H

#include <cstddef>
#include <string>
#include <utility>

namespace weft::test {

/// Bytes of uninitialized memory: a NaN in every float type, or numbers so small that a sum hardly
/// shows them. Code that reads them gives different results for the two.
inline constexpr char kNoNumber = '\xFF', kSmallNumber = '\xA5';
/// The byte for memory of integers in place of small numbers: a valid index.
inline constexpr char kSmallIndex = 0;

/// The bytes of uninitialized memory, by the type of its elements.
struct Fill {
  char floats, integers;
};

/// Bytes of a guard, a multiple of the system's pages.
inline constexpr size_t kGuardBytes = size_t(64) << 10;

/// Returns `bytes` rounded up to whole pages.
size_t roundToPages(size_t bytes);

/// Closes the `kGuardBytes` at `pages`. Reports of touches state `name`, and the distance from
/// `start`. Fails the test if the system cannot close them.
void closeGuard(std::string name, char *pages, const char *start);
/// Forgets the guard at `pages`, which must happen before the pages are freed. Fails the test if
/// the guard was touched.
void dropGuard(char *pages);

/// Names the code that runs from now on; empty for none. The name is printed before an invalid
/// access outside of guards ends the process.
void nameRunning(std::string what);

/// Fails the test for each guard that was touched since the last call, and closes it again.
void expectNoTouches();
/// Fails the test if bytes before `end` are not as they were filled.
void expectFilled(const std::string &name, const char *begin, const char *end, const char *start,
                  char fill);

/// The place of memory between its guards: at the second, as near as its alignment allows, or at
/// the first.
enum class Place { AtEnd, AtBegin };

/// Zero or more bytes on pages of their own, with guards on both sides.
class GuardedMemory {
public:
  GuardedMemory(std::string name, size_t bytes, size_t alignment, Place place, char fill);
  GuardedMemory(GuardedMemory &&other) noexcept
      : name(std::move(other.name)), bytes(other.bytes), pages(other.pages), fill(other.fill),
        start(other.start), mapping(std::exchange(other.mapping, nullptr)) {}
  ~GuardedMemory();

  char *get() const { return start; }
  /// Fails the test if bytes beside the memory on its pages were written.
  void expectWithin() const;

private:
  /// Between the guards.
  char *begin() const { return mapping + kGuardBytes; }

  std::string name;
  size_t bytes, pages;
  char fill;
  char *start = nullptr, *mapping = nullptr;
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_GUARDEDMEMORY_H
