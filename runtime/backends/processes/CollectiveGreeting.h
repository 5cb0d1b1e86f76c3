//===- CollectiveGreeting.h - a member's first message in a collective ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each member of a group sends every other one the collective that it has begun, and few elements
// with it. So members that differ notice before they take each other's elements.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEGREETING_H
#define WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEGREETING_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::rt::mpi {

struct CollectiveGreeting {
  /// The most bytes of the text; longer ones are cut.
  static constexpr size_t kMostText = 1024;
  /// The most bytes of a greeting besides its elements.
  static constexpr size_t kMostHead = 16 + kMostText + 15;

  /// A hash of the call, and its text. `text` and `elements` are parts of the message.
  uint64_t fingerprint = 0;
  std::string_view text;
  /// The elements, aligned to 16 bytes in the message, so that they can be used in place.
  std::span<const char> elements;

  /// Writes all but the elements to `target`, of `kMostHead` bytes, and returns the place for them.
  static char *encode(char *target, uint64_t fingerprint, std::string_view text,
                      size_t elementBytes);
  /// Returns nothing unless `message` is a whole greeting and no more.
  static std::optional<CollectiveGreeting> decode(std::span<const char> message);
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEGREETING_H
