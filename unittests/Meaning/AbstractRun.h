//===- AbstractRun.h - all orders in which small programs may run ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A machine whose ranks run the programs of all rank classes: `init`, `step` twice, and
// `evaluate`. It is explored, not reasoned about, and shares no code with the proofs:
//
//   Ranks     have an arena, of which each byte knows the term (KernelTerms.h) of which it
//             is a part. What nobody has written is a term of its own.
//   Streams   run their instructions in order, each as soon as what it waits for is done
//             and the action before has ended. Or a rank has one queue for both. Where ranks
//             agree to go on, hosts issue no more until all have come.
//   Sends     and all that ranks do together block until all have come. Partners find each
//             other by the order in which a rank issues what it does with the same ranks,
//             as in the runtime: numbers of transfers mean nothing.
//
// All orders of events are explored. An instruction that no other rank sees, and that
// touches no bytes that another stream might touch before it has ended, runs at once:
// later or earlier, it has the same effect. States that were seen are left.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_MEANING_ABSTRACTRUN_H
#define WEFT_UNITTESTS_MEANING_ABSTRACTRUN_H

#include "KernelTerms.h"

#include "weft-rt/Program.h"

#include <set>
#include <string>

namespace weft::test {

enum class Fate {
  /// All orders end, and alike.
  Ends,
  /// An order exists in which ranks wait for each other, or for one that has ended.
  Deadlock,
  /// Ranks come together that do not do the same.
  Mismatch,
  /// Two streams, or two operands, touch the same bytes at one time, and one of them writes.
  Race,
  /// It ends in several ways.
  SeveralEnds,
  /// An instruction touches bytes beyond the arena, or has no place in a frame.
  OutOfBounds,
  /// More states than `kMostStates`.
  Unknown,
};
const char *nameOf(Fate fate);

struct Exploration {
  Fate fate = Fate::Ends;
  /// Of all that lasts and all that is seen: parameters and optimizer states of all ranks, what is
  /// observed on any rank, what the first class reports, and by what ranks agreed to go on.
  std::set<Term> ends;
  size_t states = 0;
};

inline constexpr size_t kMostStates = 1 << 20;

enum class Queues { One, OnePerStream };

/// Explores all orders. REQUIRES: operands name buffers, and kernels are in `kernels`.
Exploration explore(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues);

/// Takes `walks` random orders, in which nothing runs at once: none may show what `explore` does
/// not.
Exploration walk(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues,
                 size_t walks);

} // namespace weft::test

#endif // WEFT_UNITTESTS_MEANING_ABSTRACTRUN_H
