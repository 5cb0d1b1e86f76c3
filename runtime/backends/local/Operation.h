//===- Operation.h - one prepared collective of one rank --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are threads, so a collective needs no messages: between `meet` and `part`
// every member reads the others' operands where they lie.
//
//   all-reduce      member i reduces slice i of all operands and writes it into
//                   every result; n members share the work
//   reduce-scatter  member i reduces its own shard of all operands
//   all-gather,     member i copies its shard of each operand
//   all-to-all
//   permute,        each member copies an operand; of a transfer only the receiver
//   transfer
//
// With n members and operands of b bytes, a member reads and writes: all-reduce b
// and b; reduce-scatter b and b/n; all-gather nb and nb; all-to-all, permute
// and the receiver of a transfer b and b.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_OPERATION_H
#define WEFT_RT_BACKENDS_LOCAL_OPERATION_H

#include "backends/local/Rendezvous.h"
#include "program/Box.h"
#include "support/TestDelays.h"

namespace weft::rt::local {

class Operation {
public:
  /// An operation of `rank` in `group`. `rendezvous` is where its ranks meet; null if the rank is
  /// alone. `linkDelay` is what links add, for tests.
  Operation(const Collective &collective, const RankGroup &group, const CallSite &site,
            Rendezvous *rendezvous, int64_t rank, TestDelays::Duration linkDelay);

  /// See Communicator::run.
  bool run(const void *operand, void *result, Runner &runner) const;

  /// See Communicator::collect. The operation is a collective over all ranks that moves nothing.
  bool collect(std::span<const char> own, const Communicator::Receiver &take, Runner &runner) const;

  /// Returns true if both are the same collective at the same place of the program.
  bool matches(const Operation &other) const;

  /// "all-reduce sum f32 [4, 8] (step instruction 12, layers.0.mlp)".
  std::string description() const;

  const TestDelays::Duration linkDelay;

private:
  /// Does the work between `meet` and `part`. REQUIRES: the operand is not empty.
  void moveElements(void *result) const;
  void allReduce() const;
  void reduceScatter(void *result) const;
  void copyShards(void *result) const;
  void copyShard(void *to, const void *from, size_t bytes) const;
  /// The number of elements that are reduced at a time.
  int64_t chunkLength() const;
  /// Reduces `length` elements of all operands, from byte `offset` on, into `sum`.
  void reduceChunk(void *sum, size_t offset, int64_t length) const;
  const char *operandOf(size_t other) const {
    return static_cast<const char *>(rendezvous->operandOf(other)) + sourceStart;
  }

  const Collective collective;
  const RankGroup group;
  const CallSite site;
  const uint64_t fingerprint;
  Rendezvous *const rendezvous;
  /// The rank's index in `rendezvous`.
  const size_t member;
  const size_t elementBytes;
  /// Elements in the operand.
  int64_t count = 0;
  /// This member copies `shard` of each operand, from byte `sourceStart` on; in the result the
  /// shard of member i begins at byte i * `targetStep`.
  std::optional<Box> shard;
  int64_t sourceStart = 0, targetStep = 0;
};

} // namespace weft::rt::local

#endif // WEFT_RT_BACKENDS_LOCAL_OPERATION_H
