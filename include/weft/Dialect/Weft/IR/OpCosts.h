//===- OpCosts.h - operation counts that cost models share ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_OPCOSTS_H
#define WEFT_DIALECT_WEFT_IR_OPCOSTS_H

namespace weft {

/// Floating-point operations to round one number to FP8, whatever type holds the result: two
/// multiplications, two additions, and the choice of the addend.
inline constexpr double kQuantizeFlops = 6;

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_OPCOSTS_H
