//===- ChildProcess.h - a program that does not outlive this one ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_CHILDPROCESS_H
#define WEFT_DRIVER_CHILDPROCESS_H

#include <string>
#include <vector>

namespace weft {

struct ChildRequest {
  /// An executable and its arguments.
  std::vector<std::string> words;
  /// Files for what it says, which may be the same; empty for where this process says it.
  std::string output = {}, errors = {};
  /// It is killed after so long; 0 for never.
  unsigned seconds = 0;
};

struct ChildEnd {
  /// Its exit status, if it has one.
  int status = 0;
  /// How it ended or why it did not begin; empty if the exit status is 0.
  std::string fault = {};
};

/// Runs a program and waits for its end. It is killed if this process dies, in whatever way.
/// REQUIRES: the main thread calls it: the program lives no longer than its caller's thread.
ChildEnd runChild(const ChildRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_CHILDPROCESS_H
