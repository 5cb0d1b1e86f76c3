//===- ObservedTensors.h - stores one step's observations -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H
#define WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H

#include "execution/Executor.h"

namespace weft::rt {

/// One rank's shards of all observations with one prefix. Belongs to the rank's thread.
class ObservedTensors {
public:
  /// Selects the observations whose names begin with `prefix`: "gradient/" or "logits".
  explicit ObservedTensors(std::string prefix) : prefix(std::move(prefix)) {}

  /// Returns true if the program has such observations.
  bool isAny(std::span<const Program> programs) const;

  /// Copies the rank's shard if the rank is the first of those that hold it. Ignores observations
  /// with other names.
  void take(const Program &program, uint32_t observation, std::span<const int64_t> coordinates,
            const void *data);

  /// Writes all kept observations under their names, together with all other ranks; see
  /// `saveParts`.
  bool save(const std::string &path, std::span<const Program> programs, const Executor &executor,
            int64_t step) const;

private:
  bool isMeant(const Observation &observation) const;

  std::string prefix;
  /// The shard of each observation; empty for observations with other names and for shards that
  /// another rank keeps.
  std::vector<std::vector<char>> values;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_OBSERVEDTENSORS_H
