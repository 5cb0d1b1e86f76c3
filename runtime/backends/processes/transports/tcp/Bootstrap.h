//===- Bootstrap.h - how processes find each other by TCP -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0 listens where the launcher's variables say. The others come to it, again and
// again until it is there, and say who they are; once all have come it tells each where
// the others listen. Who does not belong is sent away and told why, and harms nobody:
// a process of another run or size, another version, a rank that is there already.
//
// The connections between rank 0 and the others stay.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H

#include "backends/Launcher.h"
#include "backends/processes/transports/tcp/Listener.h"

namespace weft::rt::tcp {

/// All ranks, found.
struct Bootstrap {
  int64_t rank = 0, size = 1;
  /// Where ranks above this one come to; rank 0's is closed, as all have come.
  Listener listener;
  /// What `Hello::key` is from now on.
  uint64_t secret = 0;
  /// By rank; of rank 0 there is none to connect to, nor of this rank itself.
  std::vector<Address> addresses;
  /// By rank: rank 0 has those of all others, these have that of rank 0.
  std::vector<Descriptor> connections;
};

/// Called by all processes of `launcher`, which has a rendezvous point. Fails after `patience`,
/// saying who is missing or what was tried; with an empty error where rank 0 says it.
bool gather(const mpi::Launcher &launcher, std::chrono::nanoseconds patience, Bootstrap &bootstrap,
            std::string &error);

/// What rank 0 says to who has come: that it does not belong, with a reason; that nothing comes of
/// the run; or who is where.
struct AnswerHead {
  enum class Kind : uint32_t { Refused = 1, Over, Roster };

  uint64_t magic = Hello::kMagic;
  Kind kind = Kind::Refused;
  uint32_t bytes = 0;
};
static_assert(sizeof(AnswerHead) == 16);
inline constexpr size_t kMostReason = 1024;

/// The secret and the addresses of all `size` ranks. What does not fit `size` is none.
std::vector<char> encodeRoster(uint64_t secret, std::span<const Address> addresses);
bool decodeRoster(std::span<const char> bytes, int64_t size, uint64_t &secret,
                  std::vector<Address> &addresses);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H
