//===- Prefetcher.cpp - reads batches ahead of the ranks ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/Prefetcher.h"

#include "program/Shards.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;

Prefetcher::Prefetcher(std::span<const Program> programs, RankRange ranks, Seconds timeout)
    : programs(programs), ranks(ranks), timeout(timeout), inputsOfRank(size_t(ranks.count)),
      taken(inputsOfRank.size()) {
  for (int64_t rank = ranks.first; ranks.has(rank); ++rank) {
    for (const NamedTensor &input : programOf(programs, rank).inputs) {
      if (dataField(input.name)) {
        addInput(rank, input);
      }
    }
  }
}

Prefetcher::~Prefetcher() {
  stop();
  if (thread.joinable()) {
    thread.join();
  }
}

/// Joins the two dimensions of the micro-batch and of the sample in it, which has `size` samples.
static void joinMicroBatches(InputShard &shard, int64_t size) {
  shard.run = shard.shape[1];
  shard.stride = size;
  shard.offset[1] += shard.offset[0] * size;
  for (std::vector<int64_t> *sizes : {&shard.shape, &shard.filled}) {
    (*sizes)[1] *= (*sizes)[0];
    sizes->erase(sizes->begin());
  }
  shard.offset.erase(shard.offset.begin());
}

void Prefetcher::addInput(int64_t rank, const NamedTensor &input) {
  const Program &program = programOf(programs, rank);
  std::vector<int64_t> coordinates = program.coordinatesOf(rank);
  Region held = localRegion(input.layout, program.mesh, coordinates);
  Shard shard = {{*dataField(input.name), input.layout.type, held.shape, held.offset,
                  dataRegion(input.layout, program.mesh, coordinates).shape},
                 {}};
  if (program.microBatches > 1) {
    joinMicroBatches(shard.input, program.globalBatch / program.microBatches);
  }
  auto isSame = [&](const Shard &other) { return other.input == shard.input; };
  auto found = std::find_if(shards.begin(), shards.end(), isSame);
  inputsOfRank[size_t(rank - ranks.first)].push_back(
      {size_t(found - shards.begin()), input.buffer});
  if (found == shards.end()) {
    shards.push_back(std::move(shard));
  }
}

uint64_t Prefetcher::bytes() const {
  uint64_t sum = 0;
  for (const Shard &shard : shards) {
    sum = saturatingAdd(sum, saturatingMul(shard.input.bytes(), kSlots));
  }
  return sum;
}

void Prefetcher::start(BatchOrder order) {
  for (Shard &shard : shards) {
    shard.bytes.fill(std::vector<char>(shard.input.bytes()));
  }
  thread = std::thread([this, order] { run(order); });
}

void Prefetcher::run(BatchOrder order) {
  Status status;
  std::optional<BatchChoice> batch = order.next();
  for (int64_t number = 0; batch && waitForSlot(number); ++number) {
    status = fill(*batch, size_t(number % kSlots));
    if (!status) {
      break;
    }
    {
      std::lock_guard lock(mutex);
      ready = number + 1;
    }
    becameReady.notify_all();
    batch = order.next();
  }
  {
    std::lock_guard lock(mutex);
    problem = std::move(status);
    ended = true;
  }
  becameReady.notify_all();
  hasEnded.notify_all();
}

bool Prefetcher::waitForSlot(int64_t batch) {
  std::unique_lock lock(mutex);
  becameFree.wait(lock, [&] {
    return stopped || *std::min_element(taken.begin(), taken.end()) + kSlots > batch;
  });
  return !stopped;
}

Status Prefetcher::fill(const BatchChoice &batch, size_t slot) {
  for (Shard &shard : shards) {
    if (Status status = batch.sampler->fill(batch.number, programs.front().globalBatch, shard.input,
                                            shard.bytes[slot].data());
        !status) {
      return status;
    }
  }
  return {};
}

Result<bool> Prefetcher::take(Executor &executor) {
  int64_t &number = taken[numberOf(executor)]; // Written by this thread only.
  std::unique_lock lock(mutex);
  bool came =
      becameReady.wait_for(lock, timeout, [&] { return stopped || ended || ready > number; });
  if (stopped) {
    return false;
  }
  if (!came) {
    return makeError("rank ", executor.rank(), " waited ", timeout.count(), " s for its tokens");
  }
  if (ready <= number) {
    return problem.error();
  }
  size_t slot = size_t(number % kSlots);
  lock.unlock();
  for (const Input &input : inputsOfRank[numberOf(executor)]) {
    executor.write(input.buffer, 0, shards[input.shard].bytes[slot]);
  }
  lock.lock();
  ++number;
  lock.unlock();
  becameFree.notify_one();
  return true;
}

void Prefetcher::stop() {
  {
    std::lock_guard lock(mutex);
    stopped = true;
  }
  becameReady.notify_all();
  becameFree.notify_all();
}

bool Prefetcher::endsWithin(Seconds patience) {
  stop();
  std::unique_lock lock(mutex);
  return !thread.joinable() || hasEnded.wait_for(lock, patience, [&] { return ended; });
}
