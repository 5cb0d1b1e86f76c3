//===- MeasuredDevice.cpp - measures work with a device's own clock --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/MeasuredDevice.h"

#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::calibrate;

static constexpr uint64_t kPatternBytes = 1 << 20;

bool MeasuredDevice::check(cuda::DriverTable::Result result) {
  return !result || link.fail(concat("device ", link.rank(), ": ", result));
}

bool MeasuredDevice::open() {
  if (!check(library.open(link.rank(), &device, &facts)) ||
      !check(library.makeStream(device, &stream)) || !check(library.makeTimer(device, &begin)) ||
      !check(library.makeTimer(device, &end)) ||
      !check(library.allocatePinned(device, 2 * kPatternBytes, &pattern))) {
    return false;
  }
  if (!pattern) {
    return link.fail(concat("device ", link.rank(), " gets no pinned memory of this host"));
  }
  uint64_t state = 1;
  auto draw = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u; // By D. Knuth.
    return state >> 33;
  };
  // Numbers from 1 to 2, with either sign, as bf16; wider formats get a similar exponent.
  std::generate_n(static_cast<uint16_t *>(pattern), kPatternBytes / sizeof(uint16_t),
                  [&] { return uint16_t(0x3F80 | (draw() & 0x807F)); });
  // Numbers from 1 to 2, with either sign, as E4M3.
  auto *bytes = static_cast<uint8_t *>(pattern) + kPatternBytes;
  std::generate_n(bytes, kPatternBytes, [&] { return uint8_t(0x38 | (draw() & 0x87)); });
  bytePattern = bytes;
  return true;
}

bool MeasuredDevice::close() {
  while (!allocations.empty()) {
    if (!free(allocations.back().at)) {
      return false;
    }
  }
  return finish() && check(library.freePinned(device, pattern)) &&
         check(library.freeEvent(device, begin)) && check(library.freeEvent(device, end)) &&
         check(library.freeStream(device, stream)) && check(library.close(device));
}

bool MeasuredDevice::await(Handle event) {
  return collectives ? collectives->await(event) : check(library.await(device, event));
}

bool MeasuredDevice::finish() { return check(library.record(device, end, stream)) && await(end); }

bool MeasuredDevice::fill(Address at, uint64_t bytes, const void *with) {
  for (uint64_t begin = 0; begin < bytes; begin += kPatternBytes) {
    uint64_t count = std::min(kPatternBytes, bytes - begin);
    if (!check(library.copyToDevice(device, stream, at + begin, with, count))) {
      return false;
    }
  }
  return finish();
}

MeasuredDevice::Address MeasuredDevice::allocate(uint64_t bytes, bool isShared) {
  Address made = 0;
  auto allocateOne = isShared ? library.allocateShared : library.allocate;
  if (!check(allocateOne(device, bytes, &made))) {
    return 0;
  }
  if (!made) {
    link.fail(concat("device ", link.rank(), ", a ", facts.name, ", has no ", bytesText(bytes),
                     " left of ", bytesText(facts.memoryBytes), " to measure with"));
    return 0;
  }
  allocations.push_back({made, isShared});
  return fill(made, bytes, pattern) ? made : 0;
}

bool MeasuredDevice::free(Address address) {
  auto found = std::find_if(allocations.begin(), allocations.end(),
                            [&](const Allocation &one) { return one.at == address; });
  bool isShared = found->isShared;
  allocations.erase(found);
  return finish() &&
         check(isShared ? library.freeShared(device, address) : library.free(device, address));
}

uint64_t MeasuredDevice::countFree() {
  uint64_t bytes = 0;
  (void)check(library.freeMemory(device, &bytes));
  return bytes;
}
