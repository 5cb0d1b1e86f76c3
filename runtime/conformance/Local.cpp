//===- Local.cpp - the suite on the local backend ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "conformance/Conformance.h"

using namespace weft::rt;

bool conformance::isExact() { return true; }

std::unique_ptr<Backend> conformance::makeBackendUnderTest(int64_t ranks,
                                                           std::chrono::milliseconds timeout) {
  LocalOptions options;
  options.timeout = timeout;
  return makeLocalBackend(ranks, options);
}
