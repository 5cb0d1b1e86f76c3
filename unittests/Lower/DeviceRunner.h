//===- DeviceRunner.h - runs what devices would -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_DEVICERUNNER_H
#define WEFT_UNITTESTS_LOWER_DEVICERUNNER_H

#include "KernelRunner.h"

namespace weft::test {

/// What KernelTest::run does with code for devices: runs that of `devices`, a module after the
/// Lower phase, which it changes, twice on emulated blocks. The test fails if the two differ, or if
/// they differ from what a host does by more than rounding.
void runOnBlocks(const KernelCall &call, bool isF64, mlir::ModuleOp devices, const Outcome &host);

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_DEVICERUNNER_H
