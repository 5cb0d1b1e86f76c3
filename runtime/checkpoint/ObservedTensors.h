//===- ObservedTensors.h - keeps what is observed in one step ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H
#define WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H

#include "execution/Executor.h"

namespace weft::rt {

/// One rank's shards of all observations of one kind. Belongs to the rank's thread.
class ObservedTensors {
public:
  /// Those whose names begin with `prefix`: "gradient/" or "logits".
  explicit ObservedTensors(std::string prefix) : prefix(std::move(prefix)) {}

  /// Whether the program observes any.
  bool isAny(const Program &program) const;

  /// Keeps the rank's shard, if it is the first of those that have it. Does nothing for
  /// observations of other kinds.
  void take(const Program &program, uint32_t observation, std::span<const int64_t> coordinates,
            const void *data);

  /// Writes them, together with all other ranks, by the names that the observations have; see
  /// `saveParts`.
  bool save(const std::string &path, const Program &program, const Executor &executor,
            int64_t step) const;

private:
  bool isMeant(const Observation &observation) const;

  std::string prefix;
  /// By observation; empty for those of other kinds and for shards that another rank keeps.
  std::vector<std::vector<char>> values;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H
