//===- Engine.cpp - runs collectives by messages --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Engine.h"

#include "backends/CallText.h"
#include "support/Text.h"

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

/// The time for which a waiting rank polls, and yields to other threads, before it sleeps. A rank
/// that sleeps is late by more than a small collective takes; then the others fall asleep as well,
/// and all are late from then on.
constexpr std::chrono::milliseconds kAwake(2);

/// The time after which the helping thread looks again: for the next message of a collective that
/// has moved lately, and for partners that may compute.
constexpr std::chrono::microseconds kSoon(100), kLater(1000);

constexpr int32_t kCollectTag = kTags - 1;

/// Returns the key by which the collectives of a group are counted: its number, unless others of
/// the rank's groups have it too.
int64_t counterOf(const RankGroup &group) {
  if (group.number != kPairs) {
    return group.number;
  }
  auto [low, high] = std::minmax(group.ranks.front(), group.ranks.back());
  return (low + 1) << 32 | high;
}

} // namespace

Engine::Engine(const TransportTable &library, uint64_t world, int64_t ranks, int64_t rank,
               FailureDetector &detector, std::chrono::nanoseconds timeout,
               const TestDelays &delays)
    : post{library, world, rank, detector}, timeout(timeout), exchange(post, size_t(ranks)),
      delays(delays), shaker(delays, rank, /*thread=*/1) {
  Collective nothing = {.kind = CollectiveKind::AllGather, .type = ElementType::I32, .shape = {0}};
  collecting = prepare(nothing, allRanks(ranks),
                       {"control", 1, "rank 0 collects what ranks have for files"});
}

Communicator::Handle Engine::prepare(const Collective &collective, const RankGroup &group,
                                     const CallSite &site) {
  Operation operation;
  operation.collective = collective;
  operation.site = site;
  operation.text = describeCall(collective, group, site);
  operation.fingerprint = fingerprintOf(collective, group, site);
  operation.group = group;
  operation.counter = counterOf(group);
  operation.me = group.indexOf(post.self);
  operation.linkDelay = delays.ofLink(collective, group.ranks.size());
  if (group.ranks.size() > 1) {
    operation.exchanges = routeOf(collective, int64_t(group.ranks.size()), int64_t(operation.me));
  }
  std::lock_guard lock(mutex);
  begunCounts.try_emplace(operation.counter, 0);
  operations.push_back(std::move(operation));
  queue.reserve(operations.size());
  return Communicator::Handle(operations.size() - 1);
}

bool Engine::issue(Communicator::Handle handle, const void *operand, void *result) {
  std::lock_guard lock(mutex);
  queue.push_back({&operations[handle], operand, result});
  if (!post.detector.stopped()) {
    advance();
  }
  return !post.detector.stopped();
}

bool Engine::isQueued(Communicator::Handle handle) const {
  return std::ranges::any_of(
      queue, [&](const Issued &issued) { return issued.operation == &operations[handle]; });
}

bool Engine::wait(Communicator::Handle handle) {
  Clock::time_point begin = Clock::now(), before = begin;
  nextAsk = std::chrono::milliseconds(100);
  hasReported = false;
  post.detector.enter(&operations[handle].text);
  isAttended.store(true, std::memory_order_relaxed);
  bool isMore = false;
  while (!post.detector.stopped()) {
    bool moved = false, isDone = false;
    Clock::duration idle = {}, pause = {};
    {
      std::lock_guard lock(mutex);
      moved = advance();
      pause = pauseLeft();
      isDone = !isQueued(handle);
      isMore = !queue.empty();
      idle = Clock::now() - std::max(begin, lastMove);
    }
    if (isDone) {
      break;
    }
    if (!moved) {
      keepWaiting(idle, pause);
      Clock::time_point now = Clock::now();
      waited += std::chrono::duration<double>(now - before).count();
    }
    before = Clock::now();
  }
  isAttended.store(false, std::memory_order_relaxed);
  if (isMore) {
    post.detector.wake(); // The helping thread may have found no work before.
  }
  post.detector.leave();
  return !post.detector.stopped();
}

/// Waits a little for other ranks, or for the end of a test's pause, and reports missing ranks if
/// `idle` without progress is long.
void Engine::keepWaiting(Clock::duration idle, Clock::duration pause) {
  if (pause.count() > 0) {
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, std::chrono::milliseconds(1)));
    return;
  }
  if (idle > timeout && !hasReported) {
    hasReported = true;
    report(true);
  } else if (idle > nextAsk && !hasReported) {
    nextAsk = idle + std::chrono::seconds(1);
    report(false);
  }
  pauseFor(idle);
}

/// Sleeps a little if `idle` without progress is long.
void Engine::pauseFor(Clock::duration idle) {
  if (idle >= kAwake) {
    std::this_thread::sleep_for(std::min<Clock::duration>(idle / 8, std::chrono::milliseconds(1)));
  }
}

/// Reports the missing ranks to rank 0.
void Engine::report(bool isTooLong) {
  Waiting waiting;
  {
    std::lock_guard lock(mutex);
    if (queue.empty()) {
      return;
    }
    const Operation &operation = *queue.front().operation;
    std::string time = concat(" waited ", std::chrono::duration<double>(timeout).count(), " s in ");
    waiting = {concat("rank ", post.self, isTooLong ? time : " waits in ", operation.text),
               isTooLong,
               operation.counter,
               begunCounts[operation.counter],
               exchange.missing(),
               std::chrono::duration_cast<std::chrono::milliseconds>(timeout)};
  }
  if (!waiting.missing.empty()) {
    post.detector.waits(waiting);
  }
}

std::chrono::microseconds Engine::help() {
  // The rank's thread advances the queue; MPI may yield within a test, with the lock held.
  if (isAttended.load(std::memory_order_relaxed)) {
    return FailureDetector::kNoWork;
  }
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    return FailureDetector::kNoWork; // Another thread advances the queue.
  }
  if (!post.detector.stopped()) {
    isHelping.store(true, std::memory_order_relaxed);
    advance();
    isHelping.store(false, std::memory_order_relaxed);
  }
  if (queue.empty() || post.detector.stopped()) {
    return FailureDetector::kNoWork;
  }
  if (Clock::duration pause = pauseLeft(); pause.count() > 0) {
    return std::chrono::ceil<std::chrono::microseconds>(pause);
  }
  return Clock::now() - lastMove < kAwake ? kSoon : kLater;
}

/// Returns the end of a pause that begins now; no time if there is none.
static Engine::Clock::time_point endOfPause(TestDelays::Duration pause) {
  return pause.count() == 0 ? Engine::Clock::time_point() : Engine::Clock::now() + pause;
}

Engine::Clock::duration Engine::pauseLeft() const {
  return pausesUntil == Clock::time_point() ? Clock::duration() : pausesUntil - Clock::now();
}

/// Takes the next step with the first collective of the queue. Returns false if that must wait.
bool Engine::advanceFirst() {
  const Operation &operation = *queue.front().operation;
  switch (stage) {
  case Stage::Next:
    pausesUntil = endOfPause(shaker.next());
    stage = Stage::Beginning;
    return true;
  case Stage::Beginning:
    if (pauseLeft().count() > 0) {
      return false;
    }
    ++begunCounts[operation.counter];
    exchange.begin(queue.front());
    stage = Stage::Exchanging;
    return true;
  case Stage::Exchanging:
    if (!exchange.isOver()) {
      return exchange.advance();
    }
    pausesUntil = endOfPause(operation.linkDelay);
    stage = Stage::Ending;
    return true;
  case Stage::Ending:
    if (pauseLeft().count() > 0) {
      return false;
    }
    post.detector.ended(&operation.text);
    queue.erase(queue.begin());
    stage = Stage::Next;
    return true;
  }
  return false;
}

/// Does all work that needs no waiting. Returns true if there was progress.
bool Engine::advance() {
  bool moved = false;
  while (!queue.empty() && !post.detector.stopped() && advanceFirst()) {
    moved = true;
  }
  if (moved) {
    lastMove = Clock::now();
  }
  return moved;
}

/// Waits for one message of `collect`, of `length` bytes.
bool Engine::transfer(const Operation &operation, int64_t partner, uint64_t request,
                      size_t length) {
  Clock::time_point begin = Clock::now();
  bool isTold = false;
  for (;;) {
    size_t count = 0, index = 0, bytes = 0;
    {
      std::lock_guard lock(mutex);
      if (!post.check(post.library.test(&request, 1, &count, &index, &bytes))) {
        return false;
      }
      if (count == 1) {
        bool isWhole = post.self != 0 || bytes == length;
        return isWhole ? !post.detector.stopped()
                       : post.detector.fail(concat("rank ", partner, " has sent ", bytes,
                                                   " bytes to rank 0, expected ", length, ", in ",
                                                   operation.text));
      }
      if (post.detector.stopped()) {
        post.library.cancel(&request);
        return false;
      }
    }
    Clock::duration idle = Clock::now() - begin;
    if (idle > timeout && !isTold) {
      isTold = true;
      post.detector.waits(
          {concat("rank ", post.self, " waited ", std::chrono::duration<double>(timeout).count(),
                  " s in ", operation.text),
           true,
           operation.counter,
           begunCounts[operation.counter],
           {partner},
           std::chrono::duration_cast<std::chrono::milliseconds>(timeout)});
    }
    pauseFor(idle);
  }
}

/// Sends bytes to rank 0, or receives them at rank 0 from `partner`.
bool Engine::transferAll(const Operation &operation, int64_t partner, char *bytes, size_t count) {
  for (size_t at = 0; at < count; at += kMostBytes) {
    size_t length = std::min(kMostBytes, count - at);
    uint64_t request = post.library.idle;
    {
      std::lock_guard lock(mutex);
      const TransportTable &library = post.library;
      TransportTable::Result result =
          post.self == 0
              ? library.receive(post.world, bytes + at, length, partner, kCollectTag, &request)
              : library.send(post.world, bytes + at, length, partner, kCollectTag, &request);
      if (!post.check(result)) {
        return false;
      }
    }
    if (!transfer(operation, partner, request, length)) {
      return false;
    }
  }
  return true;
}

bool Engine::collect(std::span<const char> own, const Communicator::Receiver &take) {
  if (!issue(collecting, nullptr, nullptr) || !wait(collecting)) {
    return false;
  }
  const Operation &operation = operations[collecting];
  post.detector.enter(&operation.text);
  uint64_t count = own.size();
  bool ok = true;
  if (post.self != 0) {
    // MPI only reads the sent bytes.
    ok = transferAll(operation, 0, reinterpret_cast<char *>(&count), sizeof count) &&
         transferAll(operation, 0, const_cast<char *>(own.data()), count);
  } else {
    take(0, own);
    for (int64_t rank = 1; ok && rank < int64_t(operation.group.ranks.size()); ++rank) {
      ok = transferAll(operation, rank, reinterpret_cast<char *>(&count), sizeof count);
      // Memory that is not written takes none: a wrong count does no harm.
      std::unique_ptr<char[]> bytes(ok ? new (std::nothrow) char[count] : nullptr);
      if (ok && !bytes) {
        ok = post.detector.fail(concat("rank 0 has no memory for the ", bytesText(count),
                                       " that rank ", rank, " sends it for files"),
                                ExitCode::OutOfMemory);
      }
      ok = ok && transferAll(operation, rank, bytes.get(), count);
      if (ok) {
        take(rank, {bytes.get(), count});
      }
    }
  }
  post.detector.leave();
  return ok && !post.detector.stopped(); // `take` may have failed the run.
}
