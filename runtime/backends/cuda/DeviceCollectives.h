//===- DeviceCollectives.h - collectives of programs between devices ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prepared collective is a list of calls of the library: one call if the collective joins
// or cuts the leading dimension, else a group of calls, one for each contiguous run. A transfer
// is one send on one rank, one receive on the other.
//
// One world communicator has all ranks. Where there are several rank classes, each has one of
// its own, and so do the ranks at the same place of all classes. Smaller groups get a
// communicator that is split off that of their class, one for all collectives over the same
// groups in the same order; groups of one rank copy; transfers need none of their own, since
// the world has both ranks. All ranks of a class prepare the same collectives but transfers in
// the same order, so that they make communicators in the same order. Making them waits for
// other ranks, up to a timeout; then the host's communicator names the missing ranks.
//
// Only its rank's thread may use it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H
#define WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Backend.h"

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <vector>

namespace weft::rt::cuda {

class DeviceCollectives {
public:
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  /// `device` is this rank's open device, number `number`; `ofClass` are the ranks of its class, of
  /// `ranks` in all. Waits up to `timeout` for other ranks when communicators are made. All
  /// arguments must outlive this.
  DeviceCollectives(const DriverTable &library, int64_t number, Handle device, Communicator &link,
                    int64_t ranks, RankGroup ofClass, std::chrono::nanoseconds timeout);
  /// Aborts the communicators, unless `end` has ended them. An abort that takes long continues
  /// after the destructor, so the device must stay open.
  ~DeviceCollectives();

  /// `isBusy` returns true while a monitor watches the device's progress and the device has work.
  /// That time does not count towards the timeout, since new work may have to wait for it.
  void watchBy(std::function<bool()> isBusy) { this->isBusy = std::move(isBusy); }
  /// `place` returns the instructions that a call is for, for reports (Check.h); "" for none.
  void placeBy(std::function<std::string()> place) { this->place = std::move(place); }

  // On errors, all fail the communicator and return false.

  /// Makes the world communicator. All ranks call it first. Fails if `facts` show that two ranks
  /// use one device; facts without an identity are not checked.
  bool join(const DeviceFacts &facts = {});
  /// Prepares the next collective, among the ranks of `group`; they are numbered from 0. May make a
  /// communicator, unless it is a transfer.
  bool prepare(const Collective &collective, const RankGroup &group);
  /// Registers memory of `allocateShared`, so that communicators use it without copies: as a window
  /// of those within a class, whose ranks have equally much of it. Call it once all communicators
  /// are made. If the library refuses, it copies, and rank 0 prints a note.
  bool registerMemory(Address at, uint64_t bytes);
  /// Returns the numbers of the prepared collectives in the order in which ranks run them for the
  /// first time: those of all ranks; transfers, which ranks may have numbered in different orders;
  /// those of all ranks of the class; those of smaller groups.
  std::vector<uint32_t> firstOrder() const;
  /// Enqueues prepared collective `number` on `stream`. See Program.h for operand and result.
  bool run(uint32_t number, Handle stream, Address operand, Address result);
  /// Waits on the host for all ranks; a timeout names the missing ones.
  bool meet(uint32_t instruction, const std::string &what) { return meet(all, instruction, what); }
  /// Waits until the recorded `event` is reached. Returns false if the run stops.
  bool await(Handle event) const;
  /// Ends the communicators. All ranks call it, when no collective is under way. Once it returns
  /// true, no rank accesses memory of another.
  bool end();

private:
  enum class Call : uint8_t { AllReduce, AllGather, ReduceScatter, Send, Receive };

  /// One call of the library. `from` and `to` are byte offsets into operand and result.
  struct Step {
    Call call = Call::AllReduce;
    uint64_t from = 0, to = 0, count = 0;
    int64_t peer = -1;
  };

  struct Prepared {
    /// 0 for a copy within this rank.
    Handle communicator = 0;
    ReductionKind reduction = ReductionKind::Sum;
    ElementType type = ElementType::F32;
    std::vector<Step> steps;
    /// The bytes of a copy.
    uint64_t bytes = 0;
    /// Its place in `firstOrder`, which for a transfer is the same on both ranks.
    std::array<int64_t, 5> turn = {};
  };

  struct Shared {
    Handle communicator = 0;
    std::vector<int64_t> ranks;
  };

  bool check(DriverTable::Result result, const char *advice = "") const;
  /// Calls `ask` until it reports that it is done, and returns true. Returns false if `ask` fails
  /// (the error ends with `advice`), if `look` fails, which is called about once a millisecond, or
  /// if the run stops.
  template <typename Ask, typename Look>
  bool poll(const Ask &ask, const Look &look, const char *advice = "") const;
  /// Waits until the operation that was begun on `communicator` is done.
  bool settle(const Shared &communicator, const char *advice = "") const;
  /// Returns true if no communicator has failed.
  bool areWell() const;
  bool meet(const RankGroup &group, uint32_t instruction, const std::string &what);
  /// Makes the communicators of rank classes, and across them. All ranks call it.
  bool joinClasses();
  /// Makes the communicator of `ranks`, in this order, of which all of `parent` are in one.
  /// `siblings` are the ranks of `parent`. Returns null on failure.
  const Shared *splitOff(const Shared &parent, const RankGroup &siblings,
                         const std::vector<int64_t> &ranks);
  /// Returns the communicator of `ranks`, in this order.
  const Shared *find(const std::vector<int64_t> &ranks);
  bool registerWith(const Shared &communicator, Address at, uint64_t bytes);
  void prepareTransfer(const Collective &collective, const RankGroup &group, Prepared &transfer);
  bool call(const Prepared &prepared, const Step &step, Handle stream, Address operand,
            Address result) const;

  static void appendWhole(const Collective &collective, uint64_t ranks, std::vector<Step> &steps);
  static void appendShards(const Collective &collective, uint64_t own, uint64_t ranks,
                           std::vector<Step> &steps);

  const DriverTable &library;
  const int64_t number;
  const Handle device;
  Communicator &link;
  const RankGroup all, ofClass;
  const std::chrono::nanoseconds timeout;
  std::function<bool()> isBusy = [] { return false; };
  std::function<std::string()> place = [] { return std::string(); };
  /// By ranks, in group order.
  std::map<std::vector<int64_t>, Shared> communicators;
  /// The order in which they were made.
  std::vector<const Shared *> made;
  std::vector<Handle> registered;
  std::vector<Prepared> prepared;
  bool isEnded = false;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H
