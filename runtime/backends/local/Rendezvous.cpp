//===- Rendezvous.cpp - synchronizes the ranks of a group ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/Rendezvous.h"

#include "backends/CallText.h"
#include "backends/local/Operation.h"
#include "execution/Lateness.h"
#include "support/Text.h"

#include <algorithm>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::local;

/// The interval at which a sleeper checks whether the run has stopped. Other members wake it at
/// once.
static constexpr long kLookNanoseconds = 10'000'000;

/// Sleeps while `word` is `value`, at most `kLookNanoseconds`.
static void sleepWhile(std::atomic<uint32_t> &word, uint32_t value) {
  static_assert(sizeof word == sizeof(uint32_t), "the kernel waits on the bare number");
  timespec limit = {0, kLookNanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

static void wakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Rendezvous::Rendezvous(std::vector<int64_t> ranks, RunState &run)
    : ranks(std::move(ranks)), run(run), places(new Place[this->ranks.size()]) {}

bool Rendezvous::meet(size_t member, const Operation &operation, const void *operand, void *result,
                      Runner &runner) {
  Place &place = places[member];
  place.operation = &operation;
  place.operand = operand;
  place.result = result;
  return barrier(member, &operation, runner);
}

bool Rendezvous::barrier(size_t member, const Operation *operation, Runner &runner) {
  uint32_t before = generation.load(std::memory_order_relaxed);
  std::atomic<uint64_t> &arrivals = places[member].arrivals;
  arrivals.store(arrivals.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < ranks.size()) {
    auto begin = std::chrono::steady_clock::now();
    bool ok = wait(member, before);
    runner.waitedSeconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return ok;
  }
  if (operation) {
    checkSameOperation();
  }
  arrived.store(0, std::memory_order_relaxed);
  // Both here and in `wait` the order is: first the own store, then the load of what the other
  // side stores. With sequential consistency one of the two sees the other, so nobody sleeps on.
  generation.store(before + 1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) > 0) {
    wakeAll(generation);
  }
  return !run.stopped();
}

bool Rendezvous::wait(size_t member, uint32_t before) {
  auto complete = [&] { return generation.load(std::memory_order_acquire) != before; };
  for (int i = 0; i < run.spins && !complete(); ++i) {
    pauseBriefly();
  }
  if (complete()) {
    return !run.stopped();
  }
  auto begin = std::chrono::steady_clock::now();
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (!complete() && !run.stopped()) {
    bool left = someoneLeft(member);
    if (left || isLate(member, begin)) {
      reportMissing(member, !left); // Ends the loop, unless all have come after all.
    }
    sleepWhile(generation, before);
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  return complete() && !run.stopped();
}

/// Returns true if the member's rank has waited too long in an operation that it began at `begin`.
bool Rendezvous::isLate(size_t member, std::chrono::steady_clock::time_point begin) const {
  auto since = run.progress[size_t(ranks[member])].waitsSince.load(std::memory_order_relaxed);
  return since != Progress::kNotWaiting &&
         std::chrono::steady_clock::now() - std::max(begin, since) >= run.timeout;
}

void Rendezvous::checkSameOperation() {
  for (size_t member = 1; member < ranks.size(); ++member) {
    const Operation &first = *places[0].operation, &other = *places[member].operation;
    if (!first.matches(other)) {
      run.fail({ranks[member], differentCallsText(ranks[0], first.description(), ranks[member],
                                                  other.description())});
      return;
    }
  }
}

bool Rendezvous::isMissing(size_t other, size_t member) const {
  return places[other].arrivals.load(std::memory_order_relaxed) <
         places[member].arrivals.load(std::memory_order_relaxed);
}

bool Rendezvous::someoneLeft(size_t member) const {
  for (size_t other = 0; other < ranks.size(); ++other) {
    // In this order, since a rank's arrivals are visible before `left` is.
    bool left = run.progress[size_t(ranks[other])].left.load(std::memory_order_acquire);
    if (left && isMissing(other, member)) {
      return true;
    }
  }
  return false;
}

std::chrono::nanoseconds Rendezvous::sinceMove(const Progress &progress) {
  return std::chrono::steady_clock::now() - progress.moved.load(std::memory_order_relaxed);
}

/// Returns the code for a timeout: a missing rank may itself wait for a rank of another group.
ExitCode Rendezvous::codeOfWait() const {
  bool someoneMoves = std::ranges::any_of(run.progress, [&](const Progress &progress) {
    return !progress.left && isMoving(sinceMove(progress), run.timeout);
  });
  return someoneMoves ? ExitCode::Slow : ExitCode::Stuck;
}

void Rendezvous::reportMissing(size_t member, bool timedOut) {
  std::string message =
      concat("rank ", ranks[member], timedOut ? " waited " : " waits ",
             timedOut ? concat(std::chrono::duration<double>(run.timeout).count(), " s ") : "",
             "in ", places[member].operation->description());
  bool anyone = false;
  for (size_t other = 0; other < ranks.size(); ++other) {
    if (!isMissing(other, member)) {
      continue;
    }
    anyone = true;
    const Progress &progress = run.progress[size_t(ranks[other])];
    const Operation *last = progress.last.load(std::memory_order_acquire);
    bool inside = progress.inside.load(std::memory_order_acquire);
    message += concat("; rank ", ranks[other], " is missing: it ",
                      progress.left.load(std::memory_order_acquire) ? "has left the run after "
                      : inside                                      ? "is in "
                                                                    : "last finished ",
                      last ? last->description() : "no collective at all");
    message += progress.left ? "" : movedText(sinceMove(progress), run.timeout);
  }
  if (anyone) {
    run.fail({ranks[member], std::move(message), timedOut ? codeOfWait() : ExitCode::Error});
  }
}
