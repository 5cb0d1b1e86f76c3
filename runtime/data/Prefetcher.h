//===- Prefetcher.h - reads batches ahead of the ranks --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The prefetcher's thread copies the data of coming batches, in the order of the
// run, while ranks still work on the current one. It is at most `kSlots` batches
// ahead of the slowest rank. Shards that several ranks share are stored once.
//
// Each rank takes its shard of every batch, in order, on its own thread. A failure
// to read a batch is reported to a rank when it takes that batch, not while it
// works on earlier ones.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_PREFETCHER_H
#define WEFT_RT_DATA_PREFETCHER_H

#include "data/RunData.h"
#include "execution/Executor.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace weft::rt {

class Prefetcher {
public:
  static constexpr int64_t kSlots = 2;

  using Seconds = std::chrono::duration<double>;

  /// Serves the ranks of this process. `programs` must outlive this object. A rank waits at most
  /// `timeout` for its data.
  Prefetcher(std::span<const Program> programs, RankRange ranks, Seconds timeout);
  /// Waits for the end of the thread.
  ~Prefetcher();

  /// Returns the bytes of all slots.
  uint64_t bytes() const;

  /// Allocates the slots and starts reading the first batch of `order`, whose data must outlive the
  /// thread. Call it at most once.
  void start(BatchOrder order);

  /// Copies the next batch into the inputs of a rank; called by the rank's thread. Returns false,
  /// without a batch, after `stop`. Fails if the batch cannot be read or does not come in time.
  /// REQUIRES: the order has another batch for this rank.
  Result<bool> take(Executor &executor);

  /// Ends reading and wakes all waiting calls of `take`. Any thread may call it, any number of
  /// times.
  void stop();

  /// Returns true if the thread ends within `patience` after `stop`. It does not if the file's
  /// device hangs; then this object must not be destroyed.
  bool endsWithin(Seconds patience);

private:
  /// A part of an input that some ranks share.
  struct Shard {
    InputShard input;
    std::array<std::vector<char>, kSlots> bytes;
  };
  /// A rank's input: its shard's number and its buffer.
  struct Input {
    size_t shard = 0;
    uint32_t buffer = 0;
  };

  void addInput(int64_t rank, const NamedTensor &input);
  size_t numberOf(const Executor &executor) const { return size_t(executor.rank() - ranks.first); }
  void run(BatchOrder order);
  bool waitForSlot(int64_t batch);
  Status fill(const BatchChoice &batch, size_t slot);

  const std::span<const Program> programs;
  const RankRange ranks;
  const Seconds timeout;
  /// Written before the thread starts, except for the bytes: a slot belongs to the thread until its
  /// batch is ready, and then to the ranks until all have taken it.
  std::vector<Shard> shards;
  /// Indexed by the number of the rank in this process.
  std::vector<std::vector<Input>> inputsOfRank;

  std::mutex mutex;
  /// Guarded by `mutex`: the number of ready batches, and the number that each rank has taken.
  int64_t ready = 0;
  std::vector<int64_t> taken;
  bool stopped = false, ended = false;
  Status problem;
  std::condition_variable becameReady, becameFree, hasEnded;
  std::thread thread;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_PREFETCHER_H
