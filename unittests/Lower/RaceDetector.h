//===- RaceDetector.h - who touched what, and who waited for whom ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two threads of a block may touch the same element, one of them to write it, only if one waited
// for the other in between: both came to a barrier, of their block or of their warp. Threads that
// run one after another on a host would not show it if they happened to come in the right order.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_RACEDETECTOR_H
#define WEFT_UNITTESTS_LOWER_RACEDETECTOR_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::test {

/// A thread at some place of what it does: how often its block, and its warp, had waited.
struct Moment {
  int32_t thread = -1, warp = 0;
  int64_t blockWaits = 0, warpWaits = 0;
};

class RaceDetector {
public:
  void watch(const char *start, size_t bytes, size_t elementBytes);
  void forgetAll();

  /// Fails the test at the first race, or touch of what is not watched, and is silent from then on.
  void touch(const char *at, size_t bytes, bool isWrite, const Moment &now);
  /// Since all was forgotten.
  bool wasTouched() const { return isTouched; }

private:
  /// The last one of some warp that has read an element, or several of it, and the same of another.
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
