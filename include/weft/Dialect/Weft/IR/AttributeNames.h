//===- AttributeNames.h - attributes that phases leave for later ones -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H
#define WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace weft {

/// Of an op in a backward function that computes a value of forward again. It is not counted among
/// the operations that a step takes by the model.
inline constexpr llvm::StringLiteral kRecomputedAttrName = "weft.recomputed";

/// Of the module from Plan on: its mesh.
inline constexpr llvm::StringLiteral kMeshAttrName = "weft.mesh";

/// Of the module in Schedule: what the program is for, a string, where that is not the host.
inline constexpr llvm::StringLiteral kTargetAttrName = "weft.target";

/// Of a variable, until its sharding is chosen: for each dimension the axes that a plan cuts it by,
/// or unit where it says nothing. Absent where it says nothing of any.
inline constexpr llvm::StringLiteral kPinsAttrName = "weft.pins";

/// Beside pins, where that was asked for: for each of them who says so, a string, or unit.
inline constexpr llvm::StringLiteral kPinnedByAttrName = "weft.pinned_by";

/// Of an op, a variable or an argument of a function, where that was asked for: why it is sharded as
/// it is, a string.
inline constexpr llvm::StringLiteral kWhyAttrName = "weft.why";

/// Of an all-reduce: mutate-collective is to break this one, and not one by its number.
inline constexpr llvm::StringLiteral kMutatedAttrName = "weft.mutated";

/// Of an argument or a result of a function, until its sharding is chosen: it is a term or the sum
/// of one that goes on outside, so it may be pending there.
inline constexpr llvm::StringLiteral kMayPendAttrName = "weft.may_pend";

/// Of a kernel function: for each result, the number of the argument whose storage it takes over,
/// or -1. A function that has it is a kernel.
inline constexpr llvm::StringLiteral kTiedAttrName = "weft.tied";

/// Of a lowered kernel: how many iterations each of its phases has, see `weft::rt::KernelCode`.
inline constexpr llvm::StringLiteral kIterationsAttrName = "weft.iterations";

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H
