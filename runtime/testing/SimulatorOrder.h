//===- SimulatorOrder.h - what happens before what on streams ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is numbered by its stream and its place in it, from 1. A Clock says of each stream how much
// of it comes before: what a clock covers is done when the clock's owner begins. Two units of work
// of which one writes what the other touches race unless the clock of one covers the other,
// whatever order they were run in.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORORDER_H
#define WEFT_RT_TESTING_SIMULATORORDER_H

#include "weft-rt/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::rt::cuda {

/// A place in a stream.
struct Place {
  size_t stream = 0;
  uint64_t index = 0;
};

class Clock {
public:
  uint64_t of(size_t stream) const { return stream < reached.size() ? reached[stream] : 0; }
  bool covers(Place place) const { return of(place.stream) >= place.index; }
  bool covers(const Clock &other) const;
  void join(Place place);
  void join(const Clock &other);

private:
  std::vector<uint64_t> reached;
};

/// Bytes that work reads or writes.
struct Touch {
  uint64_t begin = 0, end = 0;
  Access access = Access::Read;
  /// "operand 2".
  std::string what;

  bool writes() const { return access != Access::Read; }
};

/// Whether they share bytes that one of them writes.
bool collide(const Touch &a, const Touch &b);

/// All touches of work that the host does not know to be done.
class Races {
public:
  /// Checks work that touches this against what was enqueued before.
  void check(const std::vector<Touch> &touches, const Clock &clock) const;
  void add(const std::vector<Touch> &touches, Place place, const std::string &work);
  /// Drops what `host` covers: all that is enqueued from now on comes after it.
  void forget(const Clock &host);
  bool touches(uint64_t begin, uint64_t end) const;

private:
  struct Past {
    Touch touch;
    Place place;
    std::string work;
  };

  std::vector<Past> past;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORORDER_H
