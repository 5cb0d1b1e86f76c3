//===- Overflow.h - what did not fit into an expert's buffer ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An observation with a limit tells how many tokens each expert got, of which its
// buffer takes `limit`. Kernels pass over the others, so nothing is written where it
// does not belong, but what they compute is wrong from there on: the step must not
// reach its update. All ranks learn that together, behind the loss, and then rank 0
// what each of them has seen, so that one message tells it all.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_OVERFLOW_H
#define WEFT_RT_EXECUTION_OVERFLOW_H

#include "weft-rt/Program.h"

#include <optional>
#include <span>
#include <string>

namespace weft::rt {

/// An element of an observation that is above its limit.
struct Overflow {
  uint32_t observation = 0;
  /// Index in the last dimension of the whole value.
  int64_t expert = 0;
  double value = 0;
};

/// The greatest element of the shard of `program.observations[observation]` that the rank at
/// `coordinates` holds, but for padding, if it is above the limit. One that is no number is.
/// REQUIRES: an observation with a limit.
std::optional<Overflow> findOverflow(const Program &program, uint32_t observation,
                                     std::span<const int64_t> coordinates, const void *data);

/// Whether `a` is to be told of, and not `b`: that of the earlier layer, as what comes after a loss
/// is wrong, and of one layer the greater.
bool goesBefore(const Overflow &a, const Overflow &b);

/// A sentence: layer, expert, what came, what there was room for, and what would have been enough.
std::string describe(const Program &program, const Overflow &overflow);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_OVERFLOW_H
