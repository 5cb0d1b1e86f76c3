//===- IssueQueue.cpp - the collectives that a rank has issued -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/IssueQueue.h"

#include <algorithm>
#include <chrono>

using namespace weft::rt;
using namespace weft::rt::local;

IssueQueue::~IssueQueue() {
  if (!thread.joinable()) {
    return;
  }
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  ready.notify_one();
  thread.join();
}

void IssueQueue::reserve(size_t count) {
  std::lock_guard lock(mutex);
  issued.reserve(count);
}

void IssueQueue::push(const Issued &next) {
  if (!thread.joinable()) {
    thread = std::thread([this] { serve(); });
  }
  {
    std::lock_guard lock(mutex);
    issued.push_back(next);
  }
  ready.notify_one();
}

bool IssueQueue::isEmpty() const {
  std::lock_guard lock(mutex);
  return issued.empty();
}

template <typename IsDone> double IssueQueue::waitUntil(const IsDone &isDone) {
  using Clock = std::chrono::steady_clock;
  Clock::duration waited = {};
  std::unique_lock lock(mutex);
  while (!isDone()) {
    if (!isRunning) {
      runFirst(lock, /*isBeside=*/false);
      continue;
    }
    const Clock::time_point begin = Clock::now();
    ended.wait(lock);
    waited += Clock::now() - begin;
  }
  return std::chrono::duration<double>(waited).count();
}

double IssueQueue::wait(const Operation &operation) {
  return waitUntil([&] {
    return std::ranges::none_of(issued,
                                [&](const Issued &each) { return each.operation == &operation; });
  });
}

double IssueQueue::waitForAll() {
  return waitUntil([&] { return issued.empty(); });
}

/// Runs the first collective without the lock.
void IssueQueue::runFirst(std::unique_lock<std::mutex> &lock, bool isBeside) {
  const Issued first = issued.front();
  isRunning = true;
  lock.unlock();
  run(first, isBeside);
  lock.lock();
  issued.erase(issued.begin());
  isRunning = false;
  (isBeside ? ended : ready).notify_one();
}

void IssueQueue::serve() {
  std::unique_lock lock(mutex);
  while (!isEnding) {
    if (issued.empty() || isRunning) {
      ready.wait(lock);
    } else {
      runFirst(lock, /*isBeside=*/true);
    }
  }
}
