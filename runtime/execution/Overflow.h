//===- Overflow.h - tokens that exceed an expert's buffer -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An observation with a limit counts the tokens of each expert, whose buffer takes
// `limit` of them. Kernels skip the tokens beyond, so nothing is overwritten, but
// all later results are wrong: the step must not reach its update. All ranks agree
// on this after the loss; rank 0 then gets the findings of all ranks and reports
// them in one message.
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
  /// The index in the last dimension of the whole tensor.
  int64_t expert = 0;
  double value = 0;
};

/// Returns the greatest element, padding excluded, of the rank's shard of
/// `program.observations[observation]` if it is above the limit; a NaN counts as above. REQUIRES:
/// the observation has a limit.
std::optional<Overflow> findOverflow(const Program &program, uint32_t observation,
                                     std::span<const int64_t> coordinates, const void *data);

/// Returns true if `a` should be reported instead of `b`: overflows of earlier layers come first,
/// because later values are wrong; within a layer, greater ones.
bool goesBefore(const Overflow &a, const Overflow &b);

/// Returns a sentence with the layer, the expert, its tokens, the limit, and a limit that would
/// suffice.
std::string describe(const Program &program, const Overflow &overflow);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_OVERFLOW_H
