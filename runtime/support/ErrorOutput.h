//===- ErrorOutput.h - printing a run's errors ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_ERROROUTPUT_H
#define WEFT_RT_SUPPORT_ERROROUTPUT_H

#include <string>

namespace weft::rt {

/// Writes "error: ", `message` and a newline to standard error. If standard error is a pipe, waits
/// up to one second until the reader has emptied it: a launcher that learns of a failed process may
/// discard unread output. Any thread may call it.
void printError(const std::string &message);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_ERROROUTPUT_H
