//===- Precision.h - the number formats a program computes in -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PRECISION_H
#define WEFT_DESCRIPTION_PRECISION_H

namespace weft::desc {

/// A number format: of IEEE 754, or bfloat16.
enum class Precision { F64, F32, BF16 };

/// "F64", "F32" or "BF16", as in a recipe.
const char *nameOf(Precision precision);

/// Bytes of one element: 8, 4 or 2.
int bytesOf(Precision precision);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PRECISION_H
