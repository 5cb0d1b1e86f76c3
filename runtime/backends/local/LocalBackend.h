//===- LocalBackend.h - ranks as threads of one process ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The readable backend: no messages, no library, clean under every sanitizer.
// Buffers given to `Communicator::run` must live until `Backend::run` returns,
// since after a failure a partner may still be reading them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H
#define WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H

#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt {

struct LocalOptions {
  /// How long a rank waits for its partners in one collective.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// How long, after a failure, the others may take to return before they are abandoned.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
};

std::unique_ptr<Backend> makeLocalBackend(std::vector<Axis> mesh, const LocalOptions &options);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_LOCAL_LOCALBACKEND_H
