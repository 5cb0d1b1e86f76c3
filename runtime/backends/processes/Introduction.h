//===- Introduction.h - the first message between processes ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process sends it to all others, over MPI or TCP, before the control channel is there. All
// Introductions have the same number of bytes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_INTRODUCTION_H
#define WEFT_RT_BACKENDS_PROCESSES_INTRODUCTION_H

#include "backends/processes/ControlChannel.h"
#include "support/Sha256.h"
#include "weft-rt/Status.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace weft::rt::mpi {

struct Introduction {
  std::string host;
  int64_t process = 0;
  /// Identify the program and its options.
  std::string program, arguments;
  /// Set by rank 0: the run's random number (see Secret::keyOf), the address of its control
  /// channel, and the reason why there is none.
  Bytes32 run = {};
  std::string address, problem;

  /// The most bytes of each text, in the order above, and of all.
  static constexpr std::array<size_t, 5> kMostText = {64, 256, 64, ControlChannel::kAddressBytes,
                                                      256};
  static constexpr size_t kBytes =
      std::accumulate(kMostText.begin(), kMostText.end(), sizeof process + sizeof run);

  /// Encodes it; longer texts are cut, and unprintable bytes become '?'.
  std::vector<char> encode() const;
  /// Fails if `bytes` are not `kBytes` bytes that `encode` returns.
  static Result<Introduction> decode(std::span<const char> bytes);

  /// "process 12 on 'host'".
  std::string placeText() const;
  bool operator==(const Introduction &) const = default;
};

/// Decodes the Introductions of all ranks, in their order, and fails if rank 0 has a problem, or if
/// not all run the same program with the same options.
Result<std::vector<Introduction>> readIntroductions(std::span<const char> bytes);

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_INTRODUCTION_H
