//===- IssueQueue.h - the collectives that a rank has issued ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Issued collectives run one after another, in the order of their issue: on a
// communication thread while the rank computes, or on the rank's own thread while
// that waits and the communication thread has not begun the next one. So a
// collective that is waited for at once needs no other thread.
//
// The communication thread starts at the first issue and sleeps while there is
// nothing to run. Issuing and waiting allocate nothing. Belongs to the rank's
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_ISSUEQUEUE_H
#define WEFT_RT_BACKENDS_LOCAL_ISSUEQUEUE_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::rt::local {

class Operation;

class IssueQueue {
public:
  struct Issued {
    const Operation *operation = nullptr;
    const void *operand = nullptr;
    void *result = nullptr;
  };
  /// Runs a collective on the present thread, which is the communication thread if `isBeside`.
  using Run = std::function<void(const Issued &next, bool isBeside)>;

  explicit IssueQueue(Run run) : run(std::move(run)) {}
  /// Waits for the collective that runs, and drops those that have not begun.
  ~IssueQueue();

  /// Makes room for `count` collectives at a time.
  void reserve(size_t count);
  void push(const Issued &next);
  bool isEmpty() const;
  /// Wait until `operation` is not among the issued collectives, or until there are none. Return
  /// the seconds for which the rank's thread waited for the communication thread.
  double wait(const Operation &operation);
  double waitForAll();

private:
  void serve();
  void runFirst(std::unique_lock<std::mutex> &lock, bool isBeside);
  template <typename IsDone> double waitUntil(const IsDone &isDone);

  const Run run;
  std::thread thread;
  mutable std::mutex mutex;
  /// `ready`: the communication thread can run the first collective, or has to end. `ended`: the
  /// collective that it ran has ended.
  std::condition_variable ready, ended;
  /// In order; the first one is running if `isRunning`.
  std::vector<Issued> issued;
  bool isRunning = false, isEnding = false;
};

} // namespace weft::rt::local

#endif // WEFT_RT_BACKENDS_LOCAL_ISSUEQUEUE_H
