//===- SimulatorWorld.h - how devices that are none reach each other -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A clique is what ranks of one communicator have in common. What they begin together, as to split
// it, is a round; what they enqueue together is a rendezvous, which is held once all have come to
// it in their streams, by whoever waits for one of them: sums are taken in the order of ranks.
//
// All is guarded by one lock, which every call of the table holds.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORWORLD_H
#define WEFT_RT_TESTING_SIMULATORWORLD_H

#include "backends/cuda/DriverTable.h"
#include "testing/SimulatorOrder.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace weft::rt::cuda {

class Device;
struct Clique;

/// What all ranks of a clique begin.
struct Round {
  /// What it is, to compare.
  std::string what;
  std::set<size_t> come;
  size_t missing = 0;
  /// Of a split: who has brought a color, by key, and what was made for it.
  std::map<int64_t, std::multimap<int64_t, size_t>> colors = {};
  std::map<int64_t, std::shared_ptr<Clique>> made = {};
};

/// What a rank enqueues on a communicator, in a group or alone.
struct Exchange {
  enum class Kind : uint8_t { AllReduce, AllGather, ReduceScatter, Send, Receive };

  Kind kind = Kind::AllReduce;
  /// Of no use to some kinds.
  ReductionKind reduction = ReductionKind::Sum;
  ElementType type = ElementType::F32;
  uint64_t count = 0;
  DriverTable::Address from = 0, to = 0;
  int64_t peer = -1;
  /// All that meet are, or none.
  bool isOfGraph = false;

  bool isPair() const { return kind == Kind::Send || kind == Kind::Receive; }
  uint64_t readBytes(size_t ranks) const;
  uint64_t writtenBytes(size_t ranks) const;
};

/// "all-reduce sum f32 of 4"
std::string textOf(const Exchange &exchange);

/// Of all ranks, or of who sends and who receives: all that one group has for the other.
struct DeviceRendezvous {
  struct Part {
    Device *device = nullptr;
    Place place = {};
    std::vector<Exchange> exchanges = {};
  };

  std::vector<Part> parts;
  size_t missing = 0;
  bool isHeld = false;

  /// Whether all have come, and stand before it in their streams.
  bool isComplete() const;
  void hold();
};

struct Clique {
  uint64_t number = 0;
  /// By rank; null until they join.
  std::vector<Device *> members = {};
  /// Those that some have not come to yet.
  std::map<uint64_t, std::shared_ptr<Round>> rounds = {};
  std::map<uint64_t, std::shared_ptr<DeviceRendezvous>> allRendezvous = {};
  /// Sends and receives without their other half, by sender and receiver.
  std::map<std::pair<size_t, size_t>, std::deque<std::shared_ptr<DeviceRendezvous>>> pairs = {};
  /// What each rank has come to so far.
  std::vector<uint64_t> roundsOf = {}, rendezvousOf = {};

  explicit Clique(uint64_t number, size_t ranks)
      : number(number), members(ranks), roundsOf(ranks), rendezvousOf(ranks) {}
};

class World {
public:
  std::mutex mutex;
  /// Those that are open.
  std::vector<Device *> devices;
  /// See SimulatorSettings.
  bool isAlone = false;

  WorldId makeId();
  /// The clique of all that bring `id`.
  std::shared_ptr<Clique> join(const WorldId &id, size_t ranks, size_t rank, Device &device);
  /// Rank `rank` comes to its next round.
  std::shared_ptr<Round> come(Clique &clique, size_t rank, const std::string &what);
  std::shared_ptr<Round> split(Clique &clique, size_t rank, int64_t color, int64_t key);
  /// Rank `rank` comes with one exchange, or with all of a group between it and one peer.
  std::shared_ptr<DeviceRendezvous> meet(Clique &clique, size_t rank,
                                         const std::vector<Exchange> &exchanges);
  /// Fails where ranks that two cliques have in common issue to them in different orders.
  void checkOrder(const std::shared_ptr<Clique> &clique, Device &device);

  /// Does some work of another device than `own`; whether there was any.
  bool helpOthers(const Device &own);
  /// Wakes who waits.
  void notify() { changed.notify_all(); }
  /// Waits until another thread has called the table; false if none does for as long as `limit`.
  bool wait(std::chrono::milliseconds limit);

private:
  /// What devices of two cliques have issued, as far as not all have.
  struct Order {
    /// For each: whether it was of the second clique.
    std::deque<bool> issued = {};
    /// How many were dropped.
    uint64_t dropped = 0;
    std::map<Device *, uint64_t> come = {};
  };

  void checkPair(Order &order, bool isSecond, Device &device, const Clique &clique,
                 const Clique &other);
  std::shared_ptr<Clique> makeClique(size_t ranks);

  std::condition_variable changed;
  uint64_t ids = 0, numbers = 0;
  std::map<uint64_t, std::shared_ptr<Clique>> joining;
  std::vector<std::weak_ptr<Clique>> cliques;
  std::map<std::pair<uint64_t, uint64_t>, Order> orders;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORWORLD_H
