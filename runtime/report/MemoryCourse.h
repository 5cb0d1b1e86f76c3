//===- MemoryCourse.h - the memory in use over the course of a section ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says how many bytes of a rank's arena hold a value that is still needed, at each
// instruction of each action of a section. A value is needed from the instruction that
// writes it to the last that reads it, maybe in a later action: what `forward` leaves to
// `backward` counts in as many frames as micro-batches are in flight at that time. In one
// action, a buffer counts from its first use to its last. Persistent buffers always count.
//
// `BufferLives` is coarser: there, a place that any action needs at an instruction counts
// whenever that instruction runs. The arena is packed by it, because buffers have the same
// place in all actions. So no instant of a course has more bytes than the arena, and the
// arena has more bytes than all instants if different places are needed in different
// actions of a body, or if the packing has holes.
//
// Actions of one body that keep the same values for others share a profile, so a course
// takes little more memory than the bodies, and time in proportion to actions, times the
// values that pass between actions.
//
// All functions are pure and may run on any thread. REQUIRES of all: the program is
// well-formed.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_MEMORYCOURSE_H
#define WEFT_RT_REPORT_MEMORYCOURSE_H

#include "weft-rt/Program.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::rt {

inline constexpr size_t kBufferClasses = size_t(BufferClass::Workspace) + 1;

/// The bytes in use at an instant.
struct MemoryUse {
  /// By the class of their buffers, without padding; `framed` is the part that lies in frames.
  std::array<uint64_t, kBufferClasses> bytes = {}, framed = {};
  /// All together, each buffer with padding to the alignment of the arena. No arena is smaller than
  /// this of any instant.
  uint64_t aligned = 0;

  uint64_t total() const;
  uint64_t totalFramed() const;
  MemoryUse &operator+=(const MemoryUse &other);
  MemoryUse &operator-=(const MemoryUse &other);
  bool operator==(const MemoryUse &) const = default;
};

/// An instruction of a section: the number of its action, and its number in the action's body.
struct Instant {
  size_t action = 0, instruction = 0;
  auto operator<=>(const Instant &) const = default;
};

struct MemoryCourse {
  /// The use of values that an action's body uses itself, at each of its instructions.
  struct Profile {
    std::vector<MemoryUse> instants;
    /// The first instruction with the most bytes, aligned.
    size_t peak = 0;
  };
  struct ActionUse {
    /// A number in `profiles`.
    size_t profile = 0;
    /// The use of all else, which is needed throughout the action.
    MemoryUse kept;
  };
  std::vector<Profile> profiles;
  /// One for each action of the section.
  std::vector<ActionUse> actions;

  /// REQUIRES: the section has this instant.
  MemoryUse at(const Instant &instant) const;
  /// Returns the first instant with the most bytes, aligned; none if there are no instructions.
  std::optional<Instant> peak() const;
};

/// Returns the use of persistent buffers alone.
MemoryUse persistentUse(const Program &program);

MemoryCourse findMemoryCourse(const Program &program, const std::vector<Action> &section);

/// The instants of the first and the last use of the value that a place of a buffer holds.
struct ValueLife {
  Instant first, last;
};

/// A buffer that is in use at an instant.
struct LiveBuffer {
  uint32_t buffer = 0;
  /// One for each of its frames in use, or one alone; in the order of their first uses. Empty if
  /// the buffer is persistent.
  std::vector<ValueLife> values;

  /// Returns the bytes of all these places.
  uint64_t bytes(const Program &program) const;
};

/// Returns the buffers in use at `instant`, those with most bytes first.
std::vector<LiveBuffer> findLiveBuffers(const Program &program, const std::vector<Action> &section,
                                        const Instant &instant);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_MEMORYCOURSE_H
