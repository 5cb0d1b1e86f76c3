//===- BodyRun.h - one run of a body, event by event ------------*- C++ -*-===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When the instructions of a body run: see `weft/Schedule/Timeline.h` for the rules.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_BODYRUN_H
#define WEFT_LIB_SCHEDULE_BODYRUN_H

#include "weft/Schedule/Timeline.h"

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace weft::schedule {

/// The orders in which the instructions of a body run.
struct BodyOrder {
  /// `waitsForOthers` says which instructions are rendezvous of several classes.
  BodyOrder(std::span<const rt::Instruction> body,
            const std::function<bool(const rt::Instruction &)> &waitsForOthers);

  std::span<const rt::Instruction> body;
  std::array<std::vector<uint32_t>, rt::kStreams> streams;
  std::vector<uint32_t> rendezvous;
  /// Of each instruction: those without which it is not issued, or does not begin, as an agreement
  /// and, of a collective, the one before. None twice.
  std::vector<std::vector<uint32_t>> after;
};

class BodyRun {
public:
  BodyRun(const BodyOrder &order, double begin);

  /// Goes on to the next rendezvous, and returns its number; nothing at the end of the body.
  std::optional<uint32_t> advance();
  /// The time of the rendezvous that it has come to, then that of the end.
  double now() const { return time; }
  /// Goes on from a rendezvous, which takes place at `span`, not before now.
  void pass(TimeSpan span);

  std::span<const InstructionSpan> spans() const { return times; }

private:
  struct Stream {
    size_t begun = 0;
    std::optional<uint32_t> running;
  };

  const rt::Instruction &at(uint32_t number) const { return order.body[number]; }
  bool isComputation(uint32_t number) const;
  bool isReady(uint32_t number) const;
  std::optional<uint32_t> headOf(size_t stream) const;
  void beginAll();
  void begin(uint32_t number, TimeSpan span, double arrival);
  double endOf(double begin, double seconds) const;
  void slowDown(uint32_t number);

  const BodyOrder &order;
  double time;
  std::array<Stream, rt::kStreams> streams;
  size_t passed = 0;
  std::vector<InstructionSpan> times;
  std::vector<bool> isEnded;
  /// The last collective that computation runs beside, and the share that it leaves to it.
  TimeSpan beside = {};
  double rate = 1;
};

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_BODYRUN_H
