//===- TransportTable.h - the functions that send messages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executable is not linked with MPI, so that it runs on machines without it. All calls of
// MPI are in a shared library, `libweft-rt-mpi.so.1`, which is loaded when ranks are processes
// of MPI and which exports this table. MPI's handles are passed as numbers, so the table is
// the same for all implementations of MPI.
//
// For processes without MPI the runtime has a table of its own (tcp/Tcp.h), with a few more
// requirements, which are stated below.
//
// Functions return null on success, else the error; its text is valid until the next call.
// Only one thread at a time may be in any of them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H

#include <cstddef>
#include <cstdint>

namespace weft::rt::mpi {

struct TransportTable {
  /// Increase it with every change of this struct.
  static constexpr uint32_t kVersion = 1;

  using Result = const char *;

  /// Returns the name and version: "Open MPI v4.1.4".
  const char *(*name)();
  /// Call it once, before all others. Fails if MPI does not support calls from several threads, one
  /// at a time.
  Result (*start)(int64_t *rank, int64_t *size);
  /// All processes call it, as their last call.
  Result (*finish)();

  /// Makes a group of the first `members` processes, in order; `group` is 0 in the others. All
  /// processes call it. Over TCP the previous group must not be used any more.
  Result (*makeGroup)(int64_t members, uint64_t *group);
  Result (*freeGroup)(uint64_t *group);
  /// Gathers `bytes` bytes of each rank in `all`, by rank. All members of the group call it, and it
  /// waits for them.
  Result (*allGather)(uint64_t group, const void *own, void *all, size_t bytes);

  /// Begin to send or receive a message, and never wait. Messages between two ranks with one tag
  /// arrive in order. `count` is at most `kMostBytes`; a receiver may offer more room than the
  /// message needs. 0 <= tag < `kTags`. Over TCP two ranks must also receive messages of different
  /// tags in the order in which they were sent, except that 256 KiB may wait; and no rank sends to
  /// itself.
  Result (*send)(uint64_t group, const void *bytes, size_t count, int64_t to, int32_t tag,
                 uint64_t *request);
  Result (*receive)(uint64_t group, void *bytes, size_t count, int64_t from, int32_t tag,
                    uint64_t *request);
  /// Finds which of `count` requests are done: gives their number, their indices and the received
  /// bytes. A request that is done becomes `idle`, which later calls skip. If none is done, yields
  /// the core to other threads.
  Result (*test)(uint64_t *requests, size_t count, size_t *doneCount, size_t *done, size_t *bytes);
  /// Cancels a request after a failure, without waiting, since a message from a rank that died
  /// would never end. The request's memory may be freed if no request is begun, tested or waited
  /// for afterwards.
  void (*cancel)(uint64_t *request);

  uint64_t idle;
};

inline constexpr size_t kMostBytes = size_t(1) << 30;
inline constexpr int32_t kTags = 1 << 15;

} // namespace weft::rt::mpi

/// Exported by the shared library. Returns null if `version` is not its own.
extern "C" const weft::rt::mpi::TransportTable *weft_rt_mpi(uint32_t version);

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H
