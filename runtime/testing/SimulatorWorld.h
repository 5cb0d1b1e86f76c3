//===- SimulatorWorld.h - communication between simulated devices --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A clique is the shared state of the ranks of one communicator. An operation that all begin, as
// a split, is a round; a collective that all enqueue is a rendezvous. A rendezvous is held, by
// any thread that waits for one of its members, once all have reached it in their streams; sums
// are taken in the order of ranks.
//
// One lock, which every call of the table holds, guards all of it.
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

/// An operation that all ranks of a clique begin.
struct Round {
  /// The operation's name, which all ranks must agree on.
  std::string what;
  std::set<size_t> come;
  size_t missing = 0;
  /// For a split: by color, the ranks in the order of their keys, and the new clique.
  std::map<int64_t, std::multimap<int64_t, size_t>> colors = {};
  std::map<int64_t, std::shared_ptr<Clique>> made = {};
};

/// One rank's part of a collective, enqueued in a group or alone.
struct Exchange {
  enum class Kind : uint8_t { AllReduce, AllGather, ReduceScatter, Send, Receive };

  Kind kind = Kind::AllReduce;
  /// Some kinds do not use it.
  ReductionKind reduction = ReductionKind::Sum;
  ElementType type = ElementType::F32;
  uint64_t count = 0;
  DriverTable::Address from = 0, to = 0;
  int64_t peer = -1;
  /// True if a graph launches it; the same on all ranks that meet.
  bool isOfGraph = false;

  bool isPair() const { return kind == Kind::Send || kind == Kind::Receive; }
  uint64_t readBytes(size_t ranks) const;
  uint64_t writtenBytes(size_t ranks) const;
};

/// Describes an exchange: "all-reduce sum f32 of 4".
std::string textOf(const Exchange &exchange);

/// A rendezvous of all ranks, or of a sender and a receiver with all messages of one group.
struct DeviceRendezvous {
  struct Part {
    Device *device = nullptr;
    Place place = {};
    std::vector<Exchange> exchanges = {};
  };

  std::vector<Part> parts;
  size_t missing = 0;
  bool isHeld = false;

  /// Returns true if all members have enqueued it and reached it in their streams.
  bool isComplete() const;
  void hold();
};

struct Clique {
  uint64_t number = 0;
  /// By rank; null until they join.
  std::vector<Device *> members = {};
  /// Rounds and rendezvous that some ranks have not come to yet.
  std::map<uint64_t, std::shared_ptr<Round>> rounds = {};
  std::map<uint64_t, std::shared_ptr<DeviceRendezvous>> allRendezvous = {};
  /// Unmatched sends and receives, by sender and receiver.
  std::map<std::pair<size_t, size_t>, std::deque<std::shared_ptr<DeviceRendezvous>>> pairs = {};
  /// The number of rounds and rendezvous that each rank has come to.
  std::vector<uint64_t> roundsOf = {}, rendezvousOf = {};

  explicit Clique(uint64_t number, size_t ranks)
      : number(number), members(ranks), roundsOf(ranks), rendezvousOf(ranks) {}
};

class World {
public:
  std::mutex mutex;
  /// The open devices.
  std::vector<Device *> devices;
  /// See SimulatorSettings.
  bool isAlone = false;

  WorldId makeId();
  /// Returns the clique of all ranks that join with `id`.
  std::shared_ptr<Clique> join(const WorldId &id, size_t ranks, size_t rank, Device &device);
  /// Lets `rank` come to its next round.
  std::shared_ptr<Round> come(Clique &clique, size_t rank, const std::string &what);
  std::shared_ptr<Round> split(Clique &clique, size_t rank, int64_t color, int64_t key);
  /// Lets `rank` come to a rendezvous with one collective, or with all messages of a group between
  /// it and one peer.
  std::shared_ptr<DeviceRendezvous> meet(Clique &clique, size_t rank,
                                         const std::vector<Exchange> &exchanges);
  /// Fails if two ranks issue collectives and transfers in which both take part in different
  /// orders. `group` is issued by `rank`; one send or receive alone is a transfer.
  void checkOrder(const Clique &clique, size_t rank, const std::vector<Exchange> &group);
  /// Forgets a device that is closed.
  void leave(Device *device);

  /// Does some work of a device other than `own`. Returns false if there was none.
  bool helpOthers(const Device &own);
  /// Wakes threads in `wait`.
  void notify() { changed.notify_all(); }
  /// Waits until another thread has called the table. Returns false if none does within `limit`.
  bool wait(std::chrono::milliseconds limit);

private:
  /// What a device issues: collectives of a clique, or a transfer between two of its ranks.
  struct Issued {
    uint64_t clique = 0;
    int64_t sender = -1, receiver = -1;

    bool operator==(const Issued &) const = default;
  };
  /// What one of two devices has issued to both, and the other has not yet.
  struct Order {
    Device *leader = nullptr;
    std::deque<Issued> ahead = {};
  };

  static std::string textOf(const Issued &issued);
  void checkOrder(Device &device, Device &other, const Issued &issued);
  std::shared_ptr<Clique> makeClique(size_t ranks);

  std::condition_variable changed;
  uint64_t ids = 0, numbers = 0;
  std::map<uint64_t, std::shared_ptr<Clique>> joining;
  std::map<std::pair<Device *, Device *>, Order> orders;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORWORLD_H
