//===- Gradients.h - keeps the gradients of one step ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_GRADIENTS_H
#define WEFT_RT_CORE_GRADIENTS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Whole tensors for all observations named "gradient/...", filled by the ranks piece by piece.
class Gradients {
public:
  /// Makes room for them. Fails if the program observes no gradients.
  bool allocate(const Program &program, std::string &error);

  /// Puts in the piece of the rank at `coordinates`. Ranks may call this at once: of
  /// those that hold the same piece only the first copies it. Does nothing for
  /// observations that are no gradients.
  void take(const Program &program, uint32_t observation, std::span<const int64_t> coordinates,
            const void *data);

  /// Writes them, by the names that the observations have, as a safetensors file with
  /// the metadata "format" = "weft", "step" and "plan".
  bool save(const std::string &path, const Program &program, int64_t step,
            std::string &error) const;

private:
  /// By observation; empty for those that are no gradients.
  std::vector<std::vector<char>> values;
};

} // namespace weft::rt

#endif // WEFT_RT_CORE_GRADIENTS_H
