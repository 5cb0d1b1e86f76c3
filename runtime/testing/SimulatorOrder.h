//===- SimulatorOrder.h - the order of work on streams, and races --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks (Fidge, Mattern 1988). Each unit of work has a stream and an index there, from 1. A
// Clock holds an index for each stream: all work up to these indices is done before the clock's
// owner begins. Two units of work race if one writes bytes that the other touches and neither's
// clock covers the other, in whatever order they ran.
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

/// A range of bytes that work reads or writes.
struct Touch {
  uint64_t begin = 0, end = 0;
  Access access = Access::Read;
  /// The range's name for errors: "operand 2".
  std::string what;

  bool writes() const { return access != Access::Read; }
};

/// Returns true if they share bytes that one of them writes.
bool collide(const Touch &a, const Touch &b);

/// The touches of all work that the host has not seen to be done.
class Races {
public:
  /// Fails if work with these touches and this clock races with earlier work.
  void check(const std::vector<Touch> &touches, const Clock &clock) const;
  void add(const std::vector<Touch> &touches, Place place, const std::string &work);
  /// Drops the touches of work that `host` covers, since all later work comes after it.
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
