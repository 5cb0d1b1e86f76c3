//===- TransportTable.h - what the backend needs of MPI -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executable is not linked with MPI, so that it runs where there is none. All calls
// of MPI are in a shared library of their own, `libweft-rt-mpi.so.1`, which is loaded
// when ranks are to be processes of MPI and which gives this table. Handles of MPI are
// passed as numbers, so nothing here depends on whose MPI it is.
//
// For processes that know no MPI the runtime has a table of its own: tcp/Tcp.h. It asks a
// little more of who uses it, as stands below.
//
// Functions return null, or what went wrong; the text lives until the next call. One
// thread at a time may be in any of them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H

#include <cstddef>
#include <cstdint>

namespace weft::rt::mpi {

struct TransportTable {
  /// Changes with this struct.
  static constexpr uint32_t kVersion = 1;

  using Result = const char *;

  /// "Open MPI v4.1.4".
  const char *(*name)();
  /// To be called first, once. Fails if MPI does not let several threads call it in turn.
  Result (*start)(int64_t *rank, int64_t *size);
  /// To be called last, by all processes.
  Result (*finish)();

  /// By all processes: makes the group of those before `members`, in their order; 0 elsewhere. Over
  /// TCP the one before it is dead from then on.
  Result (*makeGroup)(int64_t members, uint64_t *group);
  Result (*freeGroup)(uint64_t *group);
  /// By all of a group: `all` becomes everyone's `bytes`, by rank.
  Result (*allGather)(uint64_t group, const void *own, void *all, size_t bytes);

  /// Begin, and never wait. Messages of two ranks with one tag arrive in order. At most
  /// `kMostBytes`; who receives may expect more than comes. Tags are from 0 to below `kTags`. Over
  /// TCP messages of two ranks must also be received in the order they are sent, whatever their
  /// tags, but for some 256 KiB; and none is sent to the rank itself.
  Result (*send)(uint64_t group, const void *bytes, size_t count, int64_t to, int32_t tag,
                 uint64_t *request);
  Result (*receive)(uint64_t group, void *bytes, size_t count, int64_t from, int32_t tag,
                    uint64_t *request);
  /// Which of `count` requests are done: their indices, and the bytes that came. A request that is
  /// done becomes `idle` and is passed over from then on. Where none is, other threads are given
  /// the core if they want it.
  Result (*test)(uint64_t *requests, size_t count, size_t *doneCount, size_t *done, size_t *bytes);
  /// Gives up a request of a run that has failed, and does not wait: what a rank has begun to send
  /// and then died never ends. Its memory may go as long as nothing begins, tests or waits after.
  void (*cancel)(uint64_t *request);

  uint64_t idle;
};

inline constexpr size_t kMostBytes = size_t(1) << 30;
inline constexpr int32_t kTags = 1 << 15;

} // namespace weft::rt::mpi

/// What the shared library exports; null if `version` is not its own.
extern "C" const weft::rt::mpi::TransportTable *weft_rt_mpi(uint32_t version);

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TRANSPORTTABLE_H
