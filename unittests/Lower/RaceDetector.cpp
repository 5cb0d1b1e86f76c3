//===- RaceDetector.cpp - finds races between threads of a block -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RaceDetector.h"

#include <gtest/gtest.h>
#include <utility>

namespace weft::test {

namespace {

/// The number of several threads of a warp: none of them is the only one.
constexpr int32_t kSeveral = -2;

bool isSameTime(const Moment &then, const Moment &now) {
  return then.blockWaits == now.blockWaits &&
         (then.warp != now.warp || then.warpWaits == now.warpWaits);
}

/// Returns true if another thread accessed the element, and neither has waited since.
bool races(const Moment &then, const Moment &now) {
  return then.thread != -1 && then.thread != now.thread && isSameTime(then, now);
}

} // namespace

void RaceDetector::watch(const char *start, size_t bytes, size_t elementBytes) {
  parts.push_back({start, bytes, elementBytes, std::vector<Element>(bytes / elementBytes)});
}

void RaceDetector::forgetAll() {
  parts.clear();
  isSilent = isTouched = false;
}

void RaceDetector::touch(const char *at, size_t bytes, bool isWrite, const Moment &now) {
  isTouched = true;
  for (Part &part : parts) {
    if (at < part.start || at + bytes > part.start + part.bytes) {
      continue;
    }
    auto first = size_t(at - part.start) / part.elementBytes;
    size_t end = (size_t(at - part.start) + bytes - 1) / part.elementBytes + 1;
    for (size_t i = first; i < end; ++i) {
      touch(part.elements[i], isWrite, now, ptrdiff_t(i));
    }
    return;
  }
  if (!std::exchange(isSilent, true)) {
    ADD_FAILURE() << "thread " << now.thread << (isWrite ? " writes" : " reads")
                  << " what is no shared memory of its block";
  }
}

void RaceDetector::touch(Element &element, bool isWrite, const Moment &now, ptrdiff_t number) {
  auto &[writer, readers] = element;
  const Moment *other = races(writer, now) ? &writer : nullptr;
  for (const Moment &reader : readers) {
    other = isWrite && races(reader, now) ? &reader : other;
  }
  if (other && !isSilent) {
    isSilent = true;
    ADD_FAILURE() << "element " << number << " of shared memory is "
                  << (isWrite ? "written" : "read") << " by thread " << now.thread << ", and "
                  << (other == &writer ? "written" : "read") << " by "
                  << (other->thread == kSeveral ? "others of warp " : "thread ")
                  << (other->thread == kSeveral ? other->warp : other->thread)
                  << ", and neither waits for the other";
  }
  if (isWrite) {
    writer = now;
    return;
  }
  Moment &reader =
      readers[0].warp == now.warp || !isSameTime(readers[0], now) ? readers[0] : readers[1];
  bool isOneMore = reader.warp == now.warp && races(reader, now);
  reader = now;
  reader.thread = isOneMore ? kSeveral : now.thread;
}

} // namespace weft::test
