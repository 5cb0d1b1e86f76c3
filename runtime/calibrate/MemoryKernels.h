//===- MemoryKernels.h - loops that do little but touch memory -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_MEMORYKERNELS_H
#define WEFT_RT_CALIBRATE_MEMORYKERNELS_H

#include <cstdint>

namespace weft::rt::calibrate {

// In a file of their own, so that no caller's knowledge makes them shorter.

/// to = from.
void copyFloats(const float *from, float *to, int64_t count);
/// to = a + b.
void addFloats(const float *a, const float *b, float *to, int64_t count);
/// The sum, in 64 parts.
float sumFloats(const float *from, int64_t count);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEMORYKERNELS_H
