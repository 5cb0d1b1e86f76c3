//===- Target.h - kinds of devices ----------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_TARGET_H
#define WEFT_PIPELINE_TARGET_H

namespace weft {

/// The kind of device that a program's kernels run on.
enum class TargetKind { Host, Cuda };

} // namespace weft

#endif // WEFT_PIPELINE_TARGET_H
