//===- DeviceRunner.h - runs code for devices on emulated blocks --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_DEVICERUNNER_H
#define WEFT_UNITTESTS_LOWER_DEVICERUNNER_H

#include "KernelRunner.h"

namespace weft::test {

/// Runs the code of `devices`, a module after the Lower phase, which it changes, twice on emulated
/// blocks. Fails the test if the two runs differ, or differ from the host's results by more than
/// rounding.
void runOnBlocks(const KernelCall &call, bool isF64, mlir::ModuleOp devices, const Outcome &host);

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_DEVICERUNNER_H
