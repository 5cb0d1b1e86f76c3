//===- Streams.h - communication beside computation ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that comes from `flatten` does one thing after another. Where a device has
// streams, collectives can run beside computation:
//
//   Which.  A collective goes to the communication stream if, from where what it reads is
//           there to the first use of what it gives, there is computation that is not its
//           own. Else, as with the sums of tensor parallelism, an event would cost and win
//           nothing: it stays on the compute stream.
//   When.   What does not grow, as the sum of gradients, is issued as soon as its operand is
//           there, so that this goes; and what only unpacks it waits until somebody needs it.
//           An all-gather, as of parameters cut by ZeRO, is issued so early that it has just
//           ended when it is needed: by predicted times and `kMargin`. Kernels that prepare
//           the shard go with it. What lies gathered ahead of its use takes at most as much
//           memory as gathered values take at one time in the order of `flatten`, about a
//           layer's.
//   Waits.  What an instruction reads or writes, by places in the arena and not by buffers,
//           so that memory that another stream still uses is not taken early. A wait that
//           others imply is left out.
//
// Memory is given as if a collective ran from where it stands in the list until it is
// predicted to have ended. If it takes longer, its successor in that memory waits.
//
// The order is one for all ranks, as their table is one. It depends on nothing but the
// program, so the same program gives the same order.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_STREAMS_H
#define WEFT_SCHEDULE_STREAMS_H

#include "weft-rt/Program.h"

namespace weft::schedule {

/// How much longer than predicted a collective may take before computation waits for it.
inline constexpr double kMargin = 1.25;

/// A collective that saves less than these seconds does not change its stream: about what
/// recording two events and waiting for them take.
inline constexpr double kLeastGain = 1e-5;

/// Gives instructions their streams, order and waits, and buffers their places. A section where
/// nothing is won stays as it is. REQUIRES: all are on one stream, and have their predicted times.
void assignStreams(rt::Program &program);

/// The first part: the order of a section, and who is on which stream. Waits are empty.
/// REQUIRES: no two buffers that are needed at one time share bytes.
void orderForStreams(const rt::Program &program, std::vector<rt::Instruction> &section);

/// The last part: the waits that order, streams and places of buffers require, and no others.
void setWaits(const rt::Program &program, std::vector<rt::Instruction> &section);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_STREAMS_H
