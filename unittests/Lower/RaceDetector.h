//===- RaceDetector.h - finds races between threads of a block -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two threads of a block may access the same element, one of them to write it, only if one waited
// for the other in between: both came to a barrier, of their block or of their warp. Fibers on a
// host do not show a race if they happen to run in the right order.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_RACEDETECTOR_H
#define WEFT_UNITTESTS_LOWER_RACEDETECTOR_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::test {

/// A moment of a thread: the numbers of barriers that its block and its warp had passed.
struct Moment {
  int32_t thread = -1, warp = 0;
  int64_t blockWaits = 0, warpWaits = 0;
};

class RaceDetector {
public:
  void watch(const char *start, size_t bytes, size_t elementBytes);
  void forgetAll();

  /// Fails the test at the first race, or access of unwatched memory, and is silent from then on.
  void touch(const char *at, size_t bytes, bool isWrite, const Moment &now);
  /// Returns true if memory was accessed since `forgetAll`.
  bool wasTouched() const { return isTouched; }

private:
  /// The last writer, and the last readers of two different warps; a reader may stand for several
  /// threads of its warp.
  struct Element {
    Moment writer, readers[2];
  };
  struct Part {
    const char *start;
    size_t bytes, elementBytes;
    std::vector<Element> elements;
  };

  void touch(Element &element, bool isWrite, const Moment &now, ptrdiff_t number);

  std::vector<Part> parts;
  bool isSilent = false, isTouched = false;
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_RACEDETECTOR_H
