//===- RunState.cpp - shared state of the threads of one local run ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/RunState.h"

using namespace weft::rt;
using namespace weft::rt::local;

bool RunState::fail(Failure found) {
  std::lock_guard lock(mutex);
  if (!failure) {
    failure = std::move(found);
  }
  stop.store(true, std::memory_order_release);
  changed.notify_all();
  return false;
}

void RunState::leave(int64_t rank) {
  progress[size_t(rank)].left.store(true, std::memory_order_release);
  std::lock_guard lock(mutex);
  ++leftCount;
  changed.notify_all();
}

RunResult RunState::wait(std::chrono::nanoseconds grace) {
  std::unique_lock lock(mutex);
  auto allLeft = [&] { return leftCount == progress.size(); };
  changed.wait(lock, [&] { return allLeft() || failure; });
  if (failure) {
    changed.wait_for(lock, grace, allLeft);
  }
  return {failure, !allLeft()};
}
