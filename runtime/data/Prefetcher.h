//===- Prefetcher.h - batches, ready before ranks ask for them ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread of its own copies the tokens of the batches to come, in the order of the
// run, while ranks still work on the one before. It is at most `kSlots` batches
// ahead of the slowest rank. Shards that several ranks have in common are there once.
//
// Each rank takes its shard of every batch, in order, on its own thread. What went
// wrong with a batch is told to the ranks that come to take it, not to those that
// are still busy with batches before.
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

  /// For the ranks of this process. `program` must outlive this object. A rank waits for its tokens
  /// no longer than `timeout`.
  Prefetcher(const Program &program, RankRange ranks, Seconds timeout);
  /// Waits until the thread has ended.
  ~Prefetcher();

  /// What the slots will take.
  uint64_t bytes() const;

  /// Allocates the slots, and begins with the first batch of `order`, whose data must outlive the
  /// thread. To be called at most once.
  void start(BatchOrder order);

  /// Puts the next batch into the inputs of a rank; to be called by the rank's thread. Fails, with
  /// an error, if the batch cannot be read or does not come in time; and fails without one after
  /// `stop`. REQUIRES: the order has another batch for this rank.
  bool take(Executor &executor, std::string &error);

  /// Any thread may end it all, as often as it likes: who waits in `take` goes on at once.
  void stop();

  /// Whether the thread comes to its end within `patience` after `stop`. It does not if the file's
  /// device hangs; then this object cannot be destroyed.
  bool endsWithin(Seconds patience);

private:
  /// A part of an input that some ranks have.
  struct Shard {
    InputShard input;
    std::array<std::vector<char>, kSlots> bytes;
  };
  /// A rank's input, and the number of the shard that goes there.
  struct Input {
    size_t shard = 0;
    uint32_t buffer = 0;
  };

  void addInput(int64_t rank, const NamedTensor &input);
  size_t numberOf(const Executor &executor) const { return size_t(executor.rank() - ranks.first); }
  void run(BatchOrder order);
  bool waitForSlot(int64_t batch);
  bool fill(const BatchChoice &batch, size_t slot, std::string &error);

  const Program &program;
  const RankRange ranks;
  const Seconds timeout;
  /// Written before the thread starts, except for the bytes: a slot of them is the thread's until
  /// its batch is ready, and then the ranks' until all of them have taken it.
  std::vector<Shard> shards;
  /// By the number of the rank in this process.
  std::vector<std::vector<Input>> inputsOfRank;

  std::mutex mutex;
  /// Under `mutex`: batches that are ready, batches that each rank has taken.
  int64_t ready = 0;
  std::vector<int64_t> taken;
  bool stopped = false, ended = false;
  std::string problem;
  std::condition_variable becameReady, becameFree, hasEnded;
  std::thread thread;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_PREFETCHER_H
