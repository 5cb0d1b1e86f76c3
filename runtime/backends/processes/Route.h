//===- Route.h - the messages of each collective --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every collective is one or two exchanges. In an exchange each member of the group may send
// one part to each member, and either copies the parts that it receives to their places, or
// reduces them in group order, so that the bits are the same as on every other backend.
//
//   all-reduce      of few bytes: every member sends its operand to all members, at most
//                   kFewBytes in sum, and reduces all operands
//                   of more: member i gets slice i of all operands and reduces them (the
//                   first exchange), then sends the result to all members (the second)
//   reduce-scatter  member i gets its part of all operands and reduces them
//   all-gather,     member i gets its part of each operand
//   all-to-all,
//   permute,
//   transfer
//
// With n members and operands of b bytes, a member sends: all-reduce 2b(n-1)/n, or b(n-1) if
// few; reduce-scatter and all-to-all b(n-1)/n; all-gather b(n-1); permute b;
// of a transfer the first member sends b.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_ROUTE_H
#define WEFT_RT_BACKENDS_PROCESSES_ROUTE_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt::mpi {

/// The layout of a part in a buffer. Its elements are numbered row-major.
class Strip {
public:
  /// A part of `shape` in a buffer of `strides`, the last of which is 1. Shape and strides count
  /// elements of `elementBytes`.
  Strip(std::vector<int64_t> shape, const std::vector<int64_t> &strides, size_t elementBytes);
  /// A contiguous part of `count` elements.
  Strip(int64_t count, size_t elementBytes) : Strip({count}, {1}, elementBytes) {}

  /// Returns true if the part is contiguous.
  bool isDense() const { return outer.empty(); }
  /// Returns the bytes from the beginning of the part to element `index`. REQUIRES: isDense().
  int64_t offsetOf(int64_t index) const { return index * bytes; }

  /// Copy elements [first, first + count) of the part that begins at `part` to or from `packed`.
  void pack(const char *part, int64_t first, int64_t count, char *packed) const;
  void unpack(const char *packed, int64_t first, int64_t count, char *part) const;

private:
  struct Loop {
    int64_t count, stride;
  };
  template <typename Visit> void forEachRun(int64_t first, int64_t count, const Visit &visit) const;

  int64_t bytes;
  /// The number of elements in a contiguous run.
  int64_t run = 1;
  /// The loops over runs, outermost first.
  std::vector<Loop> outer;
};

/// One member's part of an exchange.
struct Exchange {
  struct Part {
    /// The bytes before the part in its buffer, and the number of its elements.
    int64_t offset = 0, count = 0;
  };

  Strip from, to;
  /// The parts that go to each member and come from each member, itself included.
  std::vector<Part> sends, comes;
  /// True if the received parts are reduced; then all have the same place.
  bool reduces = false;
  /// True if members send from their results, not from their operands.
  bool sendsResult = false;

  /// Returns true if parts can be sent and received in place, without packing.
  bool isDirect() const { return !reduces && from.isDense() && to.isDense(); }
  /// Returns the elements of the longest part between any two members; the same on all members.
  int64_t longest() const;
};

/// Parts of up to this many bytes travel in the greeting (see CollectiveExchange.h).
inline constexpr int64_t kFewBytes = 16384;

/// Returns the exchanges of member `me`. REQUIRES: members >= 2.
std::vector<Exchange> routeOf(const Collective &collective, int64_t members, int64_t me);

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_ROUTE_H
