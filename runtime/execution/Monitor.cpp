//===- Monitor.cpp - detects devices that make no progress ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Monitor.h"

#include "execution/Lateness.h"
#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

using namespace weft::rt;

/// The time between two looks at all words.
static constexpr std::chrono::milliseconds kLook(20);
/// A Monitor that has not looked for so long was suspended, and perhaps its devices, too.
static constexpr std::chrono::seconds kSleep(1);
/// The share of the floor by which a rank that waits for other processes lets these report first.
static constexpr int kPriority = 6;
/// The time that ranks have to end by themselves once the run has stopped.
static constexpr std::chrono::milliseconds kPolite(500);

Monitor::Line::Line(const uint32_t *word, size_t room, std::shared_ptr<uint32_t> turns)
    : word(word), turns(std::move(turns)), marks(std::bit_ceil(room)) {}

uint32_t Monitor::Line::issue(uint32_t mark) {
  *turns += mark == ProgressMarks::kCopy ? 0 : 4;
  uint32_t turn = *turns + (mark == ProgressMarks::kCopy ? 2 : 0);
  uint32_t value = issued.load(std::memory_order_relaxed) + 1;
  marks[slot(value)].store({mark, turn}, std::memory_order_relaxed);
  issued.store(value, std::memory_order_release);
  return value;
}

uint32_t Monitor::Line::done() const {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t &>(*word)).load(std::memory_order_acquire);
}

Monitor::Place Monitor::Line::place() const {
  // In this order, because marks are issued before they are done.
  uint32_t reached = done();
  if (issued.load(std::memory_order_acquire) == reached) {
    return {0, reached, marks[slot(reached)].load(std::memory_order_relaxed).turn + 1};
  }
  auto [mark, turn] = marks[slot(reached + 1)].load(std::memory_order_relaxed);
  return {mark, reached, turn};
}

Monitor::Monitor(const Program &program, Clock::duration floor, Now clock)
    : program(program), progress(program), floor(floor), clock(std::move(clock)) {}

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
  Clock::time_point now = clock();
  ranks[rank] = Rank{.link = &link, .giveUp = std::move(giveUp), .moved = now, .begun = now};
  if (!thread.joinable()) {
    lastLook = now;
    thread = std::thread([this] { run(); });
  }
}

Monitor::Line &Monitor::addLine(int64_t rank, const uint32_t *word) {
  std::lock_guard lock(mutex);
  // Room for all marks twice: the rank's thread sees the end of a section before that of the next.
  Rank &added = ranks.at(rank);
  added.seen.push_back(0);
  added.lines.push_back(
      std::make_shared<Line>(word, std::max<size_t>(2 * progress.count(), 1024), added.turns));
  // Not under the lock, which is held while others learn of a failure.
  added.link->tellBy(
      [this, lines = added.lines] { return "; its" + deviceText(frontOf(lines).place); });
  return *added.lines.back();
}

void Monitor::end(int64_t rank) {
  std::lock_guard lock(mutex);
  if (auto found = ranks.find(rank); found != ranks.end()) {
    Rank &ended = found->second;
    ended.link->tellBy({});
    // A rank whose device waits for no other rank has nothing to give up.
    if (ended.link->stopped() && !ended.isGivenUp && !program.collectives.empty()) {
      left.push_back(std::move(ended.giveUp));
    }
    ranks.erase(found);
  }
}

void Monitor::run() {
  std::unique_lock lock(mutex);
  while (!isEnding) {
    changed.wait_for(lock, kLook);
    look(clock());
  }
}

void Monitor::look(Clock::time_point now) {
  Clock::duration slept = now - lastLook > kSleep ? now - lastLook : Clock::duration();
  lastLook = now;
  for (auto &[number, rank] : ranks) {
    rank.moved += slept;
    rank.begun += slept;
    lookAt(number, rank);
  }
}

void Monitor::lookAt(int64_t number, Rank &rank) {
  bool hasMoved = false;
  for (size_t i = 0; i < rank.lines.size(); ++i) {
    if (uint32_t done = rank.lines[i]->done(); done != rank.seen[i]) {
      rank.seen[i] = done;
      rank.link->moved();
      hasMoved = true;
    }
  }
  bool wasIdle = std::exchange(rank.isIdle, frontOf(rank.lines).place.isIdle());
  // Comes after the look at all words, so that work that began meanwhile has its full budget.
  Clock::time_point now = clock();
  if (hasMoved) {
    rank.moved = now;
  }
  if (hasMoved || rank.isIdle || wasIdle) {
    rank.begun = now;
  }
  if (rank.link->stopped()) {
    rank.stopped = rank.stopped.value_or(now);
    if (now > *rank.stopped + kPolite && !rank.isGivenUp) {
      rank.isGivenUp = true;
      giveUp(rank.giveUp);
    }
    return;
  }
  if (!rank.isIdle && now > rank.begun + budgetOf(rank)) {
    judge(number, rank, now);
  }
}

void Monitor::giveUp(const std::function<void()> &device) {
  {
    std::lock_guard lock(helpers->mutex);
    ++helpers->running;
  }
  std::thread([helpers = helpers, giveUp = device] {
    giveUp();
    std::lock_guard lock(helpers->mutex);
    --helpers->running;
    helpers->changed.notify_all();
  }).detach();
}

bool Monitor::endsWithin(Clock::duration limit) {
  {
    std::lock_guard lock(mutex);
    for (const std::function<void()> &device : std::exchange(left, {})) {
      giveUp(device);
    }
  }
  std::unique_lock lock(helpers->mutex);
  return helpers->changed.wait_for(lock, limit, [&] { return helpers->running == 0; });
}

Monitor::Front Monitor::frontOf(const Lines &lines) {
  Front front;
  for (size_t i = 0; i < lines.size(); ++i) {
    Place place = lines[i]->place();
    bool comesFirst = place.isIdle() == front.place.isIdle() &&
                      place.isBefore(front.place.turn) != place.isIdle();
    if (i == 0 || comesFirst || (front.place.isIdle() && !place.isIdle())) {
      front = {i, place};
    }
  }
  return front;
}

/// Returns the budget of the longest work that the rank may be in.
Monitor::Clock::duration Monitor::budgetOf(const Rank &rank) const {
  double seconds = 0;
  for (const auto &line : rank.lines) {
    seconds = std::max(seconds, kFactor * progress.at(line->place().mark).seconds);
  }
  return floor +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Returns "3.2 s", "1.7 ms" or "0.3 us".
static std::string timeText(double seconds) {
  auto rounded = [](double number) { return std::round(number * 10) / 10; };
  return seconds >= 1      ? concat(rounded(seconds), " s")
         : seconds >= 1e-3 ? concat(rounded(seconds * 1e3), " ms")
                           : concat(rounded(seconds * 1e6), " us");
}

/// Returns "step instruction 3 (matmul ..., layers.0.mlp), place 812 of its work".
std::string Monitor::placeText(const Place &place) const {
  return concat(progress.describe(place.mark), ", place ", place.done + 1, " of its work");
}

std::string Monitor::deviceText(const Place &place) const {
  return place.isIdle() ? " device has nothing to do" : " device is in " + placeText(place);
}

Monitor::Partners Monitor::partnersOf(int64_t number, Clock::time_point now,
                                      Clock::duration patience) const {
  Front front = frontOf(ranks.at(number).lines);
  const Instruction *last = progress.instruction(front.place.mark);
  Partners partners;
  if (front.place.isIdle() || !last || last->opcode != Opcode::Collective) {
    return partners;
  }
  uint32_t turn = front.place.turn, least = turn;
  for (int64_t other : program.groupOf(number, program.collectives[last->target]).ranks) {
    auto found = ranks.find(other);
    if (found == ranks.end() || found->second.lines.size() <= front.line) {
      partners.elsewhere.push_back(other);
      continue;
    }
    const Rank &rank = found->second;
    Front theirs = frontOf(rank.lines);
    Place there = rank.lines[front.line]->place();
    bool isThere = theirs.line == front.line && there.turn == turn;
    if (isThere || (there.turn != turn && !there.isBefore(turn))) {
      const char *text = isThere ? " waits there too" : " has done it";
      partners.text += other == number ? "" : concat("; rank ", other, text);
      continue;
    }
    if (!partners.behind || theirs.place.isBefore(least)) {
      partners.behind = other;
      least = theirs.place.turn;
    }
    partners.text += concat("; rank ", other, " is missing: its", deviceText(theirs.place),
                            movedText(now - rank.moved, patience));
  }
  return partners;
}

int64_t Monitor::rootOf(int64_t number) const {
  std::set<int64_t> seen;
  while (seen.insert(number).second) {
    std::optional<int64_t> next = partnersOf(number, {}, {}).behind;
    Place place = frontOf(ranks.at(number).lines).place;
    // A rank without work may wait, on the host, for any rank whose device has earlier work.
    for (auto other = ranks.begin(); place.isIdle() && other != ranks.end(); ++other) {
      Place theirs = frontOf(other->second.lines).place;
      if (!theirs.isIdle() && theirs.isBefore(place.turn)) {
        next = other->first;
        place.turn = theirs.turn | 1;
      }
    }
    if (!next) {
      break;
    }
    number = *next;
  }
  return number;
}

void Monitor::judge(int64_t number, Rank &rank, Clock::time_point now) {
  int64_t root = rootOf(number);
  const Rank &last = ranks.at(root);
  Clock::duration patience = std::max(budgetOf(rank), budgetOf(last));
  bool isIdle = frontOf(last.lines).place.isIdle();
  bool isSlow = now > rank.begun + patience && isMoving(now - last.moved, patience);
  // A rank that has work and is not slow is not late itself yet.
  if (root == number || isIdle || isSlow) {
    report(number, root, now, patience);
  }
}

void Monitor::report(int64_t number, int64_t root, Clock::time_point now,
                     Clock::duration patience) {
  Rank &rank = ranks.at(number);
  const Rank &last = ranks.at(root);
  Partners partners = partnersOf(number, now, patience);
  Place place = frontOf(rank.lines).place;
  double waited = std::chrono::duration<double>(now - rank.begun).count();
  double predicted = progress.at(place.mark).seconds;
  bool waits = root != number || !partners.elsewhere.empty();
  std::string message = concat(
      "rank ", number, waits ? " waited " : " is stuck: its device has been for ", timeText(waited),
      " in ", placeText(place),
      predicted > 0 ? concat(", predicted to take ", timeText(predicted)) : "", partners.text);
  if (root != number && root != partners.behind) {
    message += concat("; rank ", root, " is behind all: its", deviceText(frontOf(last.lines).place),
                      movedText(now - last.moved, patience));
  }
  if (root != number || partners.elsewhere.empty()) {
    bool isSlow = root != number && isMoving(now - last.moved, patience);
    rank.link->fail(message, isSlow ? ExitCode::Slow : ExitCode::Stuck);
  } else if (!rank.hasAsked && now > rank.begun + patience + floor / kPriority) {
    rank.hasAsked = true; // The answers end the run.
    auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    rank.link->failLate(message, partners.elsewhere, limit);
  }
}
