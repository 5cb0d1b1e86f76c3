//===- InputStage.cpp - copies inputs to a device during the step before --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/InputStage.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

static uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

size_t InputStage::numberOf(uint32_t buffer) const {
  auto found = std::find_if(program.inputs.begin(), program.inputs.end(),
                            [&](const NamedTensor &input) { return input.buffer == buffer; });
  return size_t(found - program.inputs.begin());
}

uint64_t InputStage::hostBytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    bytes += 2 * aligned(bytesOf(i));
  }
  return bytes;
}

DriverTable::Result InputStage::prepare(Handle device) {
  void *place = nullptr;
  uint64_t onHost = hostBytes(), onDevice = program.stagedBytes(), offset = 0, staged = 0;
  DriverTable::Result failed = nullptr;
  if (onHost > 0) {
    failed = library.allocatePinned(device, onHost, &place);
    pinned = static_cast<char *>(place);
  }
  if (!failed && onDevice > 0) {
    failed = library.allocate(device, onDevice, &staging);
    failed = failed ? failed : library.makeStream(device, &stream);
    failed = failed ? failed : library.makeEvent(device, &last);
  }
  for (size_t i = 0; i < program.inputs.size() && !failed; ++i) {
    Input &input = inputs.emplace_back();
    for (Slot &slot : input.slots) {
      slot.offset = offset;
      offset += aligned(bytesOf(i));
    }
    if (stagedOf(i) > 0) {
      input.staged = staged;
      staged += stagedOf(i);
      failed = library.makeEvent(device, &input.came);
      failed = failed ? failed : library.makeEvent(device, &input.gone);
    }
  }
  isPrepared = !failed && (pinned || onHost == 0) && (staging || onDevice == 0);
  return failed;
}

std::span<char> InputStage::take(uint32_t buffer) {
  size_t number = numberOf(buffer);
  Input &input = inputs[number];
  Slot &slot = input.slots[input.turn];
  if (slot.isUsed && slot.sent == passed) {
    return {};
  }
  return {pinned + slot.offset, bytesOf(number)};
}

DriverTable::Result InputStage::send(Handle device, Handle compute, uint32_t buffer, uint64_t begin,
                                     uint64_t count, Address to) {
  size_t number = numberOf(buffer);
  Input &input = inputs[number];
  Slot &slot = input.slots[input.turn];
  slot = {slot.offset, passed, true};
  input.turn = 1 - input.turn;
  const char *from = pinned + slot.offset + begin;
  if (stagedOf(number) == 0) {
    return library.copyToDevice(device, compute, to, from, count);
  }
  Address between = staging + input.staged + begin;
  DriverTable::Result failed = input.hasGone ? library.wait(device, stream, input.gone) : nullptr;
  failed = failed ? failed : library.copyToDevice(device, stream, between, from, count);
  failed = failed ? failed : library.record(device, input.came, stream);
  failed = failed ? failed : library.wait(device, compute, input.came);
  failed = failed ? failed : library.copy(device, compute, to, between, count);
  failed = failed ? failed : library.record(device, input.gone, compute);
  input.hasGone = !failed;
  return failed;
}

void InputStage::free(Handle device) {
  if (stream && last) {
    library.record(device, last, stream);
    library.await(device, last);
  }
  for (const Input &input : inputs) {
    for (Handle event : {input.came, input.gone}) {
      if (event) {
        library.freeEvent(device, event);
      }
    }
  }
  if (last) {
    library.freeEvent(device, last);
  }
  if (stream) {
    library.freeStream(device, stream);
  }
  if (staging) {
    library.free(device, staging);
  }
  if (pinned) {
    library.freePinned(device, pinned);
  }
}
