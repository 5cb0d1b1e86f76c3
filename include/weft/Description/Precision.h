//===- Precision.h - the number formats a program computes in -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PRECISION_H
#define WEFT_DESCRIPTION_PRECISION_H

namespace weft::desc {

/// A number format; proto/weft/machine.proto lists the same in the same order. TF32 is float32 of
/// which matmuls use only 10 bits of fraction; F8 is any FP8 format.
enum class Precision { F64, F32, BF16, TF32, F16, F8 };

/// "F64", "F32", "BF16", ..., as in a recipe.
const char *nameOf(Precision precision);

/// Bytes of one element as it lies in memory.
int bytesOf(Precision precision);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PRECISION_H
