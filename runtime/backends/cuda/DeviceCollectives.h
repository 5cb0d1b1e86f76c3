//===- DeviceCollectives.h - collectives of programs between devices ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a rank does in a collective of a program is a list of calls of the library's, put
// together when it is prepared: one call where it goes along the leading dimension, else
// a group of them, each on what lies in one run.
//
// There is one world of all ranks. Groups that are not all ranks get a communicator that
// is split off it, one for all collectives over the same groups in the same order; groups
// of one rank copy. All ranks prepare the same collectives in the same order, so that
// communicators are made in one order too. That is where ranks wait for each other; the
// host's communicator says who is missing then, and the time is limited.
//
// Belongs to its rank's thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H
#define WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Backend.h"

#include <chrono>
#include <functional>
#include <map>
#include <vector>

namespace weft::rt::cuda {

class DeviceCollectives {
public:
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  /// `device`, of that number, is open, and this rank's. What begins with other ranks is waited
  /// for as long as `timeout`. All must outlive this.
  DeviceCollectives(const DriverTable &library, int64_t number, Handle device, Communicator &link,
                    std::vector<Axis> mesh, std::chrono::nanoseconds timeout);
  /// Gives up the communicators, unless `end` has ended them; if that takes long, it goes on when
  /// this is gone, and the device must stay open.
  ~DeviceCollectives();

  /// `isBusy` says whether somebody watches that the device comes on, and it still has something to
  /// do. What is enqueued then may have to wait for that, so its time is not counted.
  void watchBy(std::function<bool()> isBusy) { this->isBusy = std::move(isBusy); }

  // All tell the communicator of what goes wrong, and return false then.

  /// Makes the world. To be called first, by all ranks, each with a device of its own, which
  /// `facts` tell from others; if they do not, that is not looked at.
  bool join(const DeviceFacts &facts = {});
  /// Makes ready number 0, 1 and so on. May make a communicator.
  bool prepare(const Collective &collective);
  /// Lets communicators use memory of `allocateShared` where it lies: to be called once they are
  /// all made. Where the library does not do that it uses memory of its own, and rank 0 says so.
  bool registerMemory(Address at, uint64_t bytes);
  /// Whether all ranks take part in prepared collective `number`.
  bool isOfWorld(uint32_t number) const;
  /// Enqueues prepared collective `number` on `stream`. Operand and result are as Program.h says.
  bool run(uint32_t number, Handle stream, Address operand, Address result);
  /// All ranks come here, on the host; who does not is missed by name.
  bool meet(uint32_t instruction, const std::string &what);
  /// Waits until `event`, which has been recorded, is reached, or the run stops.
  bool await(Handle event) const;
  /// Ends the communicators, of which nothing is under way any more: all ranks do, or none. Once
  /// it is true no rank uses memory of another's.
  bool end();

private:
  enum class Call : uint8_t { AllReduce, AllGather, ReduceScatter, Send, Receive };

  /// A call of the library's, in bytes from where operand and result begin.
  struct Step {
    Call call = Call::AllReduce;
    uint64_t from = 0, to = 0, count = 0;
    int64_t peer = -1;
  };

  struct Prepared {
    /// 0 for a copy.
    Handle communicator = 0;
    ReductionKind reduction = ReductionKind::Sum;
    ElementType type = ElementType::F32;
    std::vector<Step> steps;
    /// Of a copy.
    uint64_t bytes = 0;
  };

  struct Shared {
    Handle communicator = 0;
    std::vector<int64_t> ranks;
  };

  bool check(DriverTable::Result result, const char *advice = "") const;
  /// Asks, until `ask` says that it is done, which is true then; false if it fails, as `advice` may
  /// say why, or `look`, which is called about once a millisecond, or if the run stops.
  template <typename Ask, typename Look>
  bool poll(const Ask &ask, const Look &look, const char *advice = "") const;
  /// Waits until what was begun on `communicator` has come to an end.
  bool settle(const Shared &communicator, const char *advice = "") const;
  /// Whether nothing has failed on any communicator.
  bool areWell() const;
  /// The communicator of this rank's group over `axes`, in its order.
  const Shared *find(const std::vector<uint32_t> &axes);
  bool registerWith(const Shared &communicator, Address at, uint64_t bytes);
  bool call(const Prepared &prepared, const Step &step, Handle stream, Address operand,
            Address result) const;

  static void appendWhole(const Collective &collective, uint64_t ranks, std::vector<Step> &steps);
  static void appendShards(const Collective &collective, uint64_t own, uint64_t ranks,
                           std::vector<Step> &steps);

  const DriverTable &library;
  const int64_t number;
  const Handle device;
  Communicator &link;
  const std::vector<Axis> mesh;
  const std::chrono::nanoseconds timeout;
  std::function<bool()> isBusy = [] { return false; };
  /// By axes that have more than one coordinate; the world is of all, in their order.
  std::map<std::vector<uint32_t>, Shared> communicators;
  /// The order in which they were made.
  std::vector<const Shared *> made;
  std::vector<Handle> registered;
  std::vector<Prepared> prepared;
  bool isEnded = false;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DEVICECOLLECTIVES_H
