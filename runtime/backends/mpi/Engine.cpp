//===- Engine.cpp - runs collectives by messages --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/mpi/Engine.h"

#include "backends/CallText.h"
#include "backends/Reduce.h"
#include "core/Text.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

/// By which partners meet. The text of the sender's collective follows, then elements.
struct Greeting {
  uint64_t fingerprint = 0;
  uint32_t textBytes = 0, elementBytes = 0;

  /// Where elements begin, so that they can be read where they lie.
  size_t elementsAt() const { return (sizeof(Greeting) + textBytes + 15) / 16 * 16; }
};
constexpr size_t kMostText = 1024;

/// How long a rank looks for messages again and again; a look gives way to other threads. Asleep it
/// would be late by more than a small collective takes, so that its partners fall asleep as well
/// and all are late from then on.
constexpr std::chrono::milliseconds kAwake(2);

/// Where a piece is in a buffer, of which there may be none if it is empty.
template <typename Char> Char *placeOf(Char *buffer, const Exchange::Piece &piece) {
  return piece.count == 0 ? buffer : buffer + piece.offset;
}

constexpr int64_t kChunkBytes = 4096;
constexpr int32_t kCollectTag = kTags - 1;

/// The same for the same call only, as good as certainly (FNV-1a over all that `isSameCall`
/// compares).
uint64_t fingerprintOf(const Collective &collective, const CallSite &site) {
  std::string text = concat(int(collective.kind), " ", int(collective.reduction), " ",
                            int(collective.type), " ", collective.dim, " ", collective.dim2, " ",
                            site.section, " ", site.instruction, " ", shapeText(collective.shape));
  for (uint32_t axis : collective.axes) {
    text += concat(" a", axis);
  }
  for (uint32_t source : collective.sources) {
    text += concat(" s", source);
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (char letter : text) {
    hash = (hash ^ uint8_t(letter)) * 0x100000001b3;
  }
  return hash;
}

int64_t clampCount(int64_t count, int64_t first, int64_t length) {
  return std::clamp<int64_t>(count - first, 0, length);
}

} // namespace

Engine::Engine(const Library &library, uint64_t world, std::vector<Axis> mesh, int64_t rank,
               Watch &watch, std::chrono::nanoseconds timeout)
    : library(library), world(world), mesh(std::move(mesh)), self(rank), watch(watch),
      timeout(timeout) {
  std::vector<uint32_t> allAxes(this->mesh.size());
  std::iota(allAxes.begin(), allAxes.end(), 0);
  size_t ranks = groupOf(rank, allAxes, this->mesh).size();
  greetings.reset(new char[ranks * 2 * kGreetingBytes]);
  arrivals.reset(new char[kRoom]);
  departures.reset(new char[kRoom]);
  sources.resize(ranks);
  requests.reserve(ranks * 2);
  pendings.reserve(ranks * 2);
  doneIndices.resize(ranks * 2);
  doneBytes.resize(ranks * 2);
  Collective nothing = {
      CollectiveKind::AllGather, ReductionKind::Sum, ElementType::I32, allAxes, {0}, 0, 0};
  collecting = prepare(nothing, {"control", 1, "rank 0 collects what ranks have for files"});
}

Engine::~Engine() {
  // Messages that have been sent are MPI's business; what they were copied from may be gone.
  for (uint64_t &request : requests) {
    if (request != library.idle) {
      library.cancel(&request);
    }
  }
}

Communicator::Handle Engine::prepare(const Collective &collective, const CallSite &site) {
  Operation operation;
  operation.collective = collective;
  operation.site = site;
  operation.text = describeCall(collective, site);
  operation.fingerprint = fingerprintOf(collective, site);
  operation.ranks = groupOf(self, collective.axes, mesh);
  operation.me = size_t(std::ranges::find(operation.ranks, self) - operation.ranks.begin());
  for (uint32_t axis : collective.axes) {
    // Those of one rank make no difference to the group.
    operation.group |= int64_t(mesh[axis].size > 1) << axis;
  }
  if (operation.ranks.size() > 1) {
    operation.exchanges =
        routeOf(collective, int64_t(operation.ranks.size()), int64_t(operation.me));
  }
  std::lock_guard lock(mutex);
  begunCounts.try_emplace(operation.group, 0);
  operations.push_back(std::move(operation));
  queue.reserve(operations.size());
  return Communicator::Handle(operations.size() - 1);
}

bool Engine::issue(Communicator::Handle handle, const void *operand, void *result) {
  std::lock_guard lock(mutex);
  queue.push_back({&operations[handle], operand, result});
  if (!watch.stopped()) {
    advance();
  }
  return !watch.stopped();
}

bool Engine::isQueued(Communicator::Handle handle) const {
  return std::ranges::any_of(
      queue, [&](const Issued &issued) { return issued.operation == &operations[handle]; });
}

bool Engine::wait(Communicator::Handle handle) {
  Clock::time_point begin = Clock::now(), before = begin;
  nextAsk = std::chrono::milliseconds(100);
  hasReported = false;
  watch.enter(&operations[handle].text);
  isAttended.store(true, std::memory_order_relaxed);
  bool isMore = false;
  while (!watch.stopped()) {
    bool moved = false, isDone = false;
    Clock::duration idle = {};
    {
      std::lock_guard lock(mutex);
      moved = advance();
      isDone = !isQueued(handle);
      isMore = !queue.empty();
      idle = Clock::now() - std::max(begin, lastMove);
    }
    if (isDone) {
      break;
    }
    if (!moved) {
      keepWaiting(idle);
      Clock::time_point now = Clock::now();
      waited += std::chrono::duration<double>(now - before).count();
    }
    before = Clock::now();
  }
  isAttended.store(false, std::memory_order_relaxed);
  if (isMore) {
    watch.wake(); // Who helps may have looked while there was no need.
  }
  watch.leave();
  return !watch.stopped();
}

/// Others have not come yet, and nothing has happened for `idle`.
void Engine::keepWaiting(Clock::duration idle) {
  if (idle > timeout && !hasReported) {
    hasReported = true;
    report(true);
  } else if (idle > nextAsk && !hasReported) {
    nextAsk = idle + std::chrono::seconds(1);
    report(false);
  }
  pauseFor(idle);
}

/// Nothing has happened for `idle`.
void Engine::pauseFor(Clock::duration idle) {
  if (idle >= kAwake) {
    std::this_thread::sleep_for(std::min<Clock::duration>(idle / 8, std::chrono::milliseconds(1)));
  }
}

/// Tells rank 0 whom the rank waits for.
void Engine::report(bool isTooLong) {
  Waiting waiting;
  {
    std::lock_guard lock(mutex);
    if (queue.empty()) {
      return;
    }
    const Operation &operation = *queue.front().operation;
    std::string time = concat(" waited ", std::chrono::duration<double>(timeout).count(), " s in ");
    waiting = {concat("rank ", self, isTooLong ? time : " waits in ", operation.text),
               isTooLong,
               operation.group,
               begunCounts[operation.group],
               {}};
    for (size_t i = 0; i < requests.size(); ++i) {
      int64_t rank = operation.ranks[pendings[i].member];
      bool isMissing =
          requests[i] != library.idle && (stage != Stage::Meeting || pendings[i].isGreeting);
      if (isMissing && !std::ranges::count(waiting.missing, rank)) {
        waiting.missing.push_back(rank);
      }
    }
  }
  if (!waiting.missing.empty()) {
    watch.waits(waiting);
  }
}

bool Engine::help() {
  // The rank's thread is at it, and MPI may give way to others in the midst of a test, with the
  // lock held.
  if (isAttended.load(std::memory_order_relaxed)) {
    return false;
  }
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false; // Somebody is at it.
  }
  if (!watch.stopped()) {
    advance();
  }
  return !queue.empty() && !watch.stopped();
}

bool Engine::check(Library::Result result) {
  return !result || watch.fail(concat("rank ", self, ": ", result));
}

void Engine::send(const Operation &operation, size_t member, const char *bytes, size_t count,
                  bool isGreeting) {
  int32_t tag = int32_t(2 * operation.group + !isGreeting);
  pendings.push_back({member, false});
  requests.push_back(library.idle);
  ++open;
  check(library.send(world, bytes, count, operation.ranks[member], tag, &requests.back()));
}

void Engine::receive(const Operation &operation, size_t member, char *bytes, size_t count,
                     bool isGreeting) {
  int32_t tag = int32_t(2 * operation.group + !isGreeting);
  pendings.push_back({member, isGreeting});
  requests.push_back(library.idle);
  ++open;
  check(library.receive(world, bytes, count, operation.ranks[member], tag, &requests.back()));
}

/// Does what can be done without waiting. Returns whether anything has happened.
bool Engine::advance() {
  bool moved = false;
  while (!queue.empty() && !watch.stopped()) {
    if (stage == Stage::Waiting) {
      begin(queue.front());
      moved = true;
      continue;
    }
    if (open > 0) {
      size_t count = 0;
      if (!check(library.test(requests.data(), requests.size(), &count, doneIndices.data(),
                              doneBytes.data())) ||
          count == 0) {
        break;
      }
      moved = true;
      open -= count;
      for (size_t i = 0; i < count; ++i) {
        const Pending &pending = pendings[doneIndices[i]];
        if (pending.isGreeting) {
          checkGreeting(queue.front(), pending.member);
        }
      }
      continue;
    }
    moved = true;
    endStage(queue.front());
  }
  if (moved) {
    lastMove = Clock::now();
  }
  return moved;
}

bool Engine::isInline(const Operation &operation) const {
  static_assert(sizeof(Greeting) + kMostText + 15 + size_t(kFewBytes) <= kGreetingBytes);
  const Exchange &exchange = operation.exchanges.front();
  return exchange.longest() * int64_t(sizeOf(operation.collective.type)) <= kFewBytes;
}

/// Greets all members.
void Engine::begin(const Issued &issued) {
  const Operation &operation = *issued.operation;
  size_t bytes = sizeOf(operation.collective.type), members = operation.ranks.size();
  ++begunCounts[operation.group];
  requests.clear();
  pendings.clear();
  open = 0;
  if (members == 1) {
    size_t all = bytes;
    for (int64_t size : operation.collective.shape) {
      all *= size_t(size);
    }
    if (issued.operand != issued.result && all > 0) {
      std::memcpy(issued.result, issued.operand, all);
    }
    return finish();
  }
  stage = Stage::Meeting;
  const Exchange &exchange = operation.exchanges.front();
  for (size_t member = 0; member < members; ++member) {
    if (member == operation.me) {
      continue;
    }
    receive(operation, member, greetingFrom(member), kGreetingBytes, true);
    const Exchange::Piece &piece = exchange.sends[member];
    Greeting greeting = {operation.fingerprint,
                         uint32_t(std::min(operation.text.size(), kMostText)), 0};
    char *text = greetingTo(member) + sizeof greeting;
    std::memcpy(text, operation.text.data(), greeting.textBytes);
    if (isInline(operation)) {
      greeting.elementBytes = uint32_t(size_t(piece.count) * bytes);
      exchange.from.pack(placeOf(static_cast<const char *>(issued.operand), piece), 0, piece.count,
                         greetingTo(member) + greeting.elementsAt());
    }
    std::memcpy(greetingTo(member), &greeting, sizeof greeting);
    send(operation, member, greetingTo(member), greeting.elementsAt() + greeting.elementBytes,
         true);
  }
}

/// What `member` means to do must be the same.
void Engine::checkGreeting(const Issued &issued, size_t member) {
  const Operation &operation = *issued.operation;
  Greeting greeting;
  std::memcpy(&greeting, greetingFrom(member), sizeof greeting);
  const char *text = greetingFrom(member) + sizeof greeting;
  sources[member] = greetingFrom(member) + greeting.elementsAt();
  if (greeting.fingerprint == operation.fingerprint) {
    return;
  }
  std::string other(text, greeting.textBytes);
  int64_t rank = operation.ranks[member];
  watch.fail(operation.me < member ? differentCallsText(self, operation.text, rank, other)
                                   : differentCallsText(rank, other, self, operation.text));
}

void Engine::endStage(const Issued &issued) {
  const Operation &operation = *issued.operation;
  if (stage == Stage::Exchanging) {
    return endRound(issued);
  }
  if (!isInline(operation)) {
    return beginExchange(issued, 0);
  }
  // All elements came with the greetings.
  const Exchange &exchange = operation.exchanges.front();
  first = 0;
  bringOwn(issued, exchange, exchange.longest());
  if (exchange.reduces) {
    reduce(issued, exchange, exchange.comes[operation.me].count);
  } else {
    for (size_t member = 0; member < operation.ranks.size(); ++member) {
      const Exchange::Piece &piece = exchange.comes[member];
      if (member != operation.me) {
        exchange.to.unpack(sources[member], 0, piece.count,
                           placeOf(static_cast<char *>(issued.result), piece));
      }
    }
  }
  beginExchange(issued, 1);
}

void Engine::beginExchange(const Issued &issued, size_t index) {
  exchangeIndex = index;
  first = 0;
  if (index == issued.operation->exchanges.size()) {
    return finish();
  }
  stage = Stage::Exchanging;
  beginRound(issued);
}

void Engine::finish() {
  queue.erase(queue.begin());
  stage = Stage::Waiting;
}

int64_t Engine::roundLength(const Operation &operation, const Exchange &exchange) const {
  auto bytes = int64_t(sizeOf(operation.collective.type));
  auto members = int64_t(operation.ranks.size());
  return exchange.isDirect() ? int64_t(kMostBytes) / bytes
                             : std::max<int64_t>(int64_t(kRoom) / members / 64 * 64 / bytes, 1);
}

char *Engine::arrivalFrom(const Operation &operation, size_t member) {
  return arrivals.get() + member * (kRoom / operation.ranks.size() / 64 * 64);
}

void Engine::beginRound(const Issued &issued) {
  const Operation &operation = *issued.operation;
  const Exchange &exchange = operation.exchanges[exchangeIndex];
  int64_t length = roundLength(operation, exchange);
  size_t bytes = sizeOf(operation.collective.type);
  const char *from =
      static_cast<const char *>(exchange.sendsResult ? issued.result : issued.operand);
  char *to = static_cast<char *>(issued.result);
  requests.clear();
  pendings.clear();
  open = 0;
  for (size_t member = 0; member < operation.ranks.size(); ++member) {
    const Exchange::Piece &comes = exchange.comes[member], &sends = exchange.sends[member];
    int64_t coming = clampCount(comes.count, first, length);
    int64_t sending = clampCount(sends.count, first, length);
    if (member == operation.me) {
      continue;
    }
    if (coming > 0) {
      bool inPlace = !exchange.reduces && exchange.to.isDense();
      char *target = inPlace ? to + comes.offset + exchange.to.offsetOf(first)
                             : arrivalFrom(operation, member);
      sources[member] = target;
      receive(operation, member, target, size_t(coming) * bytes, false);
    }
    if (sending > 0) {
      const char *source = from + sends.offset + exchange.from.offsetOf(first);
      if (!exchange.from.isDense()) {
        char *packed = departures.get() + (arrivalFrom(operation, member) - arrivals.get());
        exchange.from.pack(from + sends.offset, first, sending, packed);
        source = packed;
      }
      send(operation, member, source, size_t(sending) * bytes, false);
    }
  }
}

void Engine::endRound(const Issued &issued) {
  const Operation &operation = *issued.operation;
  const Exchange &exchange = operation.exchanges[exchangeIndex];
  int64_t length = roundLength(operation, exchange);
  bringOwn(issued, exchange, length);
  if (exchange.reduces) {
    reduce(issued, exchange, clampCount(exchange.comes[operation.me].count, first, length));
  } else if (!exchange.to.isDense()) {
    for (size_t member = 0; member < operation.ranks.size(); ++member) {
      const Exchange::Piece &piece = exchange.comes[member];
      if (member != operation.me) {
        exchange.to.unpack(sources[member], first, clampCount(piece.count, first, length),
                           placeOf(static_cast<char *>(issued.result), piece));
      }
    }
  }
  first += length;
  if (first < exchange.longest()) {
    return beginRound(issued);
  }
  beginExchange(issued, exchangeIndex + 1);
}

/// The member's own piece: where it is wanted, if it is not reduced; else ready for that.
void Engine::bringOwn(const Issued &issued, const Exchange &exchange, int64_t length) {
  const Operation &operation = *issued.operation;
  const char *from =
      static_cast<const char *>(exchange.sendsResult ? issued.result : issued.operand);
  const Exchange::Piece &sends = exchange.sends[operation.me],
                        &comes = exchange.comes[operation.me];
  int64_t count = clampCount(comes.count, first, length);
  if (count == 0) {
    return; // There may be no address at all.
  }
  const char *piece = from + sends.offset;
  if (exchange.from.isDense()) {
    sources[operation.me] = piece + exchange.from.offsetOf(first);
  } else {
    exchange.from.pack(piece, first, count, arrivalFrom(operation, operation.me));
    sources[operation.me] = arrivalFrom(operation, operation.me);
  }
  char *target = placeOf(static_cast<char *>(issued.result), comes);
  if (!exchange.reduces && piece != target) {
    exchange.to.unpack(sources[operation.me], first, count, target);
  }
}

/// `count` elements of every member, from `first` on, into the member's place in the result.
void Engine::reduce(const Issued &issued, const Exchange &exchange, int64_t count) {
  const Operation &operation = *issued.operation;
  ElementType type = operation.collective.type;
  auto bytes = int64_t(sizeOf(type));
  int64_t chunk = kChunkBytes / int64_t(sizeOf(accumulatorOf(type)));
  alignas(64) char sum[kChunkBytes];
  if (count == 0) {
    return; // Then there may be no buffers.
  }
  char *target = static_cast<char *>(issued.result) + exchange.comes[operation.me].offset +
                 exchange.to.offsetOf(first);
  for (int64_t at = 0; at < count; at += chunk) {
    int64_t length = std::min(chunk, count - at);
    beginReduction(type, sum, sources[0] + at * bytes, length);
    for (size_t member = 1; member < operation.ranks.size(); ++member) {
      reduceInto(type, operation.collective.reduction, sum, sources[member] + at * bytes, length);
    }
    endReduction(type, target + at * bytes, sum, length);
  }
}

/// Waits for one message that belongs to no collective of the queue.
bool Engine::transfer(const Operation &operation, int64_t partner, uint64_t request) {
  Clock::time_point begin = Clock::now();
  bool isTold = false;
  for (;;) {
    size_t count = 0, index = 0, bytes = 0;
    {
      std::lock_guard lock(mutex);
      if (!check(library.test(&request, 1, &count, &index, &bytes)) || count == 1) {
        return !watch.stopped();
      }
      if (watch.stopped()) {
        library.cancel(&request);
        return false;
      }
    }
    Clock::duration idle = Clock::now() - begin;
    if (idle > timeout && !isTold) {
      isTold = true;
      watch.waits({concat("rank ", self, " waited ", std::chrono::duration<double>(timeout).count(),
                          " s in ", operation.text),
                   true,
                   operation.group,
                   begunCounts[operation.group],
                   {partner}});
    }
    pauseFor(idle);
  }
}

/// To rank 0, or at rank 0 from `partner`.
bool Engine::transferAll(const Operation &operation, int64_t partner, char *bytes, size_t count) {
  for (size_t at = 0; at < count; at += kMostBytes) {
    size_t length = std::min(kMostBytes, count - at);
    uint64_t request = library.idle;
    {
      std::lock_guard lock(mutex);
      auto begin = self == 0 ? [](const Library &library, uint64_t world, char *bytes, size_t count,
                                  int64_t rank, uint64_t *request) {
        return library.receive(world, bytes, count, rank, kCollectTag, request);
      } : [](const Library &library, uint64_t world, char *bytes, size_t count, int64_t rank,
             uint64_t *request) {
        return library.send(world, bytes, count, rank, kCollectTag, request);
      };
      if (!check(begin(library, world, bytes + at, length, partner, &request))) {
        return false;
      }
    }
    if (!transfer(operation, partner, request)) {
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
  watch.enter(&operation.text);
  uint64_t count = own.size();
  bool ok = true;
  if (self != 0) {
    // MPI only reads what is sent.
    ok = transferAll(operation, 0, reinterpret_cast<char *>(&count), sizeof count) &&
         transferAll(operation, 0, const_cast<char *>(own.data()), count);
  } else {
    take(0, own);
    for (int64_t rank = 1; ok && rank < int64_t(operation.ranks.size()); ++rank) {
      std::vector<char> bytes;
      ok = transferAll(operation, rank, reinterpret_cast<char *>(&count), sizeof count);
      if (ok) {
        bytes.resize(count);
        ok = transferAll(operation, rank, bytes.data(), count);
      }
      if (ok) {
        take(rank, bytes);
      }
    }
  }
  watch.leave();
  return ok;
}
