//===- Progress.cpp - prints the duration of each phase -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Progress.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace weft;

static double secondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Progress::Times Progress::timesNow() {
  llvm::sys::TimePoint<> now;
  std::chrono::nanoseconds user{}, system{};
  llvm::sys::Process::GetTimeUsage(now, user, system);
  return {now, user + system};
}

Progress::Progress(llvm::StringRef name, bool enabled)
    : name(name), enabled(enabled), start(timesNow()) {}

void Progress::finish() const {
  if (!enabled) {
    return;
  }
  Times end = timesNow();
  llvm::errs() << llvm::left_justify(name, 14)
               << llvm::format("%7.2f s %9.3f s of processor time\n",
                               secondsOf(end.now - start.now),
                               secondsOf(end.processor - start.processor));
}

bool weft::wantsProgress(bool verbose) { return verbose || llvm::errs().is_displayed(); }
