//===- ErrorOf.h - the message of a failure, for tests ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_ERROROF_H
#define WEFT_RT_TESTS_ERROROF_H

#include "weft-rt/Status.h"

namespace weft::rt {

/// Returns the message of an error; empty for success. A failed test that compares it with ""
/// prints the message.
inline std::string errorOf(const Status &status) { return status ? "" : status.error().message; }
template <typename T> std::string errorOf(const Result<T> &result) {
  return result ? "" : result.error().message;
}

} // namespace weft::rt

#endif // WEFT_RT_TESTS_ERROROF_H
