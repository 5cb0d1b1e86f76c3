//===- FarExecutor.h - an executor with memory out of reach ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes on the host, but lends copies, like a device with memory of its own.
// Users that rely on more than BufferView.h promises get wrong numbers or a failed
// test:
//
//   - returned memory is overwritten, so that a stale address shows other values than
//     the buffer, and is checked for writes at the end
//   - a draft is filled with garbage at first
//   - a view is checked for writes when it ends
//   - only one view or draft may exist at a time
//   - only the rank's thread may use them
//
// A test may make it fail like a device.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_EXECUTION_FAREXECUTOR_H
#define WEFT_RT_TESTS_EXECUTION_FAREXECUTOR_H

#include "execution/HostExecutor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <gtest/gtest.h>
#include <thread>

namespace weft::rt {

class FarExecutor : public HostExecutor, BufferLender {
public:
  using HostExecutor::HostExecutor;

  ~FarExecutor() {
    EXPECT_EQ(lent, nullptr) << "a view or draft has not ended";
    for (const Loan &loan : loans) {
      EXPECT_TRUE(std::all_of(loan.memory.begin(), loan.memory.end(), isSpoilt))
          << "buffer " << loan.buffer << " has been written to after a view or draft of it";
    }
  }

  using Executor::draft;
  using Executor::view;
  BufferView view(uint32_t buffer, uint32_t frame, uint64_t begin, uint64_t count) const override {
    ++views;
    auto &self = const_cast<FarExecutor &>(*this); // Loans do not change what it computes.
    Loan &loan = self.lend(buffer, frame, begin, count);
    if (!loan.hasFailed) {
      std::copy_n(content(buffer, frame, begin), count, loan.memory.begin());
    }
    return BufferView(loan.memory, self);
  }

  BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) override {
    ++drafts;
    return BufferDraft(lend(buffer, 0, begin, count).memory, *this);
  }

  /// The number of views and drafts of all buffers so far, on all ranks.
  static inline std::atomic<int64_t> views = 0, drafts = 0;
  /// The number, from 1, of the coming view or draft that fails; 0 for none.
  static inline std::atomic<int64_t> failing = 0;

private:
  struct Loan {
    uint32_t buffer, frame;
    uint64_t begin;
    std::vector<char> memory;
    bool hasFailed;
  };
  /// A tiny number as a double, an invalid token as an integer.
  static constexpr char kSpoilt = char(0xA7);
  static bool isSpoilt(char byte) { return byte == kSpoilt; }

  const char *content(uint32_t buffer, uint32_t frame, uint64_t begin) const {
    BufferView place = HostExecutor::view(buffer, frame, begin, 0);
    return place.bytes().data();
  }
  Loan &lend(uint32_t buffer, uint32_t frame, uint64_t begin, uint64_t count) {
    EXPECT_EQ(lent, nullptr) << "a view or draft of buffer " << buffer << " inside another";
    if (loans.empty()) {
      thread = std::this_thread::get_id();
    }
    EXPECT_EQ(std::this_thread::get_id(), thread);
    bool fails = failing > 0 && --failing == 0;
    if (fails) {
      communicator().fail("the device is lost");
    }
    lent = &loans.emplace_back(buffer, frame, begin, std::vector<char>(count, kSpoilt), fails);
    return *lent;
  }
  void endView(const char *memory) override {
    EXPECT_EQ(memory, lent->memory.data());
    EXPECT_TRUE(lent->hasFailed || std::equal(lent->memory.begin(), lent->memory.end(),
                                              content(lent->buffer, lent->frame, lent->begin)))
        << "a view of buffer " << lent->buffer << " has been written to";
    takeBack();
  }

  void endDraft(char *memory) override {
    EXPECT_EQ(memory, lent->memory.data());
    if (!lent->hasFailed) {
      BufferDraft place = HostExecutor::draft(lent->buffer, lent->begin, lent->memory.size());
      std::copy(lent->memory.begin(), lent->memory.end(), place.bytes().begin());
    }
    takeBack();
  }

  void takeBack() {
    std::fill(lent->memory.begin(), lent->memory.end(), kSpoilt);
    lent = nullptr;
  }

  /// All loans so far; their memory stays in place.
  std::deque<Loan> loans;
  Loan *lent = nullptr;
  std::thread::id thread;
};

} // namespace weft::rt

#endif // WEFT_RT_TESTS_EXECUTION_FAREXECUTOR_H
