//===- BlockEmulator.cpp - a device's block on the host -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A fortified longjmp takes a change to another stack for a fault.
#undef _FORTIFY_SOURCE

#include "BlockEmulator.h"

#include "GuardedMemory.h"
#include "RaceDetector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <csetjmp>
#include <gtest/gtest.h>
#include <limits>
#include <ucontext.h>
#include <vector>

namespace weft::test {

namespace {

constexpr int64_t kWarpThreads = 32;
constexpr size_t kStackBytes = size_t(64) << 10;

enum class State { Ready, AtBarrier, AtWarpBarrier, AtShuffle, Done };

struct Fiber {
  /// The context in which the thread begins, and the place where it continues.
  ucontext_t begin;
  jmp_buf place;
  bool hasBegun = false;
  State state = State::Ready;
  /// The value that it gives to a shuffle, and the one that it gets.
  int32_t value = 0, mask = 0;
};

/// Stacks of the threads, kept from block to block.
char *stackOf(size_t thread) {
  static auto *stacks = new std::vector<GuardedMemory>;
  while (stacks->size() <= thread) {
    stacks->emplace_back("the stack of thread " + std::to_string(stacks->size()), kStackBytes, 16,
                         Place::AtBegin, 0);
  }
  return (*stacks)[thread].get();
}

RaceDetector &sharedMemory() {
  static RaceDetector watch;
  return watch;
}

class Block {
public:
  Block(int64_t threads, std::mt19937 &dice, const std::function<void()> &body, bool watches)
      : fibers(size_t(threads)), watches(watches), dice(dice), body(body) {}

  void run();
  void wait(State state);
  Moment now() const;

  std::vector<Fiber> fibers;
  size_t current = 0;
  const bool watches;

private:
  static void start();
  void goOn(Fiber &fiber);
  bool isAll(State state, size_t from, size_t count) const {
    return std::all_of(fibers.begin() + from, fibers.begin() + from + count,
                       [&](const Fiber &fiber) { return fiber.state == state; });
  }
  bool exchange();
  void exchangeValues(size_t warp);

  /// How often the threads of any block have waited for each other, and those of each warp. A
  /// shuffle does not count: it orders no memory.
  static inline int64_t blockWaits = 0;
  std::vector<int64_t> warpWaits = std::vector<int64_t>(fibers.size() / kWarpThreads);
  jmp_buf scheduler;
  std::mt19937 &dice;
  const std::function<void()> &body;
};

Block *running = nullptr;

void Block::start() {
  running->body();
  running->fibers[running->current].state = State::Done;
  _longjmp(running->scheduler, 1);
}

// Threads change with every shuffle, and swapcontext asks the system for the signal mask each time:
// it only makes the first change to a stack.
void Block::goOn(Fiber &fiber) {
  if (_setjmp(scheduler)) {
    return;
  }
  if (fiber.hasBegun) {
    _longjmp(fiber.place, 1);
  }
  fiber.hasBegun = true;
  setcontext(&fiber.begin);
}

void Block::wait(State state) {
  fibers[current].state = state;
  if (!_setjmp(fibers[current].place)) {
    _longjmp(scheduler, 1);
  }
}

Moment Block::now() const {
  size_t warp = current / kWarpThreads;
  return {int32_t(current), int32_t(warp), blockWaits, warpWaits[warp]};
}

/// Lets the warps go on that have all come to a shuffle, or to a barrier of theirs; false if there
/// is none.
bool Block::exchange() {
  bool moved = false;
  for (size_t warp = 0; warp < fibers.size(); warp += kWarpThreads) {
    if (isAll(State::AtShuffle, warp, kWarpThreads)) {
      exchangeValues(warp);
    } else if (isAll(State::AtWarpBarrier, warp, kWarpThreads)) {
      ++warpWaits[warp / kWarpThreads];
    } else {
      continue;
    }
    for (size_t lane = 0; lane < size_t(kWarpThreads); ++lane) {
      fibers[warp + lane].state = State::Ready;
    }
    moved = true;
  }
  return moved;
}

void Block::exchangeValues(size_t warp) {
  std::vector<int32_t> values;
  for (size_t lane = 0; lane < size_t(kWarpThreads); ++lane) {
    values.push_back(fibers[warp + (lane ^ size_t(fibers[warp + lane].mask))].value);
  }
  for (size_t lane = 0; lane < size_t(kWarpThreads); ++lane) {
    fibers[warp + lane].value = values[lane];
  }
}

void Block::run() {
  ++blockWaits;
  for (size_t thread = 0; thread < fibers.size(); ++thread) {
    Fiber &fiber = fibers[thread];
    getcontext(&fiber.begin);
    fiber.begin.uc_stack = {stackOf(thread), 0, kStackBytes};
    fiber.begin.uc_link = nullptr;
    makecontext(&fiber.begin, &Block::start, 0);
  }
  for (;;) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < fibers.size(); ++i) {
      if (fibers[i].state == State::Ready) {
        ready.push_back(i);
      }
    }
    std::shuffle(ready.begin(), ready.end(), dice);
    for (size_t number : ready) {
      current = number;
      goOn(fibers[number]);
    }
    if (!ready.empty() || exchange()) {
      continue;
    }
    if (isAll(State::Done, 0, fibers.size())) {
      return;
    }
    if (!isAll(State::AtBarrier, 0, fibers.size())) {
      ADD_FAILURE() << "threads of a block wait for others that do not come";
      return;
    }
    ++blockWaits;
    for (Fiber &fiber : fibers) {
      fiber.state = State::Ready;
    }
  }
}

} // namespace

void runBlock(int64_t threads, std::mt19937 &dice, const std::function<void()> &body,
              bool watches) {
  ASSERT_TRUE(threads > 0 && threads % kWarpThreads == 0) << threads << " threads";
  Block block(threads, dice, body, watches);
  running = &block;
  block.run();
  running = nullptr;
}

void watchShared(const char *start, size_t bytes, size_t elementBytes) {
  sharedMemory().watch(start, bytes, elementBytes);
}

void forgetShared() { sharedMemory().forgetAll(); }

bool wasSharedTouched() { return sharedMemory().wasTouched(); }

} // namespace weft::test

using weft::test::running;
using weft::test::State;

int64_t weft_device_thread() { return int64_t(running->current); }

void weft_device_barrier() { running->wait(State::AtBarrier); }

void weft_device_warp_barrier() { running->wait(State::AtWarpBarrier); }

int16_t weft_device_round(float value) {
  if (std::isnan(value)) {
    return 0x7FC0;
  }
  auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<int16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float weft_device_exp2(float value) {
  float result = std::exp2(value);
  return result < std::numeric_limits<float>::min() ? 0 : result;
}

void weft_test_touch(const char *at, int64_t bytes, int64_t isWrite) {
  ASSERT_NE(running, nullptr) << "shared memory is touched where there is no block";
  if (running->watches) {
    weft::test::sharedMemory().touch(at, size_t(bytes), isWrite != 0, running->now());
  }
}

int32_t weft_device_shuffle(int32_t value, int32_t mask) {
  auto &fiber = running->fibers[running->current];
  fiber.value = value;
  fiber.mask = mask;
  running->wait(State::AtShuffle);
  return fiber.value;
}
