//===- LoneRank.h - a communicator without other ranks -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_LONERANK_H
#define WEFT_RT_KERNELS_LONERANK_H

#include "execution/Executor.h"

namespace weft::rt::kernels {

/// A communicator and observer for an executor that runs without other ranks. Only one thread may
/// use it.
class LoneRank : public Communicator, public Observer {
public:
  /// `number` is its rank on the mesh, which gives its coordinates.
  explicit LoneRank(int64_t number) : number(number) {}

  int64_t rank() const override { return number; }
  Handle prepare(const Collective &, const RankGroup &, const CallSite &) override { return 0; }
  bool issue(Handle, const void *, void *) override { return !stopped(); }
  bool wait(Handle) override { return !stopped(); }
  bool collect(std::span<const char> own, const Receiver &take) override {
    take(number, own);
    return !stopped();
  }
  bool fail(std::string message, ExitCode) override {
    text = text.empty() ? std::move(message) : text;
    return false;
  }
  void moved() override {}
  bool stopped() const override { return !text.empty(); }
  double waitedSeconds() const override { return 0; }
  void observe(int64_t, uint32_t, const void *) override {}

  /// Returns the first failure; empty if there is none.
  const std::string &failure() const { return text; }

private:
  int64_t number;
  std::string text;
};

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_LONERANK_H
