//===- ErrorOutput.h - the last words of a run ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_ERROROUTPUT_H
#define WEFT_RT_SUPPORT_ERROROUTPUT_H

#include <string>

namespace weft::rt {

/// Writes "error: ", `message` and the end of a line to standard error. Where that is a pipe, waits
/// at most a second until it has been read: a launcher that hears that a process has failed may
/// give up what it has not read of it yet. Any thread may call it.
void printError(const std::string &message);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_ERROROUTPUT_H
