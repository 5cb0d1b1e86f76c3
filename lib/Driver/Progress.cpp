//===- Progress.cpp - prints the duration of each phase -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Progress.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace weft;

void Progress::finish() const {
  if (!enabled) {
    return;
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  llvm::errs() << llvm::left_justify(nameOf(phase), 14)
               << llvm::format("%7.2f s\n", seconds.count());
}

bool weft::wantsProgress(bool verbose) { return verbose || llvm::errs().is_displayed(); }
