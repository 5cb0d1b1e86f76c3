//===- ExitCode.h - exit statuses of an executable ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exit status tells the launcher of a run where to look: at the input, the
// numbers, the memory, or a machine. It is the same on the host and on devices, for
// ranks as threads and as processes. docs/Running.md documents it for users.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXITCODE_H
#define WEFT_RT_EXITCODE_H

namespace weft::rt {

enum class ExitCode : int {
  Success = 0,
  /// Invalid input, a file that cannot be written, or a failed device call.
  Error = 1,
  /// The loss, the gradient norm or a number that would be saved is not finite.
  NotFinite = 3,
  /// The host or a device is out of memory.
  OutOfMemory = 4,
  /// A rank's process ended without a report.
  Dead = 5,
  /// A rank exceeded the timeout and makes no progress.
  Stuck = 6,
  /// A rank exceeded the timeout but still makes progress.
  Slow = 7,
};

} // namespace weft::rt

#endif // WEFT_RT_EXITCODE_H
