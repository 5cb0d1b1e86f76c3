//===- ChildProcess.h - a program that does not outlive this one ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_CHILDPROCESS_H
#define WEFT_TOOLS_WEFT_CHILDPROCESS_H

#include <string>
#include <vector>

namespace weft {

/// Runs the executable `words[0]` with the other words, and waits for its end; what it says goes to
/// the file `said`. It is killed after `seconds`, and if this process dies, in whatever way.
/// Returns nothing if its exit status is 0, else how it ended or why it did not begin.
/// REQUIRES: the main thread calls it: the program lives no longer than its caller's thread.
std::string runChild(const std::vector<std::string> &words, const std::string &said,
                     unsigned seconds);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_CHILDPROCESS_H
