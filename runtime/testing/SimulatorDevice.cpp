//===- SimulatorDevice.cpp - a simulated device ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorDevice.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

void Faults::failAt(const std::string &function, int64_t n, const std::string &text) {
  std::lock_guard lock(mutex);
  texts[{function, n}] = text;
}

void Faults::call(const std::string &function) {
  std::lock_guard lock(mutex);
  if (auto found = texts.find({function, ++counts[function]}); found != texts.end()) {
    misuse(found->second);
  }
}

int64_t Faults::calls(const std::string &function) const {
  std::lock_guard lock(mutex);
  auto found = counts.find(function);
  return found == counts.end() ? 0 : found->second;
}

std::map<std::string, int64_t> Faults::allCalls() const {
  std::lock_guard lock(mutex);
  return counts;
}

void weft::rt::cuda::checkAlignment(const Touch &touch, uint64_t alignment) {
  if (touch.begin % alignment != 0) {
    misuse("expected ", touch.what, " at a multiple of ", alignment, " bytes, got it ",
           touch.begin % alignment, " beyond one");
  }
}

Device::Device(int64_t number, const SimulatorSettings &settings, const Counterparts &counterparts,
               Faults &faults, World &world)
    : number(number), settings(settings), counterparts(counterparts), faults(faults), world(world),
      dice(settings.seed * 64 + uint64_t(number)),
      memory(number, settings.memoryBytes, settings.isIdle), pinned(-1, settings.pinnedBytes),
      streams(number, Kind::Stream), events(number, Kind::Event), modules(number, Kind::Module),
      entries(number, Kind::Entry), matmuls(number, Kind::Matmul),
      links(number, Kind::Communicator), registrations(number, Kind::Registration),
      attentions(number, Kind::Attention), graphs(number, Kind::Graph) {
  world.devices.push_back(this);
}

Device::~Device() { world.leave(this); }

void Device::enter() {
  if (std::this_thread::get_id() != owner) {
    misuse("expected the thread that has opened device ", number, ", got another");
  }
  ++call;
  if (isGivenUp) {
    misuse("device ", number, " was given up");
  }
  if (!failure.empty()) {
    misuse("device ", number, " has failed before: ", failure);
  }
}

void Device::begin(const std::string &function) {
  try {
    faults.call(function);
    if (function == settings.taking.function && !memory.take(settings.taking.bytes)) {
      throw Misuse{concat("of ", memory.unused(), " bytes that nobody has ", settings.taking.bytes,
                          " are wanted"),
                   /*lacksMemory=*/true};
    }
  } catch (const Misuse &) {
    if (function == "endCapture") {
      dropCapture();
    }
    throw;
  }
}

void Device::close() {
  if (isSealed) {
    misuse("device ", number, " is sealed");
  }
  if (localPlace) {
    memory.free(localPlace);
    localPlace = 0;
  }
  std::string left;
  auto note = [&](const auto &...parts) { left += concat(left.empty() ? "" : ", ", parts...); };
  for (const Memory::Block *block : memory.leftovers()) {
    note(block->bytes, " bytes of call ", block->call);
  }
  for (const Memory::Block *block : pinned.leftovers()) {
    note(block->bytes, " pinned bytes of call ", block->call);
  }
  auto noteAll = [&](const auto &handles, Kind kind) {
    for (const auto &[serial, thing] : handles.items) {
      if constexpr (requires { thing.isOfGraph; }) {
        if (thing.isOfGraph) {
          continue;
        }
      }
      note(nameOf(kind), " ", serial, " of call ", thing.call);
    }
  };
  noteAll(streams, Kind::Stream);
  noteAll(events, Kind::Event);
  noteAll(modules, Kind::Module);
  noteAll(matmuls, Kind::Matmul);
  noteAll(links, Kind::Communicator);
  noteAll(attentions, Kind::Attention);
  noteAll(graphs, Kind::Graph);
  if (!left.empty()) {
    misuse("expected that all is freed, left are ", left);
  }
  memory.checkFreed();
  pinned.checkFreed();
}

void Device::giveUp() { isGivenUp = true; }

void Device::checkOpen(const char *what) const {
  if (isSealed) {
    misuse("nothing may be ", what, " on a sealed device");
  }
  if (capture) {
    misuse("nothing may be ", what, " while a stream is captured");
  }
}

void Device::checkIdle(const std::string &what, const Clock &uses) const {
  if (!host.covers(uses)) {
    misuse(what, " may still be in use: no event was awaited behind the last work that uses it");
  }
}

void Device::freeMemory(uint64_t *bytes) {
  checkOpen("asked for memory");
  *bytes = memory.unused();
}

void Device::allocate(uint64_t bytes, Address *address) {
  checkOpen("allocated");
  if (bytes == 0) {
    misuse("expected at least 1 byte, got 0");
  }
  *address = memory.allocate(bytes, call);
}

void Device::free(Address address) {
  checkOpen("freed");
  Memory::Block &block = memory.at(address);
  if (block.isShared) {
    misuse("expected memory of allocate, got that of allocateShared");
  }
  checkIdle(concat("the allocation of ", block.bytes, " bytes"), block.uses);
  memory.free(address);
}

void Device::allocatePinned(uint64_t bytes, void **place) {
  checkOpen("allocated");
  if (bytes == 0) {
    misuse("expected at least 1 byte, got 0");
  }
  *place = reinterpret_cast<void *>(pinned.allocate(bytes, call));
}

void Device::freePinned(void *place) {
  checkOpen("freed");
  auto address = reinterpret_cast<uint64_t>(place);
  Memory::Block &block = pinned.at(address);
  checkIdle(concat("the allocation of ", block.bytes, " pinned bytes"), block.uses);
  pinned.free(address);
}

void Device::makeStream(Handle *stream) {
  checkOpen("made");
  *stream = streams.add({call, {ordinals++, 0}});
}

void Device::freeStream(Handle stream) {
  checkOpen("freed");
  Clock uses;
  uses.join(streams.find(stream).last);
  checkIdle("the stream", uses);
  streams.remove(stream);
}

void Device::makeEvent(Handle *event) {
  checkOpen("made");
  *event = events.add({call});
}

void Device::freeEvent(Handle event) {
  checkOpen("freed");
  const Event &freed = events.find(event);
  checkIdle("the event", freed.recorded.value_or(Clock()));
  events.remove(event);
}

Device::Stream &Device::settledStream(Handle stream) {
  Stream &found = streams.find(stream);
  if (found.unsettled) {
    misuse("stream ", HandleParts::of(stream).serial, " waits for work of communicator ",
           HandleParts::of(found.unsettled).serial, ", which is not known to be ready");
  }
  return found;
}

void Device::record(Handle event, Handle stream) {
  Event &recorded = events.find(event);
  if (recorded.time) {
    enqueue(stream, "record", {},
            [time = recorded.time] { *time = std::chrono::steady_clock::now(); });
  }
  recorded.recorded = settledStream(stream).clock;
  recorded.denials = recorded.capture = 0;
  if (Lane *lane = laneOf(stream)) {
    recordCaptured(recorded, *lane);
  }
}

void Device::checkSeen(Handle event) {
  if (capture) {
    misuse("nothing may be waited for while a stream is captured");
  }
  if (recordedEvent(event).capture > 0) {
    misuse("event ", HandleParts::of(event).serial, " was recorded last for a graph");
  }
}

Device::Event &Device::recordedEvent(Handle event) {
  Event &found = events.find(event);
  if (!found.recorded) {
    misuse("expected an event that has been recorded, got event ", HandleParts::of(event).serial,
           ", which never was");
  }
  return found;
}

void Device::wait(Handle stream, Handle event) {
  Stream &waiting = settledStream(stream);
  const Event &awaited = recordedEvent(event);
  if (awaited.capture > 0 || laneOf(stream)) {
    waitCaptured(stream, awaited);
    return;
  }
  waiting.clock.join(*awaited.recorded);
}

void Device::learn(const Clock &clock) {
  host.join(clock);
  races.forget(host);
}

void Device::makeTimer(Handle *event) {
  makeEvent(event);
  events.find(*event).time = std::make_shared<std::chrono::steady_clock::time_point>();
}

std::chrono::steady_clock::time_point Device::timeOf(Handle timer) {
  const Event &event = recordedEvent(timer);
  if (!event.time) {
    misuse("expected an event of makeTimer, got event ", HandleParts::of(timer).serial,
           ", which keeps no time");
  }
  checkIdle("the timer", *event.recorded);
  return *event.time;
}

void Device::elapsed(Handle from, Handle to, double *seconds) {
  *seconds = 0;
  *seconds = std::chrono::duration<double>(timeOf(to) - timeOf(from)).count();
}

template <typename Body> void Device::watch(const Body &body) {
  try {
    body();
  } catch (const Misuse &fault) {
    failure = fault.text;
    throw;
  }
}

void Device::reached(Handle event, bool *isReached) {
  *isReached = false;
  checkSeen(event);
  Event &asked = recordedEvent(event);
  // Answers no a few times at most, so that polling ends.
  if (asked.denials++ < dice.roll(4)) {
    watch([&] { graph.loiter(); });
    *isReached = dice.roll(2) == 0 && graph.isDone(*asked.recorded);
  } else {
    *isReached = finish(*asked.recorded);
  }
  if (*isReached) {
    learn(*asked.recorded);
  }
}

void Device::await(Handle event) {
  checkSeen(event);
  const Clock awaited = *recordedEvent(event).recorded;
  bool comesByItself = settings.slow.device >= 0;
  auto limit = comesByItself ? std::chrono::milliseconds(1) : settings.patience;
  while (!finish(awaited)) {
    if (!world.wait(limit) && !comesByItself) {
      misuse("a collective is awaited that other devices do not come to", unmet());
    }
  }
  learn(awaited);
}

bool Device::finish(const Clock &clock) {
  bool isDone = false;
  watch([&] { isDone = graph.finish(clock, [this] { return world.helpOthers(*this); }); });
  return isDone;
}

bool Device::advance() {
  try {
    return failure.empty() && graph.advance();
  } catch (const Misuse &fault) {
    failure = fault.text;
    return true;
  }
}

void Device::load(const void *bytes, Handle *module) {
  checkOpen("loaded");
  if (!bytes) {
    misuse("expected machine code, got none");
  }
  *module = 0;
  Address place = settings.moduleBytes > 0 ? memory.allocate(settings.moduleBytes, call) : 0;
  if (settings.moduleBytes == 0 || place) {
    *module = modules.add({call, place});
  }
}

void Device::unload(Handle module) {
  checkOpen("unloaded");
  const Module &unloaded = modules.find(module);
  checkIdle("the module", unloaded.uses);
  if (unloaded.place) {
    memory.free(unloaded.place);
  }
  std::erase_if(entries.items, [&](const auto &entry) { return entry.second.module == module; });
  modules.remove(module);
}

void Device::entry(Handle module, const char *name, Handle *found) {
  checkOpen("looked up");
  modules.find(module);
  auto counterpart = counterparts.entries.find(name);
  if (counterpart == counterparts.entries.end()) {
    misuse("the module has no entry '", name, "'");
  }
  const std::string &named = settings.local.name;
  bool hasLocal = !named.empty() && counterpart->first.find(named) != std::string::npos;
  *found = entries.add({module, name, &counterpart->second, hasLocal ? settings.local.bytes : 0});
}

void Device::localBytes(Handle entry, uint64_t *bytes) { *bytes = entries.find(entry).local; }

void Device::reserveLocal(uint64_t bytes, bool *isThere) {
  checkOpen("reserved");
  constexpr uint64_t kMost = 512 << 10; // Of all compute capabilities.
  if (bytes > kMost) {
    misuse("expected at most ", kMost, " bytes of local memory a thread, got ", bytes);
  }
  *isThere = true;
  if (bytes <= local) {
    return;
  }
  if (localPlace) {
    memory.free(localPlace);
  }
  localPlace = memory.allocate(bytes * Simulator::kThreads, call);
  *isThere = localPlace != 0;
  local = *isThere ? bytes : 0;
}

void Device::seal() {
  checkOpen("sealed");
  checkOrderOfFirsts();
  isSealed = true;
}

void Device::unseal() {
  if (!isSealed) {
    misuse("device ", number, " is not sealed");
  }
  isSealed = false;
}
