//===- ChildProcess.h - runs a program that dies with this process --------===//
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
  /// Files for its standard output and its standard error, which may be the same file; empty for
  /// those of this process.
  std::string output = {}, errors = {};
  /// The time limit in seconds, after which the program is killed; 0 for none.
  unsigned seconds = 0;
};

struct ChildEnd {
  /// The exit status, if the program exited.
  int status = 0;
  /// How the program failed, or why it did not start; empty if the exit status is 0.
  std::string fault = {};
};

/// Runs a program and waits for its end. The system kills the program if this process dies.
/// REQUIRES: the main thread calls this, because the program lives no longer than the calling
/// thread.
ChildEnd runChild(const ChildRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_CHILDPROCESS_H
