//===- MemoryKernels.h - loops that are bound by memory ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_MEMORYKERNELS_H
#define WEFT_RT_CALIBRATE_MEMORYKERNELS_H

#include <cstdint>

namespace weft::rt::calibrate {

// They have a file of their own, so that the compiler cannot specialize them for a caller.

/// to = from.
void copyFloats(const float *from, float *to, int64_t count);
/// to = a + b.
void addFloats(const float *a, const float *b, float *to, int64_t count);
/// Returns the sum of all elements, summed in 64 parts.
float sumFloats(const float *from, int64_t count);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEMORYKERNELS_H
