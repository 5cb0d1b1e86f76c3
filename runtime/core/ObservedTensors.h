//===- ObservedTensors.h - keeps what is observed in one step ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_OBSERVEDTENSORS_H
#define WEFT_RT_CORE_OBSERVEDTENSORS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Whole tensors for all observations of one kind, filled by the ranks piece by piece.
class ObservedTensors {
public:
  /// Those whose names begin with `prefix`: "gradient/" or "logits".
  explicit ObservedTensors(std::string prefix) : prefix(std::move(prefix)) {}

  /// Makes room for them. False if the program observes none.
  bool allocate(const Program &program);

  /// Puts in the piece of the rank at `coordinates`. Ranks may call this at once: of
  /// those that hold the same piece only the first copies it. Does nothing for
  /// observations of other kinds.
  void take(const Program &program, uint32_t observation, std::span<const int64_t> coordinates,
            const void *data);

  /// Writes them, by the names that the observations have, as a safetensors file with
  /// the metadata "format" = "weft", "step" and "plan".
  bool save(const std::string &path, const Program &program, int64_t step,
            std::string &error) const;

private:
  bool isMeant(const Observation &observation) const;

  std::string prefix;
  /// By observation; empty for those of other kinds.
  std::vector<std::vector<char>> values;
};

} // namespace weft::rt

#endif // WEFT_RT_CORE_OBSERVEDTENSORS_H
