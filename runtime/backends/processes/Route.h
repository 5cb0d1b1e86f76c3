//===- Route.h - which bytes of a collective go where ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every collective is one or two exchanges, in which each member of the group may send a
// part to each, and does with the parts that come one of two things: it puts them where
// they belong, or it reduces them, in group order, so that the bits are those of every
// other backend.
//
//   all-reduce      of few bytes: everyone sends all to all, at most kFewBytes in sum, and
//                   reduces all
//                   of more: member i gets slice i of all and reduces it (the first
//                   exchange); then it sends the result to all (the second)
//   reduce-scatter  member i gets its part of all and reduces it
//   all-gather,     member i gets its part of each
//   all-to-all,
//   permute
//
// With n members and operands of b bytes, a member sends: all-reduce 2b(n-1)/n, or b(n-1) if
// few; reduce-scatter and all-to-all b(n-1)/n; all-gather b(n-1); permute b.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_ROUTE_H
#define WEFT_RT_BACKENDS_PROCESSES_ROUTE_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt::mpi {

/// The elements of a part, counted row-major, and where they lie in a buffer.
class Strip {
public:
  /// A part of `shape` in a buffer of `strides`, the last of which is 1. Elements are
  /// `elementBytes` long.
  Strip(std::vector<int64_t> shape, const std::vector<int64_t> &strides, size_t elementBytes);
  /// `count` elements, one after another.
  Strip(int64_t count, size_t elementBytes) : Strip({count}, {1}, elementBytes) {}

  /// Whether the elements lie one after another.
  bool isDense() const { return outer.empty(); }
  /// Bytes from the beginning of the part to element `index`, if it is dense.
  int64_t offsetOf(int64_t index) const { return index * bytes; }

  /// Copies elements `first` to before `first + count` from the part that begins at `part`.
  void pack(const char *part, int64_t first, int64_t count, char *packed) const;
  void unpack(const char *packed, int64_t first, int64_t count, char *part) const;

private:
  struct Loop {
    int64_t count, stride;
  };
  template <typename Visit> void forEachRun(int64_t first, int64_t count, const Visit &visit) const;

  int64_t bytes;
  /// Elements that lie together.
  int64_t run = 1;
  /// Outermost first.
  std::vector<Loop> outer;
};

/// One member's part of an exchange.
struct Exchange {
  struct Part {
    /// Bytes from the beginning of the buffer, and elements.
    int64_t offset = 0, count = 0;
  };

  Strip from, to;
  /// By member: what it is sent, what comes from it. Those to and from the member itself too.
  std::vector<Part> sends, comes;
  /// Whether parts that come are reduced. All are then for the same place.
  bool reduces = false;
  /// Whether the result is sent and not the operand.
  bool sendsResult = false;

  /// Whether nothing needs to be packed or kept anywhere before it is in its place.
  bool isDirect() const { return !reduces && from.isDense() && to.isDense(); }
  /// The most elements that go from any member to any; the same for all members.
  int64_t longest() const;
};

/// Parts of up to so many bytes go with the message by which members meet.
inline constexpr int64_t kFewBytes = 16384;

/// The exchanges of member `me` of a group of `members`, at least two.
std::vector<Exchange> routeOf(const Collective &collective, int64_t members, int64_t me);

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_ROUTE_H
