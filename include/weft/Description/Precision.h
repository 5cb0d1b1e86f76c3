//===- Precision.h - the number formats a program computes in -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PRECISION_H
#define WEFT_DESCRIPTION_PRECISION_H

namespace weft::desc {

/// The IEEE 754 format of parameters, activations, gradients and optimizer state.
enum class Precision { F64, F32 };

/// "F64" or "F32", as in a recipe.
const char *nameOf(Precision precision);

/// Bytes of one element: 8 or 4.
int bytesOf(Precision precision);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PRECISION_H
