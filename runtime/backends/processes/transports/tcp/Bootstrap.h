//===- Bootstrap.h - connects the processes of a run over TCP -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0 listens at the address that the launcher's variables give. The other ranks connect
// to it, with retries until it listens, and both sides prove that they know the secret; once
// all have come, rank 0 sends each of them the addresses of all. Rank 0 refuses processes of
// another run or another size, and ranks that it already has; it sends them the reason, and
// the run goes on. A process that does not know the secret gets no answer (see Handshake.h).
//
// The connections between rank 0 and the others stay open.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H

#include "backends/Launcher.h"
#include "backends/processes/connections/Listener.h"
#include "backends/processes/connections/Secret.h"

namespace weft::rt::tcp {

/// The addresses and connections of all ranks.
struct Bootstrap {
  int64_t rank = 0, size = 1;
  /// Accepts connections of ranks above this one; closed at rank 0, to which all have connected.
  Listener listener;
  /// The key of handshakes from now on.
  Bytes32 runKey = {};
  /// By rank; none for rank 0 and for this rank.
  std::vector<Address> addresses;
  /// By rank: rank 0 has connections to all others, they have one to rank 0.
  std::vector<Descriptor> connections;
};

/// Connects the processes of `launcher`, which has a rendezvous point; all of them call it, with
/// the same secret. Fails after `patience`, and soon if the secrets differ; the error names the
/// missing ranks or the addresses that were tried, and is empty if rank 0 reports it.
Result<Bootstrap> gather(const mpi::Launcher &launcher, const Secret &secret,
                         std::chrono::nanoseconds patience);

/// The head of rank 0's answer to a process. `bytes` follow it: the reason of a refusal, nothing if
/// the run has failed, or the roster (see `encodeRoster`).
struct AnswerHead {
  enum class Kind : uint32_t { Refused = 1, Over, Roster };

  uint64_t magic = Hello::kMagic;
  Kind kind = Kind::Refused;
  uint32_t bytes = 0;
};
static_assert(sizeof(AnswerHead) == 16);
inline constexpr size_t kMostReason = 1024;

/// Encode and decode the run's random number (see Secret::keyOf) and the addresses of all ranks.
/// Decoding returns false unless `bytes` hold exactly `size` valid addresses.
std::vector<char> encodeRoster(const Bytes32 &run, std::span<const Address> addresses);
bool decodeRoster(std::span<const char> bytes, int64_t size, Bytes32 &run,
                  std::vector<Address> &addresses);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_BOOTSTRAP_H
