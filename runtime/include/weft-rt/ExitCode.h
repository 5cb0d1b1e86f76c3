//===- ExitCode.h - how an executable ends ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What whoever has started a run can tell from its exit status alone: whether to look at
// the input, at the numbers, at the memory, or at a machine. The same on the host and on
// devices, for ranks as threads and as processes. docs/Running.md says it to users.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXITCODE_H
#define WEFT_RT_EXITCODE_H

namespace weft::rt {

enum class ExitCode : int {
  Success = 0,
  /// Bad input, a file that cannot be written, a call of a device that fails.
  Error = 1,
  /// The loss or the gradient norm.
  NotFinite = 3,
  /// Of the host or of a device.
  OutOfMemory = 4,
  /// A rank's process has ended without a word.
  Dead = 5,
  /// A rank is later than it may be, and does not move.
  Stuck = 6,
  /// A rank is later than others wait for it, but still moves.
  Slow = 7,
};

} // namespace weft::rt

#endif // WEFT_RT_EXITCODE_H
