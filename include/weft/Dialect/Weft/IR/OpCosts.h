//===- OpCosts.h - what ops cost, for those who price them ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_OPCOSTS_H
#define WEFT_DIALECT_WEFT_IR_OPCOSTS_H

namespace weft {

/// Operations for each number that goes to an FP8 number, be it kept in more: two
/// multiplications, two additions, and the choice of what to add.
inline constexpr double kQuantizeFlops = 6;

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_OPCOSTS_H
