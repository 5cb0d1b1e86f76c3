//===- Streams.h - communication beside computation ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program from `flatten` runs one instruction after another. Where a device has streams, or a
// host a thread that communicates, collectives can run beside computation:
//
//   Which.  A collective moves to the communication stream if computation that neither
//           prepares its operand nor uses its result can run between the moment its operand
//           is ready and the first use of its result. Otherwise, as with the sums of tensor
//           parallelism, an event would cost time and gain nothing: it stays on the compute
//           stream. So do collectives across rank classes, as transfers: each class is ordered
//           by itself, and would wait for another in a circle if it changed their order.
//   When.   A collective other than an all-gather, as a sum of gradients, is issued as soon
//           as its operand is ready, so that the operand's memory is freed; ops that only
//           unpack its result wait until that is needed. An all-gather, as of parameters
//           sharded by ZeRO, is issued just early enough to end before its first use, by
//           predicted times and `kMargin`. Kernels that prepare its shard move with it.
//           Values gathered ahead of their use take at most as much memory as gathered
//           values take at one time in the order of `flatten`, about a layer's.
//   Waits.  Waits follow from the places in the arena that instructions read and write, not
//           from buffers, so no instruction overwrites memory that another stream still
//           uses. Waits that others imply are left out.
//
// A collective holds its memory from its position in the list until its predicted end. If it
// takes longer, the next user of that memory waits.
//
// All ranks have the same order, since they run the same table. The order depends on the
// program alone, so the same program always gives the same order.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_STREAMS_H
#define WEFT_SCHEDULE_STREAMS_H

#include "weft-rt/Program.h"

#include <span>
#include <vector>

namespace weft::schedule {

/// The factor by which a collective may exceed its predicted time before computation waits for it.
inline constexpr double kMargin = 1.25;

/// The least gain, in seconds, for which a collective changes its stream on a device: about the
/// time for recording two events and waiting for them.
inline constexpr double kLeastGain = 1e-5;

/// The same on a host: about the time until another thread runs, twice.
inline constexpr double kLeastGainOnHosts = 1e-4;

/// Assigns instructions their streams, order and waits, and buffers their places. Leaves a body
/// unchanged if streams gain nothing there. REQUIRES: all instructions are on one stream and have
/// predicted times.
void assignStreams(rt::Program &program, double leastGain = kLeastGain);

/// The first step of `assignStreams`: assigns the order of a body and its instructions'
/// streams, without waits. REQUIRES: no two buffers that are needed at one time share bytes.
void orderForStreams(const rt::Program &program, std::vector<rt::Instruction> &body,
                     double leastGain = kLeastGain);

/// Returns, for each instruction, the number of the last one of computation that begins before the
/// instruction has ended, as predicted and with `kMargin`; its own number if it is on the stream of
/// computation.
std::vector<int64_t> predictLastBeside(std::span<const rt::Instruction> body);

/// The last step of `assignStreams`: sets the waits of a body that the order, the streams and the
/// places of buffers require, with any frames with which actions run the body, and no others.
void setWaits(rt::Program &program, uint32_t body);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_STREAMS_H
