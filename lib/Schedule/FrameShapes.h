//===- FrameShapes.h - what bodies need of frames ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between its first and its last action a frame has all its bytes. In the first they fill
// one after another, and in the last they are free one after another. The shape of a set in
// a body says which bytes of a frame an action of the body needs, and when. What another
// frame needs from then on, or until then, may share bytes with it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_FRAMESHAPES_H
#define WEFT_LIB_SCHEDULE_FRAMESHAPES_H

#include "weft-rt/BodyUses.h"

#include <map>
#include <set>
#include <tuple>

namespace weft::schedule {

/// Bytes of a frame that are needed from the first to the last of these instructions of a body.
struct Taken {
  uint64_t begin = 0, end = 0;
  int64_t first = 0, last = 0;
};

/// Distances that lie strictly between two numbers.
struct Distances {
  int64_t begin = 0, end = 0;
};

/// Returns the lists of bodies through which the micro-batches of a section pass. Nearly all have
/// the same one.
std::set<std::vector<uint32_t>> findCourses(const std::vector<rt::Action> &section);

/// How bodies use buffers, whether these lie in frames or not. The program must outlive this
/// object, and keep its bodies and actions.
class BodyNeeds {
public:
  explicit BodyNeeds(const rt::Program &program);

  /// Returns the uses of buffers by a body, in the order of buffers. A use beside computation lasts
  /// as long as is predicted.
  const std::vector<rt::BufferUse> &uses(uint32_t body) const { return allUses[body]; }
  bool uses(uint32_t body, uint32_t buffer) const { return findUse(body, buffer); }
  /// Returns the number of bodies that use a buffer.
  uint32_t users(uint32_t buffer) const { return userCounts[buffer]; }
  /// Returns when an action of the body needs the value of a buffer that lies in frames.
  Taken find(uint32_t body, uint32_t buffer) const;

private:
  /// Returns a body's use of a buffer; null if there is none.
  const rt::BufferUse *findUse(uint32_t body, uint32_t buffer) const;
  void extendBeside(uint32_t body);
  void findNeededAfter(const std::vector<rt::Action> &section);
  /// The same for what an action of no micro-batch leaves to those of several.
  void findGatheredAfter(const std::vector<rt::Action> &section);
  /// Notes the bodies that leave values of buffers for which `follows` holds to later ones.
  template <typename Follows>
  void followCourse(std::span<const uint32_t> course, const Follows &follows);

  const rt::Program &program;
  std::vector<std::vector<rt::BufferUse>> allUses;
  std::vector<uint32_t> userCounts;
  /// Bodies and buffers whose values of them later actions read, of their micro-batch or, if they
  /// are gathered, of any.
  std::set<std::pair<uint32_t, uint32_t>> neededAfter;
};

/// The shapes of the frame sets of a program, which must keep the places of buffers in frames.
class FrameShapes {
public:
  FrameShapes(const rt::Program &program, const BodyNeeds &needs);

  size_t setCount() const { return buffersOf.size(); }
  /// Returns what an action of the body needs of a frame of the set, by the first byte.
  std::vector<Taken> find(uint32_t set, uint32_t body) const;
  /// Returns the most bytes that an action of the body needs at one instruction of frames of these
  /// sets.
  uint64_t most(std::span<const uint32_t> sets, uint32_t body) const;
  /// Returns how far a frame of `set` must not begin behind the beginning of one of `other`, if
  /// both are needed in an action of the body and in no other: ascending, disjoint.
  const std::vector<Distances> &between(uint32_t other, uint32_t set, uint32_t body);

private:
  const rt::Program &program;
  const BodyNeeds &needs;
  std::vector<std::vector<uint32_t>> buffersOf;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<Distances>> found;
};

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_FRAMESHAPES_H
