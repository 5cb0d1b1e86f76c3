//===- BodyRun.cpp - one run of a body, event by event ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyRun.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

BodyOrder::BodyOrder(std::span<const rt::Instruction> body,
                     const std::function<bool(const rt::Instruction &)> &waitsForOthers)
    : body(body), after(body.size()) {
  std::optional<uint32_t> collective, agreement;
  for (uint32_t number = 0; number < body.size(); ++number) {
    const rt::Instruction &own = body[number];
    streams[size_t(own.stream)].push_back(number);
    after[number].assign(own.waits.begin(), own.waits.end());
    if (agreement) {
      after[number].push_back(*agreement);
    }
    if (own.opcode == rt::Opcode::Collective) {
      if (collective) {
        after[number].push_back(*collective);
      }
      collective = number;
    }
    if (own.opcode == rt::Opcode::Agree) {
      agreement = number;
    }
    if (waitsForOthers(own)) {
      rendezvous.push_back(number);
    }
  }
}

BodyRun::BodyRun(const BodyOrder &order, double begin)
    : order(order), time(begin), times(order.body.size()), isEnded(order.body.size(), false) {}

bool BodyRun::isComputation(uint32_t number) const {
  const rt::Opcode opcode = at(number).opcode;
  return opcode == rt::Opcode::Kernel || opcode == rt::Opcode::Matmul;
}

bool BodyRun::isReady(uint32_t number) const {
  return std::ranges::all_of(order.after[number], [&](uint32_t other) { return isEnded[other]; });
}

std::optional<uint32_t> BodyRun::headOf(size_t stream) const {
  const auto &[begun, running] = streams[stream];
  const std::vector<uint32_t> &own = order.streams[stream];
  return running || begun == own.size() ? std::nullopt : std::optional(own[begun]);
}

std::optional<uint32_t> BodyRun::advance() {
  while (true) {
    beginAll();
    if (passed < order.rendezvous.size()) {
      const uint32_t next = order.rendezvous[passed];
      if (headOf(size_t(at(next).stream)) == next && isReady(next)) {
        return next;
      }
    }
    Stream *first = nullptr;
    for (Stream &stream : streams) {
      if (stream.running && (!first || times[*stream.running].end < times[*first->running].end)) {
        first = &stream;
      }
    }
    if (!first) {
      return std::nullopt;
    }
    time = times[*first->running].end;
    isEnded[*first->running] = true;
    first->running.reset();
  }
}

void BodyRun::beginAll() {
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    const std::optional<uint32_t> head = headOf(stream);
    if (head && !std::ranges::binary_search(order.rendezvous, *head) && isReady(*head)) {
      const double seconds = at(*head).cost.seconds;
      begin(*head, {time, isComputation(*head) ? endOf(time, seconds) : time + seconds}, time);
    }
  }
}

void BodyRun::pass(TimeSpan span) { begin(order.rendezvous[passed++], span, time); }

void BodyRun::begin(uint32_t number, TimeSpan span, double arrival) {
  const auto stream = size_t(at(number).stream);
  ++streams[stream].begun;
  streams[stream].running = number;
  times[number] = {span, arrival};
  if (at(number).stream == rt::Stream::Communication && !isComputation(number)) {
    slowDown(number);
  }
}

/// Slows down what is computed beside a collective that begins.
void BodyRun::slowDown(uint32_t number) {
  beside = times[number];
  rate = 1 - at(number).cost.share;
  const std::optional<uint32_t> running = streams[size_t(rt::Stream::Compute)].running;
  if (running && isComputation(*running) && times[*running].end > beside.begin) {
    times[*running].end = endOf(beside.begin, times[*running].end - beside.begin);
  }
}

/// Returns when computation that takes so many seconds by itself ends. REQUIRES: it begins before
/// the collective after `beside` does.
double BodyRun::endOf(double begin, double seconds) const {
  const double before = std::max(beside.begin - begin, 0.0);
  const double together = std::max(beside.end - std::max(begin, beside.begin), 0.0);
  if (rate == 1 || together == 0 || seconds <= before) {
    return begin + seconds;
  }
  const double left = seconds - before;
  return left <= together * rate ? std::max(begin, beside.begin) + left / rate
                                 : beside.end + (left - together * rate);
}
