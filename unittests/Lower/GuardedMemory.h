//===- GuardedMemory.h - memory between pages without access --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whoever reads or writes beyond its memory touches a guard: that is noted with the memory's name,
// the guard is opened, and the code goes on, so that the test fails which ran it, and the others
// still run. For one thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_GUARDEDMEMORY_H
#define WEFT_UNITTESTS_LOWER_GUARDEDMEMORY_H

#include <cstddef>
#include <string>
#include <utility>

namespace weft::test {

/// What memory holds before anyone writes it: what is no number in any float type, or numbers so
/// small that a sum hardly shows them. What code makes of the two differs, if it reads them.
inline constexpr char kNoNumber = '\xFF', kSmallNumber = '\xA5';
/// In the place of small numbers where integers are held: an index of what there is.
inline constexpr char kSmallIndex = 0;

/// By what memory holds.
struct Fill {
  char floats, integers;
};

/// Bytes of a guard, a multiple of the system's pages.
inline constexpr size_t kGuardBytes = size_t(64) << 10;

/// Bytes, and those that are missing to whole pages.
size_t roundToPages(size_t bytes);

/// Closes the `kGuardBytes` at `pages`. What touches them is told by `name`, and by how far it is
/// from `start`. Fails the test where the system does not close them.
void closeGuard(std::string name, char *pages, const char *start);
/// Whoever takes back the pages drops their guard first, which fails the test if it was touched.
void dropGuard(char *pages);

/// What runs from now on, nothing if it is empty: told before a touch of what is no guard ends the
/// process.
void nameRunning(std::string what);

/// Fails the test for each guard that was touched since the last call, and closes it again.
void expectNoTouches();
/// Fails the test if bytes before `end` are not as they were filled.
void expectFilled(const std::string &name, const char *begin, const char *end, const char *start,
                  char fill);

/// Where between its guards memory lies: at the second, as near as its alignment allows, or at the
/// first.
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
  /// Fails the test if what lies on its pages beside the memory was written.
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
