//===- LocalBackend.h - ranks as threads of one process ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference backend: no messages, no library, clean under every sanitizer. Issued
// collectives run on a communication thread of the rank (IssueQueue.h).
// Buffers given to `Communicator::run` must live until `Backend::run` returns,
// since another rank may still read them after a failure.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H
#define WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H

#include "support/TestDelays.h"
#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt {

struct LocalOptions {
  /// The longest time that a rank waits for the others in one collective.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// The time that the other ranks have to return after a failure; then they are abandoned.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  TestDelays delays = {};
};

std::unique_ptr<Backend> makeLocalBackend(int64_t ranks, const LocalOptions &options);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H
