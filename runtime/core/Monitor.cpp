//===- Monitor.cpp - notices devices that do not come on --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Monitor.h"

#include "backends/Lateness.h"
#include "core/Text.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace weft::rt;

/// How often words are looked at.
static constexpr std::chrono::milliseconds kLook(20);
/// A Monitor that has not looked for so long was stopped, and its devices' work with it, perhaps.
static constexpr std::chrono::seconds kSleep(1);
/// How long ranks may take to end by themselves once the run has stopped.
static constexpr std::chrono::milliseconds kPolite(500);

Monitor::Line::Line(const uint32_t *word, size_t room) : word(word), marks(std::bit_ceil(room)) {}

uint32_t Monitor::Line::issue(uint32_t mark) {
  uint32_t value = issued.load(std::memory_order_relaxed) + 1;
  slot(value).store(mark, std::memory_order_relaxed);
  issued.store(value, std::memory_order_release);
  return value;
}

uint32_t Monitor::Line::done() const {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t &>(*word)).load(std::memory_order_acquire);
}

Monitor::Monitor(const Program &program, Clock::duration floor)
    : program(program), progress(program), floor(floor) {}

Monitor::~Monitor() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (thread.joinable()) {
    thread.join();
  }
}

void Monitor::begin(int64_t rank, Communicator &link, std::function<void()> giveUp) {
  std::lock_guard lock(mutex);
  ranks[rank] = Rank{&link, std::move(giveUp)};
  if (!thread.joinable()) {
    lastLook = Clock::now();
    thread = std::thread([this] { run(); });
  }
}

Monitor::Line &Monitor::addLine(int64_t rank, const uint32_t *word) {
  std::lock_guard lock(mutex);
  // Twice all that there is: what a rank sees of a section's end comes before the next one's.
  Rank &added = ranks.at(rank);
  added.seen.push_back(0);
  added.lines.push_back(std::make_shared<Line>(word, std::max<size_t>(2 * progress.count(), 1024)));
  if (added.lines.size() == 1) {
    // Without the lock here, which is held while others are told of a failure.
    added.link->tellBy([this, line = added.lines.front()] {
      bool isIdle = line->isIdle();
      return concat("; its device ", isIdle ? "has nothing to do" : "is in " + placeText(*line));
    });
  }
  return *added.lines.back();
}

void Monitor::end(int64_t rank) {
  std::lock_guard lock(mutex);
  if (auto found = ranks.find(rank); found != ranks.end()) {
    found->second.link->tellBy({});
    ranks.erase(found);
  }
}

void Monitor::run() {
  std::unique_lock lock(mutex);
  while (!isEnding) {
    changed.wait_for(lock, kLook);
    look(Clock::now());
  }
}

void Monitor::look(Clock::time_point now) {
  Clock::duration slept = now - lastLook > kSleep ? now - lastLook : Clock::duration();
  lastLook = now;
  for (auto &[number, rank] : ranks) {
    rank.moved += slept;
    lookAt(number, rank, now);
  }
}

void Monitor::lookAt(int64_t number, Rank &rank, Clock::time_point now) {
  const Line *busy = nullptr;
  for (size_t i = 0; i < rank.lines.size(); ++i) {
    const Line &line = *rank.lines[i];
    if (uint32_t done = line.done(); done != rank.seen[i]) {
      rank.seen[i] = done;
      rank.moved = now;
      rank.link->moved();
    }
    busy = busy || line.isIdle() ? busy : &line;
  }
  if (rank.link->stopped()) {
    rank.stopped = rank.stopped.value_or(now);
    if (now > *rank.stopped + kPolite && !rank.isGivenUp) {
      giveUp(rank);
    }
    return;
  }
  if (!busy) {
    rank.moved = now;
  } else if (now > rank.moved + budget(*busy)) {
    report(number, rank, *busy, now);
  }
}

void Monitor::giveUp(Rank &rank) {
  rank.isGivenUp = true;
  {
    std::lock_guard lock(helpers->mutex);
    ++helpers->running;
  }
  std::thread([helpers = helpers, giveUp = rank.giveUp] {
    giveUp();
    std::lock_guard lock(helpers->mutex);
    --helpers->running;
    helpers->changed.notify_all();
  }).detach();
}

bool Monitor::endsWithin(Clock::duration limit) {
  std::unique_lock lock(helpers->mutex);
  return helpers->changed.wait_for(lock, limit, [&] { return helpers->running == 0; });
}

Monitor::Clock::duration Monitor::budget(const Line &line) const {
  double seconds = kFactor * progress.at(line.next()).seconds;
  return floor +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// "3.2 s", "1.7 ms", "0.3 us".
static std::string timeText(double seconds) {
  auto rounded = [](double number) { return std::round(number * 10) / 10; };
  return seconds >= 1      ? concat(rounded(seconds), " s")
         : seconds >= 1e-3 ? concat(rounded(seconds * 1e3), " ms")
                           : concat(rounded(seconds * 1e6), " us");
}

/// "step instruction 3 (product ..., layers.0.mlp), place 812 of its work".
std::string Monitor::placeText(const Line &line) const {
  return concat(progress.describe(line.next()), ", place ", line.done() + 1, " of its work");
}

Monitor::Partners Monitor::partnersOf(int64_t number, const Line &line,
                                      Clock::time_point now) const {
  const Instruction *last = progress.instruction(line.next());
  Partners partners;
  if (!last || last->opcode != Opcode::Collective) {
    return partners;
  }
  Clock::duration patience = budget(line);
  for (int64_t other : program.groupOf(number, program.collectives[last->target].axes)) {
    auto found = ranks.find(other);
    if (found == ranks.end() || found->second.lines.empty()) {
      partners.elsewhere.push_back(other);
      continue;
    }
    const Rank &rank = found->second;
    const Line &theirs = *rank.lines.front();
    if (auto ahead = int32_t(theirs.done() - line.done()); ahead >= 0) {
      const char *text = ahead > 0 ? " has done it" : " waits there too";
      partners.text += other == number ? "" : concat("; rank ", other, text);
      continue;
    }
    partners.isMissing = true;
    partners.isSlow = partners.isSlow || isMoving(now - rank.moved, patience);
    partners.text +=
        concat("; rank ", other, " is missing: its device ",
               theirs.isIdle() ? "has nothing to do" : concat("is in ", placeText(theirs)),
               movedText(now - rank.moved, patience));
  }
  return partners;
}

void Monitor::report(int64_t number, Rank &rank, const Line &line, Clock::time_point now) {
  Partners partners = partnersOf(number, line, now);
  double waited = std::chrono::duration<double>(now - rank.moved).count();
  double predicted = progress.at(line.next()).seconds;
  bool waits = partners.isMissing || !partners.elsewhere.empty();
  std::string message = concat(
      "rank ", number, waits ? " waited " : " is stuck: its device has been for ", timeText(waited),
      " in ", placeText(line),
      predicted > 0 ? concat(", predicted to take ", timeText(predicted)) : "", partners.text);
  if (partners.isMissing || partners.elsewhere.empty()) {
    rank.link->fail(message, partners.isSlow ? ExitCode::Slow : ExitCode::Stuck);
  } else if (!rank.hasAsked) {
    rank.hasAsked = true; // The answers end the run.
    auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(budget(line));
    rank.link->failLate(message, partners.elsewhere, patience);
  }
}
