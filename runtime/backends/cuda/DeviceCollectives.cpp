//===- DeviceCollectives.cpp - collectives of programs between devices ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/DeviceCollectives.h"

#include "backends/cuda/Check.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// The time for which a state is polled without sleep: about the time that the library takes to
/// start a thread for a non-blocking call.
constexpr auto kQuick = std::chrono::microseconds(200);
/// The sleep between polls. Yielding is worse: on a busy processor it takes milliseconds until this
/// thread runs again, while a thread that has slept runs soon.
constexpr auto kPause = std::chrono::microseconds(20);
/// The interval of checks for other reasons to end a wait.
constexpr auto kLook = std::chrono::milliseconds(1);
/// The advice if making a window fails, after which the communicator is lost.
constexpr const char *kWithoutWindows =
    "; with NCCL_WIN_ENABLE=0 in the environment collectives go without windows";
/// The first numbers of turns.
constexpr int64_t kWorldsTurn = 0, kTransfersTurn = 1, kClassesTurn = 2, kOthersTurn = 3;
/// The longest wait for `giveUp`.
constexpr auto kGrace = std::chrono::seconds(5);

uint64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t(1),
                         [](uint64_t count, int64_t size) { return count * uint64_t(size); });
}

} // namespace

DeviceCollectives::DeviceCollectives(const DriverTable &library, int64_t number, Handle device,
                                     Communicator &link, int64_t ranks, RankGroup ofClass,
                                     std::chrono::nanoseconds timeout)
    : library(library), number(number), device(device), link(link), all(allRanks(ranks)),
      ofClass(std::move(ofClass)), timeout(timeout) {}

DeviceCollectives::~DeviceCollectives() {
  if (isEnded || made.empty()) {
    return;
  }
  // Errors here were reported before. The call may never return, so a thread of its own makes it.
  auto isDone = std::make_shared<std::promise<void>>();
  std::thread([isDone, &library = library, device = device] {
    library.giveUp(device);
    isDone->set_value();
  }).detach();
  isDone->get_future().wait_for(kGrace);
}

bool DeviceCollectives::check(DriverTable::Result result, const char *advice) const {
  return cuda::check(library, number, link, result, place, advice);
}

template <typename Ask, typename Look>
bool DeviceCollectives::poll(const Ask &ask, const Look &look, const char *advice) const {
  using Clock = std::chrono::steady_clock;
  auto begun = Clock::now(), looked = begun;
  for (bool isDone = false;;) {
    if (!check(ask(isDone), advice)) {
      return false;
    }
    if (isDone || link.stopped()) {
      return isDone;
    }
    auto now = Clock::now();
    if (now > looked + kLook) {
      looked = now;
      if (!look(now)) {
        return false;
      }
    }
    if (now > begun + kQuick) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

bool DeviceCollectives::meet(const RankGroup &group, uint32_t instruction,
                             const std::string &what) {
  int32_t mine = 0, greatest = 0;
  Collective maximum = {.reduction = ReductionKind::Max, .type = ElementType::I32, .shape = {1}};
  return link.run(link.prepare(maximum, group, {"devices", instruction, what}), &mine, &greatest);
}

bool DeviceCollectives::settle(const Shared &communicator, const char *advice) const {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  return poll(
      [&](bool &isReady) { return library.ready(device, communicator.communicator, &isReady); },
      [&](auto now) {
        deadline = isBusy() ? now + timeout : deadline;
        return now <= deadline ||
               link.fail(concat("rank ", link.rank(), " waited ",
                                std::chrono::duration<double>(timeout).count(),
                                " s to set up communication between the devices of ranks ",
                                shapeText(communicator.ranks)));
      },
      advice);
}

bool DeviceCollectives::join(const DeviceFacts &facts) {
  struct Member {
    WorldId id = {};
    uint8_t identity[sizeof facts.identity] = {};
  };
  constexpr size_t kWords = sizeof(Member) / sizeof(int64_t);
  static_assert(sizeof(Member) % sizeof(int64_t) == 0);
  Member self;
  if (link.rank() == 0 && !check(library.makeWorldId(&self.id))) {
    return false;
  }
  std::copy(std::begin(facts.identity), std::end(facts.identity), self.identity);
  std::vector<Member> members(all.ranks.size());
  Collective gather = {
      .kind = CollectiveKind::AllGather, .type = ElementType::I64, .shape = {int64_t(kWords)}};
  if (!link.run(link.prepare(gather, all, {"devices", 0, "join one world"}), &self,
                members.data())) {
    return false;
  }
  auto isSame = [&](const Member &other) {
    return std::equal(std::begin(self.identity), std::end(self.identity), other.identity);
  };
  bool isKnown = std::any_of(std::begin(self.identity), std::end(self.identity),
                             [](uint8_t byte) { return byte != 0; });
  auto first = std::find_if(members.begin(), members.end(), isSame) - members.begin();
  if (isKnown && first != link.rank()) {
    return link.fail(concat("ranks ", first, " and ", link.rank(),
                            " are given one device, expected one for each"));
  }
  Shared &world = communicators[all.ranks];
  world.ranks = all.ranks;
  made.push_back(&world);
  return check(library.join(device, &members[0].id, int64_t(all.ranks.size()), link.rank(),
                            &world.communicator)) &&
         settle(world) && joinClasses();
}

bool DeviceCollectives::joinClasses() {
  auto each = int64_t(ofClass.ranks.size());
  // With one class, or one rank in each, the world is the only group of several ranks.
  if (each == 1 || ofClass.ranks.size() == all.ranks.size()) {
    return true;
  }
  const Shared &world = *made.front();
  std::vector<int64_t> across;
  for (int64_t rank = link.rank() % each; rank < int64_t(all.ranks.size()); rank += each) {
    across.push_back(rank);
  }
  return splitOff(world, all, ofClass.ranks) && splitOff(world, all, across);
}

const DeviceCollectives::Shared *DeviceCollectives::splitOff(const Shared &parent,
                                                             const RankGroup &siblings,
                                                             const std::vector<int64_t> &ranks) {
  auto number = uint32_t(made.size());
  if (!meet(siblings, number, concat("split off communicator ", number))) {
    return nullptr;
  }
  Shared &shared = communicators[ranks];
  shared.ranks = ranks;
  auto self = int64_t(indexOf(link.rank(), ranks));
  int64_t color = *std::min_element(ranks.begin(), ranks.end());
  if (!check(library.split(device, parent.communicator, color, self, &shared.communicator)) ||
      !settle(parent) || !settle(shared)) {
    return nullptr;
  }
  made.push_back(&shared);
  return &shared;
}

const DeviceCollectives::Shared *DeviceCollectives::find(const std::vector<int64_t> &ranks) {
  auto found = communicators.find(ranks);
  return found != communicators.end() ? &found->second
                                      : splitOff(communicators.at(ofClass.ranks), ofClass, ranks);
}

bool DeviceCollectives::registerWith(const Shared &communicator, Address at, uint64_t bytes) {
  Handle window = 0, plain = 0;
  bool isWindow = false, mayBeWindow = std::ranges::all_of(communicator.ranks, [&](int64_t rank) {
                           return ofClass.ranks.front() <= rank && rank <= ofClass.ranks.back();
                         });
  if (mayBeWindow &&
      !library.registerMemory(device, communicator.communicator, at, bytes, true, &window)) {
    registered.push_back(window);
    if (!settle(communicator, kWithoutWindows) ||
        !check(library.isRegistered(device, window, &isWindow))) {
      return false;
    }
  }
  if (isWindow) {
    return true;
  }
  DriverTable::Result refused =
      library.registerMemory(device, communicator.communicator, at, bytes, false, &plain);
  if (!refused) {
    registered.push_back(plain);
  } else if (link.rank() == 0) {
    std::fprintf(stderr, "note: collectives copy through their library's own memory: %s\n",
                 refused);
  }
  return true;
}

bool DeviceCollectives::registerMemory(Address at, uint64_t bytes) {
  return std::all_of(made.begin(), made.end(),
                     [&](const Shared *shared) { return registerWith(*shared, at, bytes); });
}

bool DeviceCollectives::end() {
  // Other ranks may still be in the last collective, or fail in it. Their classes may have made
  // more communicators, so these places have numbers that are the same for all.
  bool isGood = meet(0, "end their communicators") &&
                std::all_of(registered.begin(), registered.end(),
                            [&](Handle one) { return check(library.unregister(device, one)); });
  // The world comes last, since others share its buffers.
  for (auto shared = made.rbegin(); isGood && shared != made.rend(); ++shared) {
    Handle communicator = (*shared)->communicator;
    isGood = check(library.end(device, communicator)) && settle(**shared) &&
             check(library.freeCommunicator(device, communicator));
  }
  isEnded = isGood;
  // Freeing memory unmaps it for other ranks of this process, which may still use it.
  return isGood && meet(1, "free what they shared");
}

//===----------------------------------------------------------------------===//
// Steps of collectives
//===----------------------------------------------------------------------===//

/// Appends the calls of a reduction, gather or scatter: one for each index of the dimensions before
/// the one that is joined or cut.
void DeviceCollectives::appendWhole(const Collective &collective, uint64_t ranks,
                                    std::vector<Step> &steps) {
  std::span<const int64_t> shape = collective.shape;
  if (collective.kind == CollectiveKind::AllReduce) {
    steps.push_back({Call::AllReduce, 0, 0, product(shape)});
    return;
  }
  bool gathers = collective.kind == CollectiveKind::AllGather;
  uint64_t size = sizeOf(collective.type);
  uint64_t row = product(shape.subspan(collective.dim)),
           outer = product(shape.first(collective.dim));
  uint64_t result = gathers ? row * ranks : row / ranks;
  for (uint64_t i = 0; i < outer; ++i) {
    steps.push_back({gathers ? Call::AllGather : Call::ReduceScatter, i * row * size,
                     i * result * size, std::min(row, result)});
  }
}

/// Calls `visit` with the offsets, in elements, of each contiguous run of `shard` in an array of
/// sizes `first` and in one of sizes `second`. Dimensions from `inner` on are contiguous.
template <typename Visit>
static void forEachRun(std::span<const int64_t> shard, size_t inner, std::span<const int64_t> first,
                       std::span<const int64_t> second, const Visit &visit) {
  uint64_t runs = product(shard.first(inner));
  for (uint64_t run = 0; run < runs; ++run) {
    uint64_t rest = run, from = 0, to = 0;
    for (size_t dim = inner; dim-- > 0;) {
      uint64_t index = rest % uint64_t(shard[dim]);
      rest /= uint64_t(shard[dim]);
      from += index * product(first.subspan(dim + 1));
      to += index * product(second.subspan(dim + 1));
    }
    visit(from, to);
  }
}

/// Appends the sends and receives of a collective that moves shards. Every rank sends and receives,
/// if only to and from itself, so that all ranks issue the same calls.
void DeviceCollectives::appendShards(const Collective &collective, uint64_t own, uint64_t ranks,
                                     std::vector<Step> &steps) {
  uint64_t size = sizeOf(collective.type);
  std::span<const int64_t> shape = collective.shape;
  if (collective.kind == CollectiveKind::Permute) {
    auto target = std::find(collective.sources.begin(), collective.sources.end(), uint32_t(own));
    steps.push_back({Call::Send, 0, 0, product(shape), target - collective.sources.begin()});
    steps.push_back({Call::Receive, 0, 0, product(shape), int64_t(collective.sources[own])});
    return;
  }
  std::vector<int64_t> shard = collective.shape;
  shard[collective.dim] /= int64_t(ranks);
  std::vector<int64_t> result = shard;
  result[collective.dim2] *= int64_t(ranks);
  size_t inner = std::max(collective.dim, collective.dim2);
  std::span<const int64_t> shards = shard, results = result;
  uint64_t count = product(shards.subspan(inner));
  // The distance between the shards of consecutive ranks.
  uint64_t cut = uint64_t(shard[collective.dim]) * product(shape.subspan(collective.dim + 1));
  uint64_t join = uint64_t(shard[collective.dim2]) * product(results.subspan(collective.dim2 + 1));
  for (uint64_t peer = 0; peer < ranks; ++peer) {
    forEachRun(shards, inner, shape, results, [&](uint64_t from, uint64_t to) {
      steps.push_back({Call::Send, (from + peer * cut) * size, 0, count, int64_t(peer)});
      steps.push_back({Call::Receive, 0, (to + peer * join) * size, count, int64_t(peer)});
    });
  }
}

void DeviceCollectives::prepareTransfer(const Collective &collective, const RankGroup &group,
                                        Prepared &transfer) {
  int64_t sender = group.ranks.front(), receiver = group.ranks.back();
  bool sends = sender == link.rank();
  transfer.communicator = made.front()->communicator;
  transfer.turn = {kTransfersTurn, sender, receiver, int64_t(collective.type),
                   int64_t(transfer.bytes)};
  transfer.steps.push_back({sends ? Call::Send : Call::Receive, 0, 0, product(collective.shape),
                            sends ? receiver : sender});
}

bool DeviceCollectives::prepare(const Collective &collective, const RankGroup &group) {
  Prepared &made = prepared.emplace_back();
  made.reduction = collective.reduction;
  made.type = collective.type;
  made.bytes = product(collective.shape) * sizeOf(collective.type);
  if (group.ranks.size() == 1 || made.bytes == 0) {
    return true;
  }
  if (collective.kind == CollectiveKind::Transfer) {
    prepareTransfer(collective, group, made);
    return true;
  }
  const Shared *shared = find(group.ranks);
  if (!shared) {
    return false;
  }
  made.communicator = shared->communicator;
  made.turn[0] = shared == this->made.front()     ? kWorldsTurn
                 : shared->ranks == ofClass.ranks ? kClassesTurn
                                                  : kOthersTurn;
  if (collective.kind == CollectiveKind::Permute || collective.kind == CollectiveKind::AllToAll) {
    appendShards(collective, group.indexOf(link.rank()), group.ranks.size(), made.steps);
  } else {
    appendWhole(collective, group.ranks.size(), made.steps);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

bool DeviceCollectives::call(const Prepared &prepared, const Step &step, Handle stream,
                             Address operand, Address result) const {
  Handle on = prepared.communicator;
  Address from = operand + step.from, to = result + step.to;
  switch (step.call) {
  case Call::AllReduce:
    return check(library.allReduce(device, stream, on, prepared.reduction, prepared.type, from, to,
                                   step.count));
  case Call::AllGather:
    return check(library.allGather(device, stream, on, prepared.type, from, to, step.count));
  case Call::ReduceScatter:
    return check(library.reduceScatter(device, stream, on, prepared.reduction, prepared.type, from,
                                       to, step.count));
  case Call::Send:
    return check(library.send(device, stream, on, prepared.type, from, step.count, step.peer));
  case Call::Receive:
    return check(library.receive(device, stream, on, prepared.type, to, step.count, step.peer));
  }
  return true;
}

/// Communicators share the buffers of the one that they were split off, and would make them too
/// small if they came first (NVIDIA/nccl#2430).
std::vector<uint32_t> DeviceCollectives::firstOrder() const {
  std::vector<uint32_t> order(prepared.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t one, uint32_t other) {
    return std::pair(prepared[one].turn, one) < std::pair(prepared[other].turn, other);
  });
  return order;
}

bool DeviceCollectives::run(uint32_t number, Handle stream, Address operand, Address result) {
  const Prepared &running = prepared[number];
  if (!running.communicator) {
    return running.bytes == 0 || operand == result ||
           check(library.copy(device, stream, result, operand, running.bytes));
  }
  bool isGroup = running.steps.size() > 1;
  if (isGroup && !check(library.beginGroup(device))) {
    return false;
  }
  bool isGood = std::all_of(running.steps.begin(), running.steps.end(), [&](const Step &step) {
    return call(running, step, stream, operand, result);
  });
  if (!isGood || (isGroup && !check(library.endGroup(device)))) {
    return false;
  }
  auto shared = std::find_if(made.begin(), made.end(), [&](const Shared *one) {
    return one->communicator == running.communicator;
  });
  return settle(**shared);
}

/// A lost rank shows as an error of a communicator, not of the stream that waits for it.
bool DeviceCollectives::areWell() const {
  bool isReady = false;
  return std::all_of(made.begin(), made.end(), [&](const Shared *shared) {
    return check(library.ready(device, shared->communicator, &isReady));
  });
}

bool DeviceCollectives::await(Handle event) const {
  return poll([&](bool &isReached) { return library.reached(device, event, &isReached); },
              [&](auto) { return areWell(); });
}
