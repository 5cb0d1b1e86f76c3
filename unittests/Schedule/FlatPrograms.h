//===- FlatPrograms.h - programs as one list of instructions ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_FLATPROGRAMS_H
#define WEFT_UNITTESTS_SCHEDULE_FLATPROGRAMS_H

#include "weft-rt/Program.h"

namespace weft::test {

/// Returns what a program means: each section is one body of one action. A framed buffer is one
/// buffer for each frame, and where actions begin each stream waits for the others. REQUIRES: the
/// program is well-formed.
rt::Program flattened(const rt::Program &program);

/// Returns true if each framed buffer that an action reads was last written for its micro-batch,
/// which a list of instructions cannot say. REQUIRES: the program is well-formed.
bool keepsMicroBatchesApart(const rt::Program &program);

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_FLATPROGRAMS_H
