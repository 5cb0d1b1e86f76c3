//===- SimulatorEnqueue.cpp - work of a simulated device ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorDevice.h"

#include "support/Random.h"
#include "weft-rt/DeviceImage.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// The name by which Faults counts work.
static constexpr const char *kWork = "work";

static uint64_t hashOf(const void *bytes, uint64_t count) {
  return streamOf({static_cast<const char *>(bytes), count});
}

Touch Device::touchDevice(Address address, uint64_t bytes, Access access, const std::string &what) {
  try {
    memory.holding(address, bytes);
  } catch (const Misuse &fault) {
    misuse(what, ": ", fault.text);
  }
  return {address, address + bytes, access, what};
}

Touch Device::touchPinned(const void *host, uint64_t bytes, Access access) {
  auto address = reinterpret_cast<uint64_t>(host);
  pinned.holding(address, bytes);
  return {address, address + bytes, access, "memory of the host"};
}

Memory &Device::memoryOf(const Touch &touch) { return touch.begin >> 56 ? memory : pinned; }

void Device::checkTouches(const std::vector<Touch> &touches) const {
  for (size_t i = 0; i < touches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (collide(touches[i], touches[j])) {
        misuse(touches[j].what, " and ", touches[i].what, " share bytes, and one is written");
      }
    }
  }
}

void Device::checkWritten(const Touch &touch) {
  if (!memory.isWritten(touch.begin, touch.end)) {
    misuse(touch.what, " is read, but not all of it was ever written");
  }
}

Place Device::enqueue(Handle stream, const std::string &what, const std::vector<Touch> &touches,
                      std::function<void()> run, std::function<bool()> isMet) {
  Stream &on = settledStream(stream);
  Place place = {on.last.stream, on.last.index + 1};
  Clock clock = on.clock;
  clock.join(host);
  checkTouches(touches);
  races.check(touches, clock);
  clock.join(place);
  std::string name = concat(what, " (call ", call, ")");
  std::string fault;
  try {
    faults.call(kWork);
  } catch (const Misuse &planned) {
    fault = planned.text;
  }
  if (!fault.empty()) {
    run = [fault] { misuse(fault); };
  }
  // Progress words are written and devices meet even if nothing is computed.
  bool isOfHost = std::all_of(touches.begin(), touches.end(),
                              [&](const Touch &touch) { return &memoryOf(touch) == &pinned; });
  if (settings.isIdle && !isOfHost && !isMet && fault.empty()) {
    run = [] {};
  }
  drill(run, isMet);

  for (const Touch &touch : touches) {
    Memory::Block &block = memoryOf(touch).holding(touch.begin, touch.end - touch.begin);
    block.uses.join(place);
    if (touch.writes()) {
      memoryOf(touch).noteWrite(touch.begin, touch.end);
    }
  }
  races.add(touches, place, name);
  graph.add({name, place, clock, std::move(run), std::move(isMet)});
  on.last = place;
  on.clock = clock;
  return place;
}

void Device::drill(std::function<void()> &run, std::function<bool()> &isMet) {
  auto isDue = [&](const SimulatorDrill &drill) {
    return drill.device == number && parts >= drill.after;
  };
  bool isStuck = isDue(settings.stuck), isSlow = isDue(settings.slow);
  ++parts;
  if (isStuck) {
    isMet = [this] { return isGivenUp.load(); };
    run = [this] { misuse("it did not end until device ", number, " was given up"); };
  } else if (isSlow) {
    // Polls the time instead of sleeping, since a sleep would hold the lock.
    using SteadyClock = std::chrono::steady_clock;
    auto begun = std::make_shared<std::optional<SteadyClock::time_point>>();
    isMet = [this, begun, isMet = std::move(isMet)] {
      *begun = begun->value_or(SteadyClock::now());
      bool isDue = SteadyClock::now() >= **begun + settings.slowness;
      return isGivenUp || (isDue && (!isMet || isMet()));
    };
  }
}

void Device::copyToDevice(Handle stream, Address to, const void *host, uint64_t bytes) {
  if (captures(stream, [=, this](Handle on) { copyToDevice(on, to, host, bytes); })) {
    return;
  }
  Touch source = touchPinned(host, bytes, Access::Read);
  Touch target = touchDevice(to, bytes, Access::Write, "the target");
  bool isSettled = !races.touches(source.begin, source.end);
  uint64_t hash = hashOf(host, bytes);
  enqueue(stream, "copyToDevice", {source, target}, [=, this] {
    if (isSettled && hashOf(host, bytes) != hash) {
      misuse("the host has changed its memory before it was copied");
    }
    std::memcpy(memory.place(to), host, bytes);
  });
}

void Device::copyToHost(Handle stream, void *host, Address from, uint64_t bytes) {
  if (captures(stream, [=, this](Handle on) { copyToHost(on, host, from, bytes); })) {
    return;
  }
  Touch source = touchDevice(from, bytes, Access::Read, "the source");
  Touch target = touchPinned(host, bytes, Access::Write);
  checkWritten(source);
  bool isSettled = !races.touches(target.begin, target.end);
  enqueue(stream, "copyToHost", {source, target},
          [=, this] { std::memcpy(host, memory.place(from), bytes); });
  // Poison the bytes, so that a read before the work is done shows.
  if (isSettled) {
    std::memset(host, settings.isIdle ? 0 : kPoison, bytes);
  }
}

void Device::copy(Handle stream, Address to, Address from, uint64_t bytes) {
  if (captures(stream, [=, this](Handle on) { copy(on, to, from, bytes); })) {
    return;
  }
  Touch source = touchDevice(from, bytes, Access::Read, "the source");
  Touch target = touchDevice(to, bytes, Access::Write, "the target");
  checkWritten(source);
  enqueue(stream, "copy", {source, target},
          [=, this] { std::memcpy(memory.place(to), memory.place(from), bytes); });
}

void Device::zero(Handle stream, Address at, uint64_t bytes) {
  if (captures(stream, [=, this](Handle on) { zero(on, at, bytes); })) {
    return;
  }
  enqueue(stream, "zero", {touchDevice(at, bytes, Access::Write, "the target")},
          [=, this] { std::memset(memory.place(at), 0, bytes); });
}

/// The host may look at the word at any time, so it is written at once.
void Device::writeProgress(Handle stream, uint32_t *word, uint32_t value) {
  if (laneOf(stream)) {
    misuse("each launch of a graph would write the same");
  }
  Touch target = touchPinned(word, sizeof *word, Access::Write);
  checkAlignment(target, sizeof *word);
  enqueue(stream, "writeProgress", {target},
          [=] { std::atomic_ref<uint32_t>(*word).store(value, std::memory_order_release); });
}

void Device::countProgress(Handle stream, uint32_t *word) {
  if (captures(stream, [=, this](Handle on) { countProgress(on, word); })) {
    return;
  }
  Touch target = touchPinned(word, sizeof *word, Access::ReadWrite);
  checkAlignment(target, sizeof *word);
  enqueue(stream, "countProgress", {target},
          [=] { std::atomic_ref<uint32_t>(*word).fetch_add(1, std::memory_order_acq_rel); });
}

void Device::launch(Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
                    const uint64_t *arguments, size_t count) {
  if (captures(stream, [=, this, given = std::vector(arguments, arguments + count)](Handle on) {
        launch(on, entry, blocks, threads, given.data(), count);
      })) {
    return;
  }
  const Entry &launched = entries.find(entry);
  const Counterpart &counterpart = *launched.counterpart;
  if (blocks == 0 || blocks > INT32_MAX) {
    misuse("expected 1 to ", INT32_MAX, " blocks, got ", blocks);
  }
  if (threads == 0 || threads > kMostBlockThreads) {
    misuse("expected 1 to ", kMostBlockThreads, " threads, got ", threads);
  }
  if (counterpart.threads != 0 && threads != counterpart.threads) {
    misuse("expected ", counterpart.threads, " threads for '", launched.name, "', got ", threads);
  }
  if (count != counterpart.arguments()) {
    misuse("expected ", counterpart.arguments(), " arguments of '", launched.name, "', got ",
           count);
  }
  if (launched.local > local) {
    misuse("expected ", launched.local, " bytes a thread to be reserved for '", launched.name,
           "', got ", local);
  }
  std::vector<Touch> touches;
  auto touch = [&](size_t index, uint64_t bytes, Access access, const std::string &what) {
    touches.push_back(touchDevice(arguments[index], bytes, access, what));
    checkAlignment(touches.back(), kAlignment);
    // Later phases may read the bytes that the first phase writes.
    if (access != Access::Write || counterpart.phase > 0) {
      checkWritten(touches.back());
    }
  };
  touch(0, counterpart.coordinateBytes, Access::Read, "the coordinates");
  for (size_t i = 0; i < counterpart.operands.size(); ++i) {
    touch(1 + i, counterpart.operands[i].bytes, counterpart.operands[i].access,
          concat("operand ", i));
  }
  std::vector<uint64_t> given(arguments, arguments + count);
  Place place = enqueue(stream, concat("launch of '", launched.name, "'"), touches,
                        [this, &counterpart, given] { runCounterpart(counterpart, given); });
  modules.find(launched.module).uses.join(place);
}

/// Cuts [0, count) into parts, in random order.
static std::vector<std::pair<int64_t, int64_t>> drawParts(Dice &dice, int64_t count,
                                                          uint64_t parts) {
  std::vector<int64_t> cuts = {0, count};
  for (uint64_t i = 1; i < parts; ++i) {
    cuts.push_back(int64_t(dice.roll(uint64_t(count) + 1)));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::pair<int64_t, int64_t>> drawn;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] < cuts[i + 1]) {
      drawn.emplace_back(cuts[i], cuts[i + 1]);
      std::swap(drawn.back(), drawn[dice.roll(drawn.size())]);
    }
  }
  return drawn;
}

void Device::runCounterpart(const Counterpart &counterpart,
                            const std::vector<uint64_t> &arguments) {
  std::vector<void *> buffers;
  for (size_t i = 0; i < counterpart.operands.size(); ++i) {
    char *place = memory.place(arguments[1 + i]);
    if (counterpart.operands[i].access == Access::Write && counterpart.phase == 0) {
      std::memset(place, kPoison, counterpart.operands[i].bytes);
    }
    buffers.push_back(place);
  }
  std::vector<int64_t> immediates(arguments.end() - std::ptrdiff_t(counterpart.immediates),
                                  arguments.end());
  auto *coordinates = reinterpret_cast<const int64_t *>(memory.place(arguments[0]));
  uint64_t parts = settings.cutsKernels ? 1 + dice.roll(4) : 1;
  int64_t phase = counterpart.phase;
  for (int64_t iterations : counterpart.iterations) {
    for (auto [begin, end] : drawParts(dice, iterations, parts)) {
      counterpart.function(buffers.data(), immediates.data(), coordinates, phase, begin, end);
    }
    ++phase;
  }
  for (size_t i = 0; i < counterpart.operands.size(); ++i) {
    memory.checkGuards(arguments[1 + i]);
  }
}
