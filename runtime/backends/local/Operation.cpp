//===- Operation.cpp - one prepared collective of one rank ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/Operation.h"

#include "backends/CallText.h"
#include "backends/Reduce.h"
#include "support/CheckedMath.h"
#include "support/LargeCopy.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::local;

/// The shortest run, in bytes, that may be copied with stores that bypass caches.
static constexpr size_t kLargeRun = 4096;

Operation::Operation(const Collective &collective, const RankGroup &group, const CallSite &site,
                     Rendezvous *rendezvous, int64_t rank, TestDelays::Duration linkDelay)
    : linkDelay(linkDelay), collective(collective), group(group), site(site),
      fingerprint(fingerprintOf(collective, group, site)), rendezvous(rendezvous),
      member(rendezvous ? rendezvous->indexOf(rank) : 0), elementBytes(sizeOf(collective.type)),
      count(int64_t(elementCount(collective.shape))) {
  if (!rendezvous || !changesShape(collective.kind)) {
    return;
  }
  int64_t members = int64_t(rendezvous->size());
  std::vector<int64_t> shape = collective.shape; // of the shard that one member copies from another
  std::vector<int64_t> sourceStrides = rowMajorStrides(shape);
  if (collective.kind != CollectiveKind::AllGather) {
    shape[collective.dim] /= members;
    sourceStart = int64_t(member) * shape[collective.dim] * sourceStrides[collective.dim] *
                  int64_t(elementBytes);
  }
  std::vector<int64_t> resultShape = shape;
  uint32_t joined = collective.kind == CollectiveKind::AllToAll ? collective.dim2 : collective.dim;
  if (collective.kind != CollectiveKind::ReduceScatter) {
    resultShape[joined] *= members;
  }
  std::vector<int64_t> targetStrides = rowMajorStrides(resultShape);
  targetStep = shape[joined] * targetStrides[joined] * int64_t(elementBytes);
  shard.emplace(shape, sourceStrides, targetStrides);
}

bool Operation::matches(const Operation &other) const { return fingerprint == other.fingerprint; }

std::string Operation::description() const { return describeCall(collective, group, site); }

bool Operation::run(const void *operand, void *result, Runner &runner) const {
  if (!rendezvous) {
    if (operand != result && count > 0) {
      std::memcpy(result, operand, size_t(count) * elementBytes);
    }
    return true;
  }
  if (!rendezvous->meet(member, *this, operand, result, runner)) {
    return false;
  }
  if (count > 0) { // An empty operand may have no address at all.
    runner.isMoving.store(true, std::memory_order_relaxed);
    moveElements(result);
    runner.isMoving.store(false, std::memory_order_relaxed);
  }
  return rendezvous->part(member, runner);
}

bool Operation::collect(std::span<const char> own, const Communicator::Receiver &take,
                        Runner &runner) const {
  if (!rendezvous) {
    take(0, own);
    return true;
  }
  if (!rendezvous->meet(member, *this, &own, nullptr, runner)) {
    return false;
  }
  for (size_t other = 0; member == 0 && other < rendezvous->size(); ++other) {
    take(int64_t(other), *static_cast<const std::span<const char> *>(rendezvous->operandOf(other)));
  }
  return rendezvous->part(member, runner);
}

void Operation::moveElements(void *result) const {
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    return allReduce();
  case CollectiveKind::ReduceScatter:
    return reduceScatter(result);
  case CollectiveKind::AllGather:
  case CollectiveKind::AllToAll:
    return copyShards(result);
  case CollectiveKind::Permute:
    copyShard(result, operandOf(collective.sources[member]), size_t(count) * elementBytes);
    return;
  case CollectiveKind::Transfer:
    if (size_t sender = rendezvous->indexOf(group.ranks.front()); sender != member) {
      copyShard(result, operandOf(sender), size_t(count) * elementBytes);
    }
    return;
  }
}

/// Bypasses caches, since the results of all members rarely stay in a cache until they are read.
void Operation::copyShard(void *to, const void *from, size_t bytes) const {
  bool gathers = collective.kind == CollectiveKind::AllGather;
  size_t result = size_t(count) * elementBytes * (gathers ? rendezvous->size() : 1);
  bool isLarge = bytes >= kLargeRun && result * rendezvous->size() > sharedCacheBytes();
  if (isLarge) {
    copyPastCaches(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void Operation::allReduce() const {
  // Equal slices in whole cache lines, so that no two members write to one line.
  int64_t members = int64_t(rendezvous->size());
  int64_t line = 64 / int64_t(elementBytes);
  int64_t slice = ((count + members - 1) / members + line - 1) / line * line;
  int64_t begin = std::min(count, int64_t(member) * slice), end = std::min(count, begin + slice);
  alignas(64) char sum[kReducedBytes];
  for (int64_t at = begin; at < end; at += chunkLength()) {
    int64_t length = std::min(chunkLength(), end - at);
    size_t offset = size_t(at) * elementBytes;
    reduceChunk(sum, offset, length);
    for (size_t other = 0; other < rendezvous->size(); ++other) {
      endReduction(collective.type, static_cast<char *>(rendezvous->resultOf(other)) + offset, sum,
                   length);
    }
  }
}

int64_t Operation::chunkLength() const {
  return kReducedBytes / int64_t(sizeOf(accumulatorOf(collective.type)));
}

void Operation::reduceChunk(void *sum, size_t offset, int64_t length) const {
  beginReduction(collective.type, sum, operandOf(0) + offset, length);
  for (size_t other = 1; other < rendezvous->size(); ++other) {
    reduceInto(collective.type, collective.reduction, sum, operandOf(other) + offset, length);
  }
}

void Operation::reduceScatter(void *result) const {
  alignas(64) char sum[kReducedBytes];
  shard->forEachRun([&](int64_t source, int64_t target) {
    for (int64_t at = 0; at < shard->run(); at += chunkLength()) {
      int64_t length = std::min(chunkLength(), shard->run() - at);
      reduceChunk(sum, size_t(source + at) * elementBytes, length);
      char *to = static_cast<char *>(result) + size_t(target + at) * elementBytes;
      endReduction(collective.type, to, sum, length);
    }
  });
}

void Operation::copyShards(void *result) const {
  for (size_t other = 0; other < rendezvous->size(); ++other) {
    const char *from = operandOf(other);
    char *to = static_cast<char *>(result) + int64_t(other) * targetStep;
    shard->forEachRun([&](int64_t source, int64_t target) {
      copyShard(to + target * int64_t(elementBytes), from + source * int64_t(elementBytes),
                size_t(shard->run()) * elementBytes);
    });
  }
}
